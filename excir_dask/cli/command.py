"""The base of all commands: it rejects invalid text before options are parsed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from excir_dask.errors import UsageError


class CheckedCommand(click.Command):
    """Refuses empty texts, which unset variables of a shell leave, and texts that are not UTF-8 or hold a NUL."""

    def invoke(self, ctx: click.Context) -> Any:
        for param in self.params:
            name = param.opts[-1] if isinstance(param, click.Option) else str(param.name).upper()
            for text in _texts(ctx.params.get(str(param.name))):
                _check(name, text)
        return super().invoke(ctx)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)


def _check(name: str, text: str) -> None:
    if text == "":
        raise UsageError(f"{name} is empty; give it a value, or leave it out (is a variable of the shell unset?)")
    if "\0" in text:
        raise UsageError(f"{name} holds a NUL character; remove it")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"{name} is not UTF-8 at character {error.start + 1}; rename the file or folder, or make a link to it"
        ) from None
