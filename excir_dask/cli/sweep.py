"""The commands ``excir sweep`` (how few rows give the ranking of all of them) and ``excir compare``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

from excir_dask.cli.config import CONFIG, Command
from excir_dask.cli.lake_options import checksum_option, lake_options
from excir_dask.cli.options import (
    BUDGET,
    CONSOLE,
    QUESTION,
    RESULT,
    RUNNING,
    SAMPLING,
    SCORING,
    THREADS,
    explain_arguments,
    options,
)
from excir_dask.cli.running import loudly, running
from excir_dask.cli.types import FilePath, KeyValue, Lake, Numbers, Seeds
from excir_dask.errors import UsageError


@click.command(cls=Command)
@click.argument("lake", type=Lake())
@lake_options
@checksum_option
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
@click.option("--retrain", is_flag=True, help="Train a model at every fraction, in place of --output or --model.")
@click.option("--label", metavar="COLUMN", help="With --retrain: the column to learn.")
@click.option(
    "--params", multiple=True, type=KeyValue(), metavar="KEY=VALUE",
    help="With --retrain: a parameter of XGBoost, or @FILE.",
)  # fmt: skip
@options(QUESTION, SAMPLING, SCORING, BUDGET, THREADS, RUNNING, RESULT, CONSOLE)
def sweep(
    lake: Any, fractions: list[float], seeds: int | list[int], k: int, target_jaccard: float,
    retrain: bool, label: str | None, params: Sequence[str],
    threads: int | None, scheduler: str | None, cluster: str | None, performance_report: str | None,
    out: str | None, overwrite: bool, force: bool, as_json: bool, quiet: bool, verbose: bool, **given: Any,
) -> None:  # fmt: skip
    """Find how few rows of LAKE give the ranking of all of them.

    All rows are explained once and every fraction once a seed. Prints times, agreement with all rows, and the smallest
    fraction that meets the target for every seed and output, or that there is none.

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
    arguments = explain_arguments(**given)
    learned = {"label": label, "params": parse_params(params)} if retrain else None
    with running(quiet, verbose, scheduler, performance_report, threads, cluster=cluster) as how:
        found = run(
            lake, fractions=fractions, seeds=seeds, k=k, target_jaccard=target_jaccard, retrain=learned,
            out=out, overwrite=overwrite, force=force, **arguments, **how,
        )  # fmt: skip
    if as_json:
        content = {name: value for name, value in found.to_dict().items() if name != "runs"}
        click.echo(json.dumps({**content, "out": out}, allow_nan=False))
    else:
        click.echo(str(found))


@click.command(cls=Command)
@click.argument("a", type=FilePath())
@click.argument("b", type=FilePath())
@options(CONFIG)
@click.option("--k", type=click.IntRange(min=1), default=8, show_default=True, help="Size of the top that is compared.")
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True, help="Shifts of scores to print.")
@options(CONSOLE)
def compare(a: str, b: str, k: int, top: int, as_json: bool, quiet: bool, verbose: bool) -> None:
    """Say how far explanation B agrees with explanation A.

    A and B are folders that `excir explain --out` saved. Order is compared by Jaccard@k (and what chance gives),
    Spearman, Kendall and nDCG@k, shape by Procrustes, affine and KL residuals, scores by their standard errors.

    \b
    excir compare full/ sample/
    excir compare january/ february/ --k 20 --json
    """
    from excir_dask.agreement.compare import compare as run
    from excir_dask.render.text import agreement as words

    with loudly(quiet, verbose):
        found = run(a, b, k)
    click.echo(json.dumps(found.to_dict(top), allow_nan=False) if as_json else words.text(found, top))
