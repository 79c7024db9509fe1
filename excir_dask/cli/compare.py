"""The command ``excir compare``: how far two explanations agree."""

from __future__ import annotations

import json

import click

from excir_dask.cli.config_file import CONFIG, Command
from excir_dask.cli.console import log_to_stderr
from excir_dask.cli.options import CONSOLE, options
from excir_dask.cli.types import FilePath


@click.command(cls=Command)
@click.argument("a", type=FilePath())
@click.argument("b", type=FilePath())
@options(CONFIG)
@click.option("--k", type=click.IntRange(min=1), default=8, show_default=True, help="Size of the top that is compared.")
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True, help="Score shifts to print.")
@options(CONSOLE)
def compare(a: str, b: str, k: int, top: int, as_json: bool, quiet: bool, verbose: bool) -> None:
    """Show how far explanation B agrees with explanation A.

    A and B are folders that `excir explain --out` saved. Order is compared by Jaccard@k (beside what chance gives),
    Spearman, Kendall and nDCG@k, shape by Procrustes, affine and KL residuals, scores by their standard errors.

    \b
    excir compare full/ sample/
    excir compare january/ february/ --k 20 --json
    """
    from excir_dask.agreement.compare import compare as run
    from excir_dask.render.text.agreement import text

    with log_to_stderr(quiet, verbose):
        found = run(a, b, k)
    click.echo(json.dumps(found.to_dict(top), allow_nan=False) if as_json else text(found, top))
