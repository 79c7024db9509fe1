"""The command ``excir merge``: several saved explanations as one, without reading a row."""

from __future__ import annotations

import json

import click

from excir_dask.cli.config_file import CONFIG, Command
from excir_dask.cli.console import log_to_stderr
from excir_dask.cli.options import CONSOLE, options
from excir_dask.cli.types import FilePath


@click.command(cls=Command)
@click.argument("runs", metavar="RUN RUN...", type=FilePath(), nargs=-1, required=True)
@options(CONFIG)
@click.option("--out", metavar="FOLDER", type=FilePath(), help="Folder to save the result in.")
@click.option("--overwrite", is_flag=True, help="Replace another result that is already there.")
@click.option("--top", type=click.IntRange(min=1), default=15, show_default=True, help="Features to print per output.")
@options(CONSOLE)
def merge(
    runs: tuple[str, ...], out: str | None, overwrite: bool, top: int, as_json: bool, quiet: bool, verbose: bool
) -> None:
    """Add up explanations of different rows: a week from seven days.

    Each RUN is a folder that `excir explain --out` saved. All but one were computed with --reference that one, so that
    they have the same provisional centres. No row is read.

    \b
    excir explain lake/day=01 --output pred --out day-01/
    excir explain lake/day=02 --output pred --out day-02/ --reference day-01/
    excir merge day-01/ day-02/ --out days/
    """
    from excir_dask.cli.explain import summary
    from excir_dask.pipeline.merge import merge as run
    from excir_dask.render.text.explanation import text

    with log_to_stderr(quiet, verbose):
        found = run(runs, out, overwrite)
    click.echo(json.dumps(summary(found, top, out), allow_nan=False) if as_json else text(found, k=top))
