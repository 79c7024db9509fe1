"""``--config FILE``: any option of a command from a YAML file. The command line takes precedence.

Keys are the options' long names, with - or _; ``lake`` stands for the argument. The whole file is checked before
anything runs, including what the command line replaces.
"""

from __future__ import annotations

import os
from typing import Any

import click
from click.core import ParameterSource

from excir_dask.cli.command import CheckedCommand
from excir_dask.cli.types import FilePath, is_number
from excir_dask.common.textfile import brief, read_text_file
from excir_dask.errors import UsageError, nearest
from excir_dask.lake.store_errors import redact

_SHAPE = "write one option per line, such as  output: pred"
_ALWAYS = ("config", "help")

FROM_FILE = ParameterSource.DEFAULT_MAP


def read_config(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    """Callback of ``--config``: the values in the file become the defaults of the other options."""
    if value is None or ctx.resilient_parsing:
        return
    content = read_text_file(value, "options", _SHAPE)
    if not isinstance(content, dict):
        kind = "nothing" if content is None else f"a {type(content).__name__}"
        raise UsageError(f"{value} holds {kind} where options should be; {_SHAPE}")
    known = _keys(ctx.command)
    found: dict[str, Any] = {}
    for key, given in content.items():
        name = str(key).replace("_", "-")
        if name not in known:
            advice = nearest(name, known) or f"; '{ctx.command_path} --help' lists them"
            raise UsageError(f"{value}: '{key}' is not an option of '{ctx.command_path}'{advice}")
        target = known[name].name
        assert target is not None
        if target in found:
            raise UsageError(f"{value}: '{name}' is given twice, once with - and once with _; keep one")
        found[target] = _value(ctx, known[name], given, f"{value}: '{key}'")
    ctx.default_map = {**(ctx.default_map or {}), **found}


CONFIG = (
    click.option(
        "--config", type=FilePath(), is_eager=True, expose_value=False, callback=read_config, metavar="FILE",
        help="YAML file of options, by their long names; the command line takes precedence.",
    ),
)  # fmt: skip
"""options from a file"""


EXCLUSIVE = (("outputs", "model"), ("scheduler", "cluster"), ("quiet", "verbose"))
"""options that exclude each other"""


class Command(CheckedCommand):
    """A command with options from a file: a typed option also replaces the one in the file that it excludes."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        files = [word for word in args if os.path.isfile(word)]
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            if len(files) > 1 and error.message.startswith("Got unexpected extra argument"):
                folder = os.path.dirname(files[0]) or "."
                ending = os.path.splitext(files[0])[1]
                raise click.UsageError(
                    f"{len(files)} files where one LAKE is expected, the first is {files[0]}; put a glob in quotes, so "
                    f"that the shell does not expand it: '{folder}/*{ending}'",
                    ctx,
                ) from None
            raise

    def invoke(self, ctx: click.Context) -> Any:
        for pair in EXCLUSIVE:
            for typed, other in (pair, pair[::-1]):
                if _source(ctx, typed) is ParameterSource.COMMANDLINE and _source(ctx, other) is FROM_FILE:
                    ctx.params[other] = _nothing(ctx.params[other])
        return super().invoke(ctx)


def _source(ctx: click.Context, name: str) -> ParameterSource | None:
    return ctx.get_parameter_source(name) if name in ctx.params else None


def _nothing(value: Any) -> Any:
    return type(value)() if isinstance(value, bool | tuple) else None


def _keys(command: click.Command) -> dict[str, click.Parameter]:
    """Options that the file may have, by their keys."""
    found: dict[str, click.Parameter] = {}
    for param in command.params:
        if isinstance(param, click.Argument):
            found[str(param.name)] = param
        else:
            long = next((opt[2:] for opt in param.opts if opt.startswith("--")), None)
            if long is not None and long not in _ALWAYS:
                found[long] = param
    return found


def _value(ctx: click.Context, param: click.Parameter, given: Any, where: str) -> Any:
    """A value in the file as the option takes it."""
    if given is None:
        raise UsageError(f"{where} has no value; give it one, or leave it out")
    try:
        plain = _from_file(param, given)
    except ValueError as error:
        # it may hold a secret, which no message repeats
        shown = "something else" if getattr(param.type, "secret", False) else redact(brief(given))
        raise UsageError(f"{where} is {shown}; give {error}") from None
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
    try:
        return param.type_cast_value(ctx, plain)
    except click.BadParameter as error:
        raise UsageError(f"{where} cannot be used: {error.message}") from None


def _from_file(param: click.Parameter, given: Any) -> Any:
    kind = param.type
    own = getattr(kind, "from_file", None)
    if own is not None:
        return own(given)
    if getattr(param, "multiple", False):
        return [_single(param, one) for one in (given if isinstance(given, list) else [given])]
    return _single(param, given)


def _single(param: click.Parameter, given: Any) -> Any:
    kind = param.type
    if isinstance(kind, click.types.BoolParamType):
        if not isinstance(given, bool):
            raise ValueError("true or false")
    elif isinstance(kind, click.types.IntParamType):
        if not isinstance(given, int) or isinstance(given, bool):
            raise ValueError("a whole number")
    elif isinstance(kind, click.types.FloatParamType):
        if not is_number(given):
            raise ValueError("a number")
    elif not isinstance(given, str):
        raise ValueError("a text (put it in quotes)")
    return given
