"""The command ``excir plan``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

from excir_dask.cli.config_file import CONFIG, Command
from excir_dask.cli.console import log_to_stderr
from excir_dask.cli.options import CONSOLE, LAKE, explain_options, options, output_of
from excir_dask.cli.types import Lake
from excir_dask.pipeline.options import ExplainOptions


@click.command(cls=Command)
@click.argument("lake", type=Lake())
@options(CONFIG, explain_options("output", "features", "weights", "where", "by", "budget"), LAKE, CONSOLE)
def plan(
    lake: Any, outputs: Sequence[tuple[str | None, str]], as_json: bool, quiet: bool, verbose: bool, **given: Any
) -> None:
    """Show what a run over LAKE would read; only footers are read for it.

    Prints files, rows, columns, slices, the memory per thread, and every conflict between the files' schemas.
    Exits with 3 if a conflict would stop the run.

    \b
    excir plan lake/
    excir plan lake/ --output pred --features 'sensor_*' --budget 64MiB
    excir plan lake/ --where "date >= '2026-09-01'"
    """
    from excir_dask.pipeline.preview import preview
    from excir_dask.render.text.preview import text

    with log_to_stderr(quiet, verbose):
        found = preview(lake, ExplainOptions(output=output_of(outputs), **given))
    click.echo(json.dumps(found.to_dict()) if as_json else text(found))
    if found.problem is not None:
        raise found.problem
