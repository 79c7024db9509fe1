"""The command ``excir demo``."""

from __future__ import annotations

import click

from excir_dask.cli.config_file import CONFIG, Command
from excir_dask.cli.options import options
from excir_dask.cli.types import FilePath


@click.command(cls=Command)
@options(CONFIG)
@click.option("--folder", default="excir-demo", show_default=True, type=FilePath(), help="Where the demo works.")
@click.option("--rows", default=300_000, show_default=True, type=click.IntRange(min=1000), help="Rows of the lake.")
def demo(folder: str, rows: int) -> None:
    """Generate a lake, train a model on it, and explain it.

    The whole product in under a minute. The lake has blocks of correlated sensors. An XGBoost model is trained on it,
    its margin is written to the lake, and the margin is explained with the blocks as groups.
    """
    from excir_dask.demo import run

    run(folder, rows)
