"""Options that several commands share, and what they become as arguments of :func:`~excir_dask.explain`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from excir_dask.cli.types import FilePath, Fraction, Groups, Names, Output
from excir_dask.errors import UsageError

Command = TypeVar("Command", bound=Callable[..., Any])


QUESTION = (
    click.option(
        "--output", "outputs", multiple=True, type=Output(), metavar="[CLASS=]COLUMN",
        help="Column of model outputs, with a name for it if you like; repeat for several.",
    ),
    click.option("--model", type=FilePath(), help="In place of --output: an XGBoost, LightGBM or ONNX file."),
    click.option(
        "--predict-type", type=click.Choice(["margin", "probability"]), default="margin", show_default=True,
        help="What the model is asked for.",
    ),
    click.option(
        "--model-columns", type=Names(), metavar="a,b,...",
        help="Columns of a model that does not name them, in its order.",
    ),
    click.option(
        "--allow-pickle/--no-allow-pickle", help="Load a pickle or joblib file, which runs the code in it."
    ),
    click.option(
        "--features", type=Names(), metavar="a,b,...", help="Names or patterns to explain; '!name' takes columns away."
    ),
    click.option(
        "--categoricals", type=click.Choice(["omit", "indicators"]), default="omit", show_default=True,
        help="Text columns: left out, or one 0/1 feature a category.",
    ),
    click.option(
        "--max-categories", type=click.IntRange(min=1), default=20, show_default=True,
        help="Categories of a column that are features; the others are one feature together.",
    ),
    click.option(
        "--group", "groups", multiple=True, type=Groups(), metavar="NAME=a,b,...",
        help="A group of features; repeat for several.",
    ),
    click.option("--groups", "groups_file", type=FilePath(), help="YAML or JSON file of groups: name: [features]."),
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

BUDGET = (click.option("--budget", default="128MiB", show_default=True, help="Decoded bytes that one slice may hold."),)
"""how the lake is cut"""

THREADS = (
    click.option("--threads", type=click.IntRange(min=1), help="Threads on this machine. [default: one a core]"),
)
"""how many at once"""

RUNNING = (
    click.option("--scheduler", metavar="ADDRESS", help="Address of a dask scheduler. [default: this machine]"),
    click.option("--cluster", type=FilePath(), help="In place of --scheduler: a file such as those in cluster/."),
    click.option(
        "--performance-report", type=FilePath(), metavar="FILE",
        help="With a cluster: save dask's report of tasks, workers and transfers as HTML.",
    ),
)  # fmt: skip
"""where it runs"""

RESULT = (
    click.option("--out", type=FilePath(), metavar="FOLDER", help="Folder to save the result in."),
    click.option("--overwrite/--no-overwrite", "overwrite", help="Replace another result that is already there."),
    click.option(
        "--force/--no-force", "force", help="Compute again what is there already, of the same question and files."
    ),
)
"""where the result goes"""

JSON = (click.option("--json/--no-json", "as_json", help="Print one line of JSON instead of tables."),)

CONSOLE = (
    *JSON,
    click.option("-q", "--quiet", is_flag=True, help="Nothing on standard error but errors."),
    click.option("-v", "--verbose", is_flag=True, help="Say what is planned, and how long each scan takes."),
)
"""what is printed"""


def options(*some: Sequence[Callable[[Command], Command]]) -> Callable[[Command], Command]:
    """Give a command some of these, in the order of its help."""

    def decorate(command: Command) -> Command:
        for option in reversed([option for several in some for option in several]):
            command = option(command)
        return command

    return decorate


def explain_arguments(
    outputs: Sequence[tuple[str | None, str]], groups: Sequence[tuple[str, list[str]]], groups_file: str | None,
    **others: Any,
) -> dict[str, Any]:  # fmt: skip
    """Arguments of :func:`~excir_dask.explain` from the options of ``QUESTION`` and others of the same names."""
    from excir_dask.pipeline.groups import combine
    from excir_dask.results.group_files import read_groups

    given = [name for name, _ in groups]
    for name in given:
        if given.count(name) > 1:
            raise UsageError(f"group '{name}' is given twice; give all its members in one --group")
    sources = [("--group", dict(groups)), *([(groups_file, read_groups(groups_file))] if groups_file else [])]
    return {"output": _output(outputs), "groups": combine(*sources), **others}


def _output(outputs: Sequence[tuple[str | None, str]]) -> str | list[str] | dict[str, str] | None:
    columns = [column for _, column in outputs]
    if all(name is None for name, _ in outputs):
        return columns[0] if len(columns) == 1 else columns or None
    names = [name or column for name, column in outputs]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"output '{name}' is given twice; give each column a name of its own")
    return dict(zip(names, columns, strict=True))
