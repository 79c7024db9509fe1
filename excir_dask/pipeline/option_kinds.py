"""Kinds of options: the values each takes, and the message about any other value."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from excir_dask.common.textfile import brief
from excir_dask.errors import UsageError, nearest
from excir_dask.lake.where import parse


@dataclass(frozen=True)
class Kind:
    """Any value."""

    def accepts(self, value: Any) -> bool:
        return True

    @property
    def expected(self) -> str:
        """End of a message about a wrong value."""
        return "give another value"

    def check(self, name: str, value: Any) -> None:
        """Reject a wrong value; the message calls the option ``name``."""
        if not self.accepts(value):
            raise UsageError(f"{name} is {brief(value)}; {self.expected}")


@dataclass(frozen=True)
class Model(Kind):
    """A file or an object; loading it tells whether it is a model."""


@dataclass(frozen=True)
class Scheduler(Kind):
    """An address or a client; connecting to it tells whether it is one."""


@dataclass(frozen=True)
class Result(Kind):
    """A folder, or an explanation; loading it tells whether it is one."""

    expected = "give the folder of a saved explanation"

    def accepts(self, value: Any) -> bool:
        return value != "" and not isinstance(value, bool | int | float | Mapping | list | tuple)


@dataclass(frozen=True)
class Text(Kind):
    expected = "give a text that is not empty"

    def accepts(self, value: Any) -> bool:
        return isinstance(value, str) and value != ""


@dataclass(frozen=True)
class Where(Text):
    """A condition on columns; meeting the lake tells whether it has them."""

    expected = "give a condition as text, such as \"region == 'EU'\""

    def check(self, name: str, value: Any) -> None:
        super().check(name, value)
        parse(value, name)


@dataclass(frozen=True)
class Names(Kind):
    """One name, or several."""

    expected = "give a name or a list of names, in quotes where one is a number"

    def accepts(self, value: Any) -> bool:
        return isinstance(value, str) or _all_text(value)


@dataclass(frozen=True)
class Columns(Kind):
    """Columns that hold outputs, with a name for each if there is a mapping."""

    expected = "give a column, a list of columns, or {name: column}"

    def accepts(self, value: Any) -> bool:
        return isinstance(value, str) or _all_text(value.values() if isinstance(value, Mapping) else value)


@dataclass(frozen=True)
class Groups(Kind):
    """Groups of features, or where they come from."""

    expected = "give a mapping of names to features, a file, or 'correlation'"

    def accepts(self, value: Any) -> bool:
        return isinstance(value, str | os.PathLike | Mapping) and value != ""


@dataclass(frozen=True)
class Choice(Kind):
    """One of some words; a registry gives its names."""

    choices: Collection[str]

    def accepts(self, value: Any) -> bool:
        return isinstance(value, str) and value in self.choices

    def check(self, name: str, value: Any) -> None:
        if not self.accepts(value):
            advice = nearest(str(value), self.choices)
            raise UsageError(f"{name} is {brief(value)}{advice} (one of {', '.join(self.choices)})")


@dataclass(frozen=True)
class Flag(Kind):
    expected = "say true or false"

    def accepts(self, value: Any) -> bool:
        return isinstance(value, bool)


@dataclass(frozen=True)
class Integer(Kind):
    least: int | None = None

    def accepts(self, value: Any) -> bool:
        return _is(value, Integral) and (self.least is None or value >= self.least)

    @property
    def expected(self) -> str:
        return "give a whole number" + ("" if self.least is None else f" of at least {self.least}")


@dataclass(frozen=True)
class Share(Kind):
    """A number above 0 and at most 1, or a word in place of one."""

    word: str | None = None

    def accepts(self, value: Any) -> bool:
        return (isinstance(value, str) and value == self.word) or (_is(value, Real) and 0.0 < value <= 1.0)

    @property
    def expected(self) -> str:
        return "give a number above 0 and at most 1" + ("" if self.word is None else f", or '{self.word}'")


@dataclass(frozen=True)
class Bytes(Kind):
    """A number of bytes, or a text such as 128MB."""

    expected = "give a number of bytes, such as 128MB"

    def accepts(self, value: Any) -> bool:
        return isinstance(value, str) or _is(value, Real)

    def check(self, name: str, value: Any) -> None:
        super().check(name, value)
        parse_bytes(value, name)


@dataclass(frozen=True)
class Path(Kind):
    """A file or folder of this machine; ``url`` says that it may be elsewhere."""

    url: bool = False

    def accepts(self, value: Any) -> bool:
        return isinstance(value, str | os.PathLike) and os.fspath(value) != ""

    @property
    def expected(self) -> str:
        return "give a path or URL" if self.url else "give a path"


@dataclass(frozen=True)
class Secrets(Kind):
    """A mapping whose values no message repeats."""

    def accepts(self, value: Any) -> bool:
        return isinstance(value, Mapping)

    def check(self, name: str, value: Any) -> None:
        if not self.accepts(value):
            raise UsageError(f"{name} is not a mapping; give one such as {{anon: true}}")


def parse_bytes(size: int | str, name: str = "budget") -> int:
    """Bytes from a number or a text such as ``"64MB"`` or ``"64MiB"``.

    >>> parse_bytes("64MiB")
    67108864
    """
    from dask.utils import parse_bytes as parse

    try:
        if size == "":
            raise ValueError(size)
        return int(parse(size if isinstance(size, str) else int(size)))
    except (ValueError, OverflowError) as error:
        raise UsageError(
            f"{name} is {brief(size)}, which is not a number of bytes; write for instance 128MB"
        ) from error


def _is(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _all_text(values: Any) -> bool:
    return isinstance(values, Collection) and all(isinstance(value, str) for value in values)
