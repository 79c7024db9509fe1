"""The command ``excir sweep``: how few rows give the ranking of all of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

from excir_dask.cli.config_file import CONFIG, Command
from excir_dask.cli.options import CONSOLE, EXPLAIN, PERFORMANCE, THREADS, explain_arguments, explain_options, options
from excir_dask.cli.running import running
from excir_dask.cli.types import KeyValue, Lake, Numbers, Seeds
from excir_dask.errors import UsageError

OWN = ("fraction", "seed", "target_jaccard", "confidence", "k", "checkpoint")
"""options of explain that a sweep sets itself, or has in another sense"""
SHARED = tuple(name for name in EXPLAIN if name not in OWN)


@click.command(cls=Command)
@click.argument("lake", type=Lake())
@options(CONFIG)
@click.option(
    "--fractions", type=Numbers(), metavar="a,b,...", default="0.2,0.3,0.4,0.5,0.75", show_default=True,
    help="Shares of the rows to compare with all of them.",
)  # fmt: skip
@click.option(
    "--seeds", type=Seeds(), default="3", show_default=True, help="Samples of each: how many, or their seeds."
)
@click.option("--k", type=click.IntRange(min=1), default=8, show_default=True, help="Places of the ranking to compare.")
@click.option(
    "--target-jaccard", type=float, default=0.9, show_default=True,
    help="Overlap of the first K that every seed and output must reach.",
)  # fmt: skip
@click.option(
    "--target-residual", type=float, metavar="R",
    help="Procrustes residual of the scores that no seed and output may exceed.",
)  # fmt: skip
@click.option("--retrain", is_flag=True, help="Train a model at every fraction, in place of --output or --model.")
@click.option("--label", metavar="COLUMN", help="With --retrain: the column to learn.")
@click.option(
    "--params", multiple=True, type=KeyValue(), metavar="KEY=VALUE",
    help="With --retrain: a parameter of XGBoost, or @FILE.",
)  # fmt: skip
@options(explain_options(*SHARED), THREADS, PERFORMANCE, CONSOLE)
def sweep(
    lake: Any, retrain: bool, label: str | None, params: Sequence[str], out: str | None, as_json: bool, **given: Any
) -> None:
    """Find how few rows of LAKE give the ranking of all of them.

    All rows are explained once, and every fraction once per seed. Prints times, agreement with all rows, and the
    smallest fraction that meets the target for every seed and output, or that there is none.

    \b
    excir sweep lake/ --output pred
    excir sweep lake/ --model model.ubj --fractions 0.01,0.05,0.2 --seeds 5 --out sweep/
    excir sweep lake/ --retrain --label bought
    excir sweep --config sweep.yaml --seeds 5
    """
    from excir_dask.sweep.run import sweep as run
    from excir_dask.training.params import parse_params

    if retrain != (label is not None):
        raise UsageError("--retrain and --label go together: --retrain --label COLUMN; only one of them is given")
    learned = {"label": label, "params": parse_params(params)} if retrain else None
    with running(explain_arguments(**given)) as arguments:
        found = run(lake, retrain=learned, out=out, **arguments)
    if as_json:
        content = {name: value for name, value in found.to_dict().items() if name != "runs"}
        click.echo(json.dumps({**content, "out": out}, allow_nan=False))
    else:
        click.echo(str(found))
