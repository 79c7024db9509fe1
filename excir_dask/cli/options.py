"""Options of commands. Those of :func:`~excir_dask.explain` are made from the fields of its options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from excir_dask.cli import types
from excir_dask.cli.storage_options import storage_option
from excir_dask.errors import UsageError
from excir_dask.pipeline import option_kinds as kinds
from excir_dask.pipeline.options import DEFAULTS, OPTIONS

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Any], Any]

EXPLAIN = tuple(name for name, option in OPTIONS.items() if option.typed)
"""options of explain that are options of a command, in their order"""


def explain_options(*names: str) -> tuple[Decorator, ...]:
    """Options of explain as those of a command, in the order given.

    ``output`` becomes ``outputs``, a sequence; ``groups`` becomes ``groups`` (``--group``) and ``groups_file``.
    :func:`explain_arguments` turns both into what explain takes.
    """
    return tuple(option for name in names for option in _decorators(name))


def _decorators(name: str) -> list[Decorator]:
    about, kind, flag = OPTIONS[name], OPTIONS[name].kind, "--" + name.replace("_", "-")
    more: dict[str, Any] = {"help": about.help, **({} if about.metavar is None else {"metavar": about.metavar})}
    if isinstance(kind, kinds.Columns):
        return [click.option(flag, "outputs", multiple=True, type=types.Output(), **more)]
    if isinstance(kind, kinds.Groups):
        return [
            click.option(
                "--group", "groups", multiple=True, type=types.Groups(), metavar="NAME=a,b,...",
                help="A group of features; repeat for several.",
            ),
            click.option(flag, "groups_file", type=types.FilePath(), **more),
        ]  # fmt: skip
    if isinstance(kind, kinds.Secrets):
        return [storage_option(about.help)]
    default = DEFAULTS[name]
    if isinstance(kind, kinds.Flag):
        return [click.option(f"{flag}/--no-{flag[2:]}", name, default=default, show_default=default, **more)]
    if default is not None:
        more |= {"default": _shown(kind, default), "show_default": True}
    if isinstance(kind, kinds.Names):
        more |= {"metavar": "a,b,..."}
    return [click.option(flag, type=_click_type(kind), **more)]


def _click_type(kind: kinds.Kind) -> Any:
    """How a value is typed."""
    match kind:
        case kinds.Choice(choices):
            return click.Choice(list(choices))
        case kinds.Integer(None):
            return int
        case kinds.Integer(least):
            return click.IntRange(min=least)
        case kinds.Share(None):
            return float
        case kinds.Share():
            return types.Fraction()
        case kinds.Names():
            return types.Names()
        case kinds.Model() | kinds.Path(url=False):
            return types.FilePath()
        case _:
            return str


def _shown(kind: kinds.Kind, default: Any) -> Any:
    """A default as people would type it.

    >>> _shown(kinds.Bytes(), 128 * 2**20)
    '128MiB'
    """
    return f"{default >> 20}MiB" if isinstance(kind, kinds.Bytes) else default


LAKE = explain_options("storage_options", "table_version")
"""the store that a lake is in, and the version of a table"""

CHECKSUMS = explain_options("verify_checksums")

THREADS = (
    click.option("--threads", type=click.IntRange(min=1), help="Threads on this machine. [default: one per core]"),
)
"""how many at once"""

PERFORMANCE = (
    click.option(
        "--performance-report", type=types.FilePath(), metavar="FILE",
        help="With a cluster: save dask's report of tasks, workers and transfers as HTML.",
    ),
    click.option(
        "--insecure", is_flag=True, help="Do not warn of a scheduler on another host that is reached without TLS."
    ),
)  # fmt: skip
"""what only a cluster has"""

RUNNING = (*explain_options("scheduler", "cluster"), *PERFORMANCE)
"""where it runs"""

JSON = (click.option("--json/--no-json", "as_json", help="Print one line of JSON instead of tables."),)

CONSOLE = (
    *JSON,
    click.option("-q", "--quiet", is_flag=True, help="Nothing on standard error but errors."),
    click.option("-v", "--verbose", is_flag=True, help="Say what is planned, and how long each scan takes."),
)
"""what is printed"""


def options(*some: Sequence[Callable[[Command], Command]]) -> Callable[[Command], Command]:
    """Give a command some of these, in the order of its help."""

    def decorate(command: Command) -> Command:
        for option in reversed([option for several in some for option in several]):
            command = option(command)
        return command

    return decorate


def explain_arguments(
    outputs: Sequence[tuple[str | None, str]], groups: Sequence[tuple[str, list[str]]], groups_file: str | None,
    **others: Any,
) -> dict[str, Any]:  # fmt: skip
    """Options of :func:`~excir_dask.explain` from what was typed; ``others`` have the names that it gives them."""
    from excir_dask.pipeline.groups import combine
    from excir_dask.results.group_files import read_groups

    given = [name for name, _ in groups]
    for name in given:
        if given.count(name) > 1:
            raise UsageError(f"group '{name}' is given twice; give all its members in one --group")
    sources = [("--group", dict(groups)), *([(groups_file, read_groups(groups_file))] if groups_file else [])]
    return {"output": output_of(outputs), "groups": combine(*sources), **others}


def output_of(outputs: Sequence[tuple[str | None, str]]) -> str | list[str] | dict[str, str] | None:
    """What explain takes as its output, from the columns that were typed."""
    columns = [column for _, column in outputs]
    if all(name is None for name, _ in outputs):
        return columns[0] if len(columns) == 1 else columns or None
    names = [name or column for name, column in outputs]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"output '{name}' is given twice; give each column a name of its own")
    return dict(zip(names, columns, strict=True))
