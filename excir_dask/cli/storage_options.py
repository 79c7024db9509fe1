"""The option ``--storage-option``: settings of the store that a command reads from."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from excir_dask.cli.types import StorageOption

Command = TypeVar("Command", bound=Callable[..., Any])

_ALWAYS_TEXT = re.compile(r"key|secret|token|password|user|account|name|id$", re.IGNORECASE)
"""options whose values are text even if they look like numbers"""


def storage_option(help: str) -> Callable[[Command], Command]:
    """The option ``--storage-option`` of a command."""
    return click.option(
        "--storage-option", "storage_options", multiple=True, type=StorageOption(), callback=_storage_options,
        metavar="KEY=VALUE", help=help,
    )  # fmt: skip


def storage_options(given: Sequence[str]) -> dict[str, Any] | None:
    """A mapping from ``KEY=VALUE`` texts; None without any.

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
            # it may hold a secret, which no message repeats
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
