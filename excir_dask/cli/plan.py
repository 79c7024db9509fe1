"""The command ``excir plan``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

from excir_dask.cli.config import CONFIG, Command
from excir_dask.cli.console import log_to_stderr
from excir_dask.cli.lake_options import lake_options
from excir_dask.cli.options import BUDGET, CONSOLE, options
from excir_dask.cli.types import Lake, Names, Output


@click.command(cls=Command)
@click.argument("lake", type=Lake())
@lake_options
@options(CONFIG)
@click.option(
    "--output", "outputs", multiple=True, type=Output(), metavar="[CLASS=]COLUMN",
    help="Column of model outputs; repeat for several.",
)  # fmt: skip
@click.option(
    "--features", type=Names(), metavar="a,b,...", help="Names or patterns to explain; '!name' takes columns away."
)
@click.option("--weights", metavar="COLUMN", help="Column of row weights.")
@options(BUDGET, CONSOLE)
def plan(
    lake: Any,
    outputs: Sequence[tuple[str | None, str]],
    features: list[str] | None,
    as_json: bool,
    quiet: bool,
    verbose: bool,
    **given: Any,
) -> None:
    """Say what a run over LAKE would read, from the footers alone.

    Prints files, rows, columns, slices, the memory a thread needs, and every conflict between the files' schemas.
    Exits with 3 if a conflict would stop the run.

    \b
    excir plan lake/
    excir plan lake/ --output pred --features 'sensor_*' --budget 64MiB
    """
    from excir_dask.pipeline.options import ExplainOptions
    from excir_dask.pipeline.preview import preview

    columns = [column for _, column in outputs]
    with log_to_stderr(quiet, verbose):
        found = preview(lake, ExplainOptions(output=columns or None, features=features, **given))
    click.echo(json.dumps(found.to_dict()) if as_json else str(found))
    if found.problem is not None:
        raise found.problem
