"""The command ``excir audit compare``."""

from __future__ import annotations

import json

import click

from excir_dask.cli.audit.options import RESULTS, store_and_run
from excir_dask.cli.command import CheckedCommand
from excir_dask.cli.options import JSON, options


@click.command(cls=CheckedCommand)
@click.argument("a")
@click.argument("b")
@options(RESULTS)
@click.option("--k", type=click.IntRange(min=1), default=8, show_default=True, help="Size of the top.")
@options(JSON)
def compare(a: str, b: str, results: str | None, k: int, as_json: bool) -> None:
    """Show how far run B agrees with run A, any two past runs."""
    from dataclasses import replace

    from excir_dask.agreement.compare import compare as agreement
    from excir_dask.render.text.agreement import text

    (store_a, run_a), (store_b, run_b) = store_and_run(a, results), store_and_run(b, results)
    found = replace(agreement(store_a.load(run_a), store_b.load(run_b), k), names=(a, b))
    click.echo(json.dumps(found.to_dict(), allow_nan=False) if as_json else text(found))
