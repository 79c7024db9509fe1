"""What the commands of ``excir audit`` share: the window's options, and where runs are stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from excir_dask.cli.types import ParamType
from excir_dask.errors import UsageError

if TYPE_CHECKING:
    from datetime import date

    from excir_dask.audit.config import Config
    from excir_dask.audit.store import Store


class Key(ParamType):
    """NAME=VALUE"""

    name = "NAME=VALUE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        name, equals, text = value.partition("=")
        if not (name and equals and text):
            self.fail(f"'{value}' is not of the form NAME=VALUE", param, ctx)
        return name, text


WINDOW = (
    click.option("--date", "day", metavar="DATE", help="Window's date, today or yesterday. [default: yesterday]"),
    click.option("--key", "keys", multiple=True, type=Key(), help="Another field of the window; repeat for more."),
)
"""which window"""

RESULTS = (click.option("--results", metavar="FOLDER", help="Folder of results, if runs are given by name, not path."),)
"""where runs are stored"""


def keys_of_window(given: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The keys that were typed, each once."""
    found = dict(given)
    for name in found:
        values = [value for key, value in given if key == name]
        if len(values) > 1:
            raise UsageError(f"--key {name} is given {len(values)} times ({', '.join(values)}); give it once")
    return found


def days_to_audit(config: Config, day: str | None, backfill: tuple[str, str] | None) -> list[date | None]:
    """The days that ``--date`` or ``--backfill`` ask for; None for a whole lake without a date."""
    from excir_dask.audit.window import days, read_date

    if config.window is None or not config.window.dated:
        if backfill or (day and config.window is not None):
            raise UsageError("a date is given, but the configuration's window has no {{ date }}; leave one out")
        return [None if day is None else read_date(day)]  # of the whole lake: the day it is audited for
    if backfill and day:
        raise UsageError("--date and --backfill are both given; give one")
    if backfill:
        return list(days(read_date(backfill[0]), read_date(backfill[1])))
    return [read_date(day)]


def store_at(results: str) -> Store:
    """The store in a folder of results, or that of a configuration."""
    from excir_dask.audit.config import read_config
    from excir_dask.audit.store import open_store

    if results.endswith((".yaml", ".yml")):
        config = read_config(results)
        return open_store(config.results, config.results_options)
    return open_store(results)


def store_and_run(run: str, results: str | None) -> tuple[Store, str]:
    """The store of a run and its name there, from a path (RESULTS/runs/NAME) or from a name and a folder."""
    from excir_dask.audit.store import split_run

    if results is not None:
        return store_at(results), run
    folder, name = split_run(run)
    return store_at(folder), name
