"""Options that several commands share, and what they become as arguments of :func:`~excir_dask.explain`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from excir_dask.errors import UsageError
from excir_dask.options import Fraction, Groups

Command = TypeVar("Command", bound=Callable[..., Any])


QUESTION = (
    click.option("--output", "outputs", multiple=True, help="Column of model outputs; repeat for several."),
    click.option("--model", type=click.Path(), help="In place of --output: an XGBoost, LightGBM or ONNX file."),
    click.option(
        "--predict-type", type=click.Choice(["margin", "probability"]), default="margin", show_default=True,
        help="What the model is asked for.",
    ),
    click.option("--model-columns", help="Comma-separated columns of a model that does not name them, in its order."),
    click.option("--allow-pickle", is_flag=True, help="Load a pickle or joblib file, which runs the code in it."),
    click.option("--features", help="Comma-separated names or patterns to explain; '!name' takes columns away."),
    click.option(
        "--categoricals", type=click.Choice(["omit", "indicators"]), default="omit", show_default=True,
        help="Text columns: left out, or one 0/1 feature a category.",
    ),
    click.option(
        "--max-categories", type=click.IntRange(min=1), default=20, show_default=True,
        help="Categories of a column that are features; the others are one feature together.",
    ),
    click.option("--group", "groups", multiple=True, type=Groups(), help="A group of features; repeat for several."),
    click.option("--groups", "groups_file", type=click.Path(), help="YAML or JSON file of groups: name: [features]."),
    click.option("--group-prefix", metavar="SEP", help="Group features by what stands before their last SEP."),
    click.option(
        "--group-correlated", type=float, metavar="R", help="Find groups with rank correlations of at least R."
    ),
    click.option(
        "--group-rows", type=click.IntRange(min=2), default=5000, show_default=True,
        help="Rows that groups are found in.",
    ),
    click.option("--weights", metavar="COLUMN", help="Column of row weights."),
)  # fmt: skip
"""what is explained"""

SAMPLING = (
    click.option(
        "--sampling", type=click.Choice(["rows", "row-groups"]),
        help="Draw each row, or whole row groups, which saves reading the others. [default: rows; auto chooses]",
    ),
)  # fmt: skip
"""what a sample is drawn from"""

SAMPLE = (
    click.option(
        "--fraction", type=Fraction(), default=1.0, show_default=True,
        help="Share of the rows to use, or 'auto' for as many as the target takes.",
    ),
    *SAMPLING,
    click.option(
        "--target-jaccard", type=float, default=0.9, show_default=True,
        help="With --fraction auto: Jaccard of the top features with those of all rows.",
    ),
    click.option(
        "--confidence", type=float, default=0.95, show_default=True,
        help="With --fraction auto: probability that the target is met.",
    ),
    click.option(
        "--k", type=click.IntRange(min=1), default=8, show_default=True, help="How many features the top has."
    ),
    click.option("--seed", type=int, default=0, show_default=True, help="Seed of the row sample."),
)  # fmt: skip
"""on which rows"""

SCORING = (
    click.option(
        "--centering", type=click.Choice(["midhinge", "median", "mean", "trimmed"]), default="midhinge",
        show_default=True, help="What features and outputs are centred on.",
    ),
    click.option(
        "--rank-by", type=click.Choice(["strength", "cir"]), default="strength", show_default=True,
        help="What ranks follow.",
    ),
)  # fmt: skip
"""how scores are made"""

RUNNING = (
    click.option("--budget", default="128MiB", show_default=True, help="Decoded bytes that one slice may hold."),
    click.option("--threads", type=click.IntRange(min=1), help="Threads on this machine. [default: one a core]"),
    click.option("--scheduler", metavar="ADDRESS", help="Address of a dask scheduler. [default: this machine]"),
    click.option("--cluster", type=click.Path(), help="In place of --scheduler: a file such as those in cluster/."),
)
"""where it runs"""


def options(*some: Sequence[Callable[[Command], Command]]) -> Callable[[Command], Command]:
    """Give a command some of these, in the order of its help."""

    def decorate(command: Command) -> Command:
        for option in reversed([option for several in some for option in several]):
            command = option(command)
        return command

    return decorate


def explain_arguments(
    outputs: Sequence[str], model_columns: str | None, features: str | None,
    groups: Sequence[tuple[str, list[str]]], groups_file: str | None, **others: Any,
) -> dict[str, Any]:  # fmt: skip
    """Arguments of :func:`~excir_dask.explain` from the options of ``QUESTION`` and others of the same names."""
    from excir_dask.grouping import combine, read_groups

    given = [name for name, _ in groups]
    for name in given:
        if given.count(name) > 1:
            raise UsageError(f"group '{name}' is given twice; give all its members in one --group")
    sources = [("--group", dict(groups)), *([(groups_file, read_groups(groups_file))] if groups_file else [])]
    return {
        "output": outputs[0] if len(outputs) == 1 else list(outputs) or None,
        "model_columns": names(model_columns),
        "features": names(features),
        "groups": combine(*sources),
        **others,
    }


def names(text: str | None) -> list[str] | None:
    """Names that commas separate."""
    return None if text is None else [name.strip() for name in text.split(",")]
