"""The edge: commands, messages and exit codes. Results go to standard output, everything else to standard error."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from excir_dask.cli_audit import audit
from excir_dask.cli_options import QUESTION, RUNNING, SAMPLE, SCORING, explain_arguments, names, options
from excir_dask.cli_transfer import sweep
from excir_dask.errors import ExcirError
from excir_dask.version import __version__


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="excir")
def excir() -> None:
    """Explain a model over a Parquet lake of any size.

    \b
    excir demo                                   see it work on a generated lake
    excir plan lake/                             what would be read, and what is wrong with it
    excir train lake/ --label y --out model.ubj  train an XGBoost model on a lake
    excir explain lake/ --output pred            rank the features of a lake
    excir sweep lake/ --output pred              how few rows give the same ranking
    excir compare full/ sample/                  how far two saved explanations agree
    excir audit audit.yaml                       check a day of a lake against a baseline
    """


@excir.command()
@click.argument("lake")
@options(QUESTION, SAMPLE, SCORING, RUNNING)
@click.option(
    "--checkpoint", metavar="FOLDER",
    help="Keep states of finished slices here (a path or URL that workers reach); the same command goes on from them.",
)  # fmt: skip
@click.option("--out", type=click.Path(), help="Folder to save the explanation in.")
@click.option("--overwrite", is_flag=True, help="Replace an explanation that is already in that folder.")
@click.option(
    "--top", type=click.IntRange(min=1), default=15, show_default=True, help="Features to print for each output."
)
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON instead of tables.")
def explain(
    lake: str, threads: int | None, out: str | None, overwrite: bool, top: int, as_json: bool, **given: Any
) -> None:
    """Rank the features of LAKE by their co-movement with a model's output.

    LAKE is a folder, a file, a quoted glob or a URL of Parquet files.

    \b
    excir explain lake/ --output pred
    excir explain lake/ --model model.ubj --group-correlated 0.9 --out result/
    excir explain lake/ --model model.ubj --groups result/groups.yaml
    excir explain lake/ --output pred --group engine=rpm,torque --out result/
    excir explain 's3://bucket/lake/*.parquet' --output margin --features 'sensor_*,!sensor_id' --fraction 0.2
    excir explain lake/ --output pred --fraction auto --target-jaccard 0.9
    excir explain lake/ --output pred --scheduler tcp://10.0.0.5:8786
    excir explain lake/ --output pred --out result/ --checkpoint states/    # ended early? the same again goes on
    """
    import dask

    from excir_dask import display
    from excir_dask.explain import explain as run
    from excir_dask.folders import check_target

    if out is not None:
        check_target(out, overwrite)
    arguments = explain_arguments(**given)
    with dask.config.set({} if threads is None else {"num_workers": threads}):
        explanation = run(lake, **arguments)
    if out is not None:
        explanation.save(out, overwrite=overwrite)
        click.echo(f"saved in {out}", err=True)
    if as_json:
        click.echo(json.dumps(_summary(explanation, top, out), allow_nan=False))
    else:
        click.echo(display.text(explanation, k=top))


@excir.command()
@click.argument("lake")
@click.option("--output", "outputs", multiple=True, help="Column of model outputs; repeat for several.")
@click.option("--features", help="Comma-separated names or patterns; '!name' takes columns away.")
@click.option("--weights", metavar="COLUMN", help="Column of row weights.")
@click.option("--budget", default="128MiB", show_default=True, help="Decoded bytes that one slice may hold.")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON.")
def plan(
    lake: str, outputs: Sequence[str], features: str | None, weights: str | None, budget: str, as_json: bool
) -> None:
    """Say what a run over LAKE would read, from the footers alone.

    Prints files, rows, columns, slices, the memory a thread needs, and every conflict between the files' schemas.
    Exits with 3 if a conflict would stop the run.

    \b
    excir plan lake/
    excir plan lake/ --output pred --features 'sensor_*' --budget 64MiB
    """
    from excir_dask.survey import survey

    found = survey(
        lake,
        outputs=list(outputs),
        features=names(features),
        weights=weights,
        budget=budget,
    )
    click.echo(json.dumps(found.to_dict()) if as_json else str(found))
    if found.problem is not None:
        _fail(found.problem)


@excir.command()
@click.argument("lake")
@click.option("--label", metavar="COLUMN", required=True, help="Column to predict: classes or a number.")
@click.option("--out", type=click.Path(), required=True, help="File of the model: a name that ends .ubj or .json.")
@click.option("--overwrite", is_flag=True, help="Replace a model that is already there.")
@click.option("--features", help="Comma-separated names or patterns to learn from; '!name' takes columns away.")
@click.option("--weights", metavar="COLUMN", help="Column of row weights.")
@click.option(
    "--params", multiple=True, metavar="KEY=VALUE",
    help="A parameter of XGBoost, or @FILE with several (JSON or YAML); repeat for more.",
)  # fmt: skip
@click.option("--rounds", type=int, default=200, show_default=True, help="Rounds of boosting, at most.")
@click.option(
    "--early-stopping", type=int, default=20, show_default=True,
    help="Stop after so many rounds without a better validation metric; 0 for never.",
)  # fmt: skip
@click.option("--validation", type=float, default=0.2, show_default=True, help="Share of the rows to validate with.")
@click.option("--fraction", type=float, default=1.0, show_default=True, help="Share of the rows to use at all.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of sample, validation rows and XGBoost.")
@click.option("--budget", default="128MiB", show_default=True, help="Bytes that one partition of rows may hold.")
@click.option("--scheduler", metavar="ADDRESS", help="Address of a dask scheduler. [default: this machine]")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON.")
def train(
    lake: str, out: str, overwrite: bool, features: str | None, params: Sequence[str], as_json: bool, **options: Any
) -> None:
    """Train an XGBoost model on the rows of LAKE.

    Text, truth values and integers with 2 to 100 different values are classes, as are floating numbers that are all
    0 or 1; any other label is a number to predict. The model keeps the trees up to its best round, and a file beside
    it, NAME.training.json, tells how it was trained.

    \b
    excir train lake/ --label broken --out model.ubj
    excir train lake/ --label city --out model.ubj --features '!id' --params max_depth=4 --params eval_metric=merror
    excir train 's3://bucket/lake/*.parquet' --label price --out model.json --fraction 0.1 --params @params.yaml
    """
    from excir_dask.training.params import parse_params
    from excir_dask.training.train import train as run

    training = run(
        lake,
        out=out,
        overwrite=overwrite,
        features=names(features),
        params=parse_params(params),
        **options,
    )
    click.echo(f"saved in {out}", err=True)
    if as_json:
        click.echo(json.dumps({**training.summary(), "out": out}, allow_nan=False))
    else:
        click.echo(str(training))
        click.echo(f"\nTry next:\n  excir explain {shlex.quote(lake)} --model {shlex.quote(out)}")


@excir.command()
@click.argument("a")
@click.argument("b")
@click.option("--k", type=click.IntRange(min=1), default=8, show_default=True, help="Size of the top that is compared.")
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True, help="Shifts of scores to print.")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON.")
def compare(a: str, b: str, k: int, top: int, as_json: bool) -> None:
    """Say how far explanation B agrees with explanation A.

    A and B are folders that `excir explain --out` saved. Order is compared by Jaccard@k (and what chance gives),
    Spearman, Kendall and nDCG@k, shape by Procrustes, affine and KL residuals, scores by their standard errors.

    \b
    excir compare full/ sample/
    excir compare january/ february/ --k 20 --json
    """
    from excir_dask.transfer import words
    from excir_dask.transfer.agreement import compare as run

    found = run(a, b, k)
    click.echo(json.dumps(found.to_dict(top), allow_nan=False) if as_json else words.text(found, top))


@excir.command()
@click.option("--folder", default="excir-demo", show_default=True, type=click.Path(), help="Where the demo works.")
@click.option("--rows", default=300_000, show_default=True, type=click.IntRange(min=1000), help="Rows of the lake.")
def demo(folder: str, rows: int) -> None:
    """Make a lake, train a model on it, and explain it: the whole product in under a minute.

    The lake has blocks of correlated sensors. An XGBoost model is trained on it, its margin is written
    to the lake, and the margin is explained with the blocks as groups.
    """
    from excir_dask.demo import run

    run(folder, rows)


excir.add_command(sweep)
excir.add_command(audit)


def main() -> NoReturn:
    """Run the command line; errors become one line on standard error and an exit code."""
    try:
        code = excir.main(standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except click.exceptions.Abort:
        click.echo("stopped", err=True)
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except ExcirError as error:
        _fail(error)
    except KeyboardInterrupt:
        click.echo("stopped", err=True)
        sys.exit(130)
    except OSError as error:  # a disk that is full while results are saved, for instance
        click.echo(f"excir: {error}", err=True)
        sys.exit(75)


def _fail(error: ExcirError) -> NoReturn:
    click.echo(f"excir: {error}", err=True)
    sys.exit(error.exit_code)


def _summary(explanation: Any, top: int, out: str | None) -> dict[str, Any]:
    return {
        "rows": explanation.facts["rows"],
        "features": int(explanation.features["feature"].nunique()),
        "top": {
            output: explanation.top(top, output)[["feature", "cir", "direction", "stderr"]].to_dict("records")
            for output in explanation.outputs["output"]
        },
        "groups": explanation.groups.drop(columns=["numerator", "denominator"]).to_dict("records"),
        "left_out": sorted(explanation.facts["left_out"]),
        "seconds": explanation.provenance["seconds"],
        "out": out,
    }
