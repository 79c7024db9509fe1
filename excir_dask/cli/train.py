"""The command ``excir train``."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import Any

import click

from excir_dask.cli.config_file import CONFIG, Command
from excir_dask.cli.options import CHECKSUMS, CONSOLE, LAKE, RUNNING, options
from excir_dask.cli.running import running
from excir_dask.cli.types import FilePath, KeyValue, Lake, Names
from excir_dask.common.wording import printable
from excir_dask.lake.store_errors import redact


@click.command(cls=Command)
@click.argument("lake", type=Lake())
@options(LAKE, CHECKSUMS, CONFIG)
@click.option("--label", metavar="COLUMN", required=True, help="Column to predict: classes or numbers.")
@click.option("--out", type=FilePath(), required=True, help="File of the model: a name that ends .ubj or .json.")
@click.option("--overwrite/--no-overwrite", help="Replace another model.")
@click.option("--force/--no-force", help="Train again even if the same model is there already.")
@click.option(
    "--features", type=Names(), metavar="a,b,...", help="Names or patterns to learn from; '!name' takes columns away."
)
@click.option("--weights", metavar="COLUMN", help="Column of row weights.")
@click.option(
    "--params", multiple=True, type=KeyValue(), metavar="KEY=VALUE",
    help="A parameter of XGBoost, or @FILE with several (JSON or YAML); repeat for more.",
)  # fmt: skip
@click.option("--rounds", type=int, default=200, show_default=True, help="Boosting rounds, at most.")
@click.option(
    "--early-stopping", type=int, default=20, show_default=True,
    help="Stop after this many rounds without a better validation metric; 0: never.",
)  # fmt: skip
@click.option("--validation", type=float, default=0.2, show_default=True, help="Share of the rows for validation.")
@click.option("--fraction", type=float, default=1.0, show_default=True, help="Share of the rows to use.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of sample, validation rows and XGBoost.")
@click.option("--budget", default="128MiB", show_default=True, help="Bytes that one partition of rows may hold.")
@options(RUNNING, CONSOLE)
def train(lake: Any, out: str, params: Sequence[str], as_json: bool, **given: Any) -> None:
    """Train an XGBoost model on the rows of LAKE.

    Text, truth values and integers with 2 to 100 different values are classes, as are floating-point numbers that are
    all 0 or 1; any other label is a number to predict. The model keeps the trees up to its best round.
    NAME.training.json beside it records how it was trained.

    \b
    excir train lake/ --label broken --out model.ubj
    excir train lake/ --label city --out model.ubj --features '!id' --params max_depth=4 --params eval_metric=merror
    excir train 's3://bucket/lake/*.parquet' --label price --out model.json --fraction 0.1 --params @params.yaml
    excir train --config train.yaml --overwrite
    """
    from excir_dask.training.params import parse_params
    from excir_dask.training.train import train as run

    with running({**given, "params": parse_params(params)}) as arguments:
        training = run(lake, out=out, **arguments)
    if as_json:
        content = {**training.summary(), "run_id": training.provenance.run_id, "out": out}
        click.echo(json.dumps(content, allow_nan=False))
    else:
        click.echo(str(training))
        following = f"  excir explain {shlex.quote(lake)} --model {shlex.quote(out)}" if isinstance(lake, str) else ""
        if following and following == printable(redact(following)):  # a command with a box or *** in it would not run
            click.echo(f"\nTry next:\n{following}")
