"""The command ``excir explain``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from excir_dask.cli.config_file import CONFIG, Command
from excir_dask.cli.options import CONSOLE, EXPLAIN, PERFORMANCE, THREADS, explain_arguments, explain_options, options
from excir_dask.cli.running import running
from excir_dask.cli.types import Lake
from excir_dask.errors import UsageError
from excir_dask.pipeline.options import AUTO, OPTIONS, Counts, ExplainOptions

if TYPE_CHECKING:
    from excir_dask.results.explanation import Explanation

FORMATS = ("table", "json", "csv", "md")
"""what the command can print"""


@click.command(cls=Command)
@click.argument("lake", type=Lake())
@options(CONFIG, explain_options(*EXPLAIN), THREADS, PERFORMANCE)
@click.option("--top", type=click.IntRange(min=1), default=15, show_default=True, help="Features to print per output.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="table",
    show_default=True,
    help="What to print: a table with bars, the same as --json, CSV of all features, or Markdown.",
)
@options(CONSOLE)
def explain(lake: Any, top: int, form: str, as_json: bool, **given: Any) -> None:
    """Rank the features of LAKE by their co-movement with a model's output.

    LAKE is a folder, a file, a quoted glob or a URL of Parquet files, or a Delta Lake or Iceberg table. If --out
    already holds this result, it is printed and nothing is computed.

    \b
    excir explain lake/ --output pred
    excir explain lake/ --model model.ubj --group-correlated 0.9 --out result/
    excir explain lake/ --model model.ubj --groups result/groups.yaml
    excir explain lake/ --output pred --group engine=rpm,torque --out result/
    excir explain lake/ --output cat=margin_0 --output dog=margin_1
    excir explain 's3://bucket/lake/*.parquet' --output margin --features 'sensor_*,!sensor_id' --fraction 0.2
    excir explain lake/ --output pred --where "date >= '2026-09-01' and region == 'EU'"
    excir explain lake/ --output pred --fraction auto --target-jaccard 0.9
    excir explain lake/ --output pred --scheduler tcp://10.0.0.5:8786 --performance-report dask.html
    excir explain lake/ --output pred --out result/ --checkpoint states/    # ended early? run it again to resume
    excir explain --config job.yaml --fraction 0.1                          # options from a file, one changed
    """
    from excir_dask.explain import explain_with

    _check_typed(given["fraction"])
    if as_json and form not in ("table", "json"):
        raise UsageError(f"--json and --format {form} are both given; leave one of them out")
    with running(explain_arguments(**given)) as arguments:
        explanation = explain_with(lake, ExplainOptions(**arguments))
    click.echo(_printed(explanation, "json" if as_json else form, top, given["out"]), nl=form != "csv")


def _printed(explanation: Explanation, form: str, top: int, out: str | None) -> str:
    from excir_dask.render.text.explanation import text
    from excir_dask.render.text.markdown import markdown

    if form == "json":
        return json.dumps(summary(explanation, top, out), allow_nan=False)
    if form == "csv":
        return explanation.to_csv() or ""
    return markdown(explanation, k=top) if form == "md" else text(explanation, k=top)


def _check_typed(fraction: float | str) -> None:
    """An option that is typed must have an effect."""
    for name in (name for name, option in OPTIONS.items() if option.counts is Counts.ADAPTIVE):
        typed = click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE
        if typed and fraction != AUTO:
            flag = "--" + name.replace("_", "-")
            raise UsageError(f"{flag} applies to --fraction auto, and the fraction is {fraction}; leave one out")


def summary(explanation: Explanation, top: int, out: str | None) -> dict[str, Any]:
    """What ``--json`` prints."""
    from excir_dask.render.text.explanation import with_intervals

    facts = explanation.facts
    return {
        "rows": facts.rows.to_dict(),
        "features": int(explanation.features["feature"].nunique()),
        "top": {
            output: with_intervals(explanation, output)
            .head(top)
            .filter(["feature", "cir", "direction", "stderr", "low", "high", "p_top"])
            .to_dict("records")
            for output in explanation.outputs["output"]
        },
        "groups": explanation.groups.drop(columns=["numerator", "denominator"]).to_dict("records"),
        "left_out": sorted(facts.left_out),
        "fraction": facts.settings.fraction,
        "auto": None if facts.auto is None else facts.auto.to_dict(),
        "seconds": explanation.provenance.seconds,
        "run_id": explanation.provenance.run_id,
        "out": out,
    }
