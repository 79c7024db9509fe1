"""Options of every command that reads a lake: the store it is in, and the version of a table."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from excir_dask.cli.types import StorageOption

Command = TypeVar("Command", bound=Callable[..., Any])

_ALWAYS_TEXT = re.compile(r"key|secret|token|password|user|account|name|id$", re.IGNORECASE)
"""options whose values may look like numbers and are none"""


def lake_options(command: Command) -> Command:
    """Options of every command that reads a lake."""
    version = click.option(
        "--table-version", type=int, metavar="N",
        help="Version of a Delta Lake table, or snapshot id of an Iceberg table. [default: the current one]",
    )  # fmt: skip
    return storage_option("LAKE")(version(command))


def checksum_option(command: Command) -> Command:
    """The option of every command that reads data of a lake."""
    return click.option(
        "--verify-checksums/--no-verify-checksums", default=True, show_default=True,
        help="Check pages of files that carry checksums; a mismatch ends the run.",
    )(command)  # fmt: skip


def storage_option(what: str) -> Callable[[Command], Command]:
    """The option ``--storage-option`` of a command that reads ``what`` from a store."""
    return click.option(
        "--storage-option", "storage_options", multiple=True, type=StorageOption(), callback=_storage_options,
        metavar="KEY=VALUE",
        help=f"For the store that {what} is in, as fsspec calls it; a.b=VALUE for nested ones; repeat for several.",
    )  # fmt: skip


def storage_options(given: Sequence[str]) -> dict[str, Any] | None:
    """A mapping from ``KEY=VALUE`` texts; None for none.

    >>> storage_options(["anon=true", "client_kwargs.endpoint_url=http://127.0.0.1:9000", "key=12"])
    {'anon': True, 'client_kwargs': {'endpoint_url': 'http://127.0.0.1:9000'}, 'key': '12'}
    """
    found: dict[str, Any] = {}
    for number, text in enumerate(given, 1):
        key, equals, value = text.partition("=")
        *folders, last = key.split(".")
        inner = found
        for folder in folders:
            inner = inner.setdefault(folder, {})
            if not isinstance(inner, dict):
                break
        if not equals or not all([*folders, last]) or not isinstance(inner, dict) or last in inner:
            # the text may hold a secret, and is not repeated
            raise click.BadParameter(f"the {_th(number)} is not of the form KEY=VALUE, or its key was given before")
        inner[last] = _value(last, value)
    return found or None


def _storage_options(ctx: click.Context, param: click.Parameter, given: Sequence[str]) -> dict[str, Any] | None:
    try:
        return storage_options(given)
    except click.BadParameter as error:
        raise click.BadParameter(error.message, ctx, param) from None


def _value(key: str, value: str) -> Any:
    if value in ("true", "false"):
        return value == "true"
    if _ALWAYS_TEXT.search(key) or not re.fullmatch(r"-?\d+(\.\d+)?", value):
        return value
    return float(value) if "." in value else int(value)


def _th(number: int) -> str:
    return {1: "first", 2: "second", 3: "third"}.get(number, f"{number}th")
