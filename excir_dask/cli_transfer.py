"""The command ``excir sweep``: how few rows give the ranking of all of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

from excir_dask.cli_options import QUESTION, RUNNING, SAMPLING, SCORING, explain_arguments, names, options
from excir_dask.errors import UsageError


class Numbers(click.ParamType):
    """a,b,c"""

    name = "a,b,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[float]:
        try:
            return [float(part) for part in names(value) or []]
        except ValueError:
            self.fail(f"'{value}' is not a list of numbers such as 0.2,0.5", param, ctx)


class Seeds(click.ParamType):
    """How many seeds, or which: 3, or 0,7,11"""

    name = "N|a,b,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | list[int]:
        try:
            return [int(part) for part in value.split(",")] if "," in str(value) else int(value)
        except ValueError:
            self.fail(f"'{value}' is neither a number of seeds nor a list such as 0,7,11", param, ctx)


@click.command()
@click.argument("lake")
@click.option(
    "--fractions",
    type=Numbers(),
    default="0.2,0.3,0.4,0.5,0.75",
    show_default=True,
    help="Shares of the rows to compare with all of them.",
)
@click.option(
    "--seeds", type=Seeds(), default="3", show_default=True, help="Samples of each: how many, or their seeds."
)
@click.option("--k", type=click.IntRange(min=1), default=8, show_default=True, help="Places of the ranking to compare.")
@click.option(
    "--target-jaccard",
    type=float,
    default=0.9,
    show_default=True,
    help="Overlap of the first K that every seed and output must reach.",
)
@click.option("--retrain", is_flag=True, help="Train a model at every fraction, in place of --output or --model.")
@click.option("--label", metavar="COLUMN", help="With --retrain: the column to learn.")
@click.option("--params", multiple=True, metavar="KEY=VALUE", help="With --retrain: a parameter of XGBoost, or @FILE.")
@options(QUESTION, SAMPLING, SCORING, RUNNING)
@click.option("--out", type=click.Path(), help="Folder to save the sweep in.")
@click.option("--overwrite", is_flag=True, help="Replace a sweep that is already in that folder.")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON instead of tables.")
def sweep(
    lake: str, fractions: list[float], seeds: int | list[int], k: int, target_jaccard: float,
    retrain: bool, label: str | None, params: Sequence[str],
    threads: int | None, out: str | None, overwrite: bool, as_json: bool, **given: Any,
) -> None:  # fmt: skip
    """Find how few rows of LAKE give the ranking of all of them.

    All rows are explained once and every fraction once a seed. Prints times, agreement with all rows, and the smallest
    fraction that meets the target for every seed and output, or that there is none.

    \b
    excir sweep lake/ --output pred
    excir sweep lake/ --model model.ubj --fractions 0.01,0.05,0.2 --seeds 5 --out sweep/
    excir sweep lake/ --retrain --label bought
    """
    import dask

    from excir_dask.folders import check_target
    from excir_dask.training.params import parse_params
    from excir_dask.transfer.sweep import sweep as run

    if out is not None:
        check_target(out, overwrite, "sweep")
    if retrain != (label is not None):
        raise UsageError("--retrain and --label go together: --retrain --label COLUMN; only one of them is given")
    with dask.config.set({} if threads is None else {"num_workers": threads}):
        found = run(
            lake,
            fractions=fractions,
            seeds=seeds,
            k=k,
            target_jaccard=target_jaccard,
            retrain={"label": label, "params": parse_params(params)} if retrain else None,
            **explain_arguments(**given),
        )
    if out is not None:
        found.save(out, overwrite=overwrite)
        click.echo(f"saved in {out}", err=True)
    if as_json:
        content = {name: value for name, value in found.to_dict().items() if name != "runs"}
        click.echo(json.dumps({**content, "out": out}, allow_nan=False))
    else:
        click.echo(str(found))
