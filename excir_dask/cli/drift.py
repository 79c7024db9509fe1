"""The command ``excir drift``: how far columns have moved between two saved explanations."""

from __future__ import annotations

import json

import click

from excir_dask.cli.config_file import CONFIG, Command
from excir_dask.cli.console import log_to_stderr
from excir_dask.cli.options import CONSOLE, options
from excir_dask.cli.types import FilePath
from excir_dask.errors import UsageError


@click.command(cls=Command)
@click.argument("before", type=FilePath())
@click.argument("after", type=FilePath())
@options(CONFIG)
@click.option("--top", type=click.IntRange(min=1), default=15, show_default=True, help="Features and outputs to print.")
@click.option(
    "--format", "form", type=click.Choice(("table", "json", "csv")), default="table", show_default=True,
    help="What to print: a table, the same as --json, or CSV; the last two have all columns.",
)  # fmt: skip
@options(CONSOLE)
def drift(before: str, after: str, top: int, form: str, as_json: bool, quiet: bool, verbose: bool) -> None:
    """Show how far features and outputs have moved from BEFORE to AFTER.

    Both are folders that `excir explain --out` saved; AFTER was computed with --reference BEFORE, or both with that of
    a third run. No row is read. Distances come with limits: the states count rows by cells.

    \b
    excir explain lake/day=01 --output pred --out day-01/
    excir explain lake/day=02 --output pred --out day-02/ --reference day-01/
    excir drift day-01/ day-02/
    """
    from excir_dask.pipeline.drift import drift as run
    from excir_dask.render.text.drift import text
    from excir_dask.results.tables import records

    if as_json and form == "csv":
        raise UsageError("--json and --format csv are both given; leave one of them out")
    with log_to_stderr(quiet, verbose):
        found = run(before, after)
    if as_json or form == "json":
        click.echo(json.dumps({"before": before, "after": after, "drift": records(found)}, allow_nan=False))
    else:
        click.echo(found.to_csv(index=False) if form == "csv" else text(found, top), nl=form != "csv")
