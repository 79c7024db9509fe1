"""Types of option values: how they are typed in a shell, and how they are written in a file of options.

``convert`` takes what was typed, and returns its own results unchanged. ``from_file`` takes a value of a YAML file and
returns one that ``convert`` takes; for any other it raises a ``ValueError`` with what to give instead.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from excir_dask.results.group_files import checked_groups

if TYPE_CHECKING:
    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType  # takes no parameter before click 8.4


class Names(ParamType):
    """a,b,c"""

    name = "a,b,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        return value if isinstance(value, list) else [name.strip() for name in value.split(",")]

    def from_file(self, value: Any) -> Any:
        if not isinstance(value, str) and not _all(value, str):
            raise ValueError("a list of names, or names with commas between them")
        return value


class Lake(ParamType):
    """A path, URL or glob; in a file of options also a list of them"""

    name = "LAKE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value

    def from_file(self, value: Any) -> Any:
        if not isinstance(value, str) and not _all(value, str):
            raise ValueError("a path, URL or glob, or a list of Parquet files")
        return value


class FilePath(click.Path):
    """A file or folder; ~ is the home folder, which shells do not expand in ``--out=~/x``, nor in a file"""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if "\0" in os.fspath(value):  # which the system cannot look up
            self.fail("it holds a NUL character; remove it", param, ctx)
        return super().convert(os.path.expanduser(value), param, ctx)


class Output(ParamType):
    """COLUMN, or CLASS=COLUMN"""

    name = "[CLASS=]COLUMN"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str | None, str]:
        if isinstance(value, tuple):
            return value
        name, equals, column = value.partition("=")
        if equals and not (name and column):
            self.fail(f"'{value}' is neither a COLUMN nor of the form CLASS=COLUMN", param, ctx)
        return (name, column) if equals else (None, value)

    def from_file(self, value: Any) -> Any:
        if isinstance(value, dict) and _all(list(value.values()), str):
            for name in value:
                if not isinstance(name, str | int) or isinstance(name, bool):
                    raise ValueError(f"a mapping from names; YAML reads one as {name!r}: put it in quotes")
            return [(str(name), column) for name, column in value.items()]
        columns = [value] if isinstance(value, str) else value
        if not _all(columns, str):
            raise ValueError("a column, a list of columns, or a mapping such as {class: column}")
        return [(None, column) for column in columns]


class Groups(ParamType):
    """NAME=a,b,c"""

    name = "NAME=a,b,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, list[str]]:
        if isinstance(value, tuple):
            return value
        name, equals, members = value.partition("=")
        names = [member.strip() for member in members.split(",") if member.strip()]
        if not equals or not name or not names:
            self.fail(f"'{value}' is not of the form NAME=a,b,c", param, ctx)
        return name.strip(), names

    def from_file(self, value: Any) -> Any:
        if isinstance(value, dict):
            return list(checked_groups("it", value).items())
        texts = [value] if isinstance(value, str) else value
        if not _all(texts, str):
            raise ValueError("a mapping such as {engine: [rpm, torque]}, or a list of texts NAME=a,b,c")
        return texts


class KeyValue(ParamType):
    """KEY=VALUE"""

    name = "KEY=VALUE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(value)

    def from_file(self, value: Any) -> Any:
        import json

        if isinstance(value, dict):
            try:
                return [f"{key}={one if isinstance(one, str) else json.dumps(one)}" for key, one in value.items()]
            except TypeError as error:
                raise ValueError(f"a mapping of texts, numbers and lists ({error})") from None
        texts = [value] if isinstance(value, str) else value
        if not _all(texts, str):
            raise ValueError("a mapping such as {max_depth: 4}, or a list of texts KEY=VALUE")
        return texts


class StorageOption(KeyValue):
    """KEY=VALUE for a store; in a file of options a mapping, which may be nested"""

    secret = True

    def from_file(self, value: Any) -> Any:
        return super().from_file(dict(_flat(value)) if isinstance(value, dict) else value)


def _flat(mapping: dict[Any, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in mapping.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


class Fraction(ParamType):
    """A number, or auto."""

    name = "FLOAT|auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | str:
        if value == "auto":
            return "auto"
        try:
            return float(value)
        except ValueError:
            self.fail(f"'{value}' is neither a number nor 'auto'", param, ctx)

    def from_file(self, value: Any) -> Any:
        if value != "auto" and not is_number(value):
            raise ValueError("a number, or auto")
        return value


class Numbers(ParamType):
    """a,b,c"""

    name = "a,b,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[float]:
        try:
            return value if isinstance(value, list) else [float(part) for part in value.split(",")]
        except ValueError:
            self.fail(f"'{value}' is not a list of numbers such as 0.2,0.5", param, ctx)

    def from_file(self, value: Any) -> Any:
        numbers = value if isinstance(value, list) else [value]
        if not numbers or not all(is_number(number) for number in numbers):
            raise ValueError("a list of numbers such as [0.2, 0.5]")
        return [float(number) for number in numbers]


class Seeds(ParamType):
    """How many seeds, or which: 3, or 0,7,11"""

    name = "N|a,b,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | list[int]:
        if isinstance(value, list):
            return value
        try:
            return [int(part) for part in value.split(",")] if "," in str(value) else int(value)
        except ValueError:
            self.fail(f"'{value}' is neither a number of seeds nor a list such as 0,7,11", param, ctx)

    def from_file(self, value: Any) -> Any:
        if not (isinstance(value, int) and not isinstance(value, bool)) and not _all(value, int):
            raise ValueError("how many seeds, or a list of them such as [0, 7, 11]")
        return value


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _all(value: Any, kind: type) -> bool:
    """Whether it is a list with at least one entry, all of one kind."""
    fits = [isinstance(one, kind) and not isinstance(one, bool) for one in value] if isinstance(value, list) else []
    return bool(fits) and all(fits)
