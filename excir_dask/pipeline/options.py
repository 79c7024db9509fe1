"""What is asked for: the arguments of a run, understood and checked before a row is read."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from excir_dask.errors import UsageError, nearest
from excir_dask.kernels.centers import CENTERINGS
from excir_dask.kernels.scores import RANKINGS
from excir_dask.lake.sample import Sample
from excir_dask.pipeline.adaptive import Goal
from excir_dask.pipeline.groups import understand_groups
from excir_dask.pipeline.inputs import Inputs, identity, parse_bytes, prepare, understand_outputs
from excir_dask.pipeline.run import Settings
from excir_dask.pipeline.run_id import make_id

CHOICES: dict[str, Sequence[str]] = {
    "centering": tuple(CENTERINGS), "rank_by": tuple(RANKINGS), "categoricals": ("omit", "indicators"),
}  # fmt: skip
"""what arguments that are words may be"""


@dataclass(frozen=True)
class Question:
    """Everything that decides about an explanation."""

    inputs: Inputs
    settings: Settings
    goal: Goal | None
    """when a growing sample is large enough; None where the sample is given"""
    sampling: str | None
    """as it was given"""

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What its states in a checkpoint are told by."""
        return identity(self.inputs, asdict(self.settings))

    @cached_property
    def run_id(self) -> str | None:
        """The same for the same question to the same files; None for a DataFrame, of which nobody can say that."""
        if self.inputs.snapshot is None:
            return None
        return make_id(
            {
                **self.identity,
                "names": self.inputs.outputs.columns.names,
                "fraction": self.inputs.sample.fraction,
                "sampling": self.sampling if self.goal else self.inputs.sample.by,
                "goal": asdict(self.goal) if self.goal else None,
            }
        )


def ask(
    lake: Any,
    *,
    output: str | Sequence[str] | Mapping[str, str] | None,
    model: Any,
    predict_type: str,
    model_columns: Sequence[str] | None,
    allow_pickle: bool,
    features: str | Sequence[str] | None,
    categoricals: str,
    max_categories: int,
    groups: Mapping[str, Sequence[str]] | str | os.PathLike[str] | None,
    group_prefix: str | None,
    group_correlated: float | None,
    group_rows: int,
    weights: str | None,
    fraction: float | str,
    sampling: str | None,
    seed: int,
    target_jaccard: float,
    confidence: float,
    k: int,
    centering: str,
    rank_by: str,
    budget: int | str,
    storage_options: Mapping[str, Any] | None,
    table_version: int | None = None,
    verify_checksums: bool = True,
) -> Question:
    """Understand the arguments of :func:`~excir_dask.explain`, which says what they mean. Reads footers, no data."""
    for name, value in (("centering", centering), ("rank_by", rank_by), ("categoricals", categoricals)):
        check_choice(name, value)
    if max_categories < 1 or group_rows < 2:
        raise UsageError(f"max_categories is {max_categories} and group_rows is {group_rows}; at least 1 and 2")
    goal = None
    if fraction == "auto":
        goal = Goal(target_jaccard, confidence, k)
        fraction = 1.0
    if isinstance(fraction, str):
        raise UsageError(f"fraction is '{fraction}'; it is a number above 0 and at most 1, or 'auto'")
    outputs = understand_outputs(output, model, predict_type, model_columns, allow_pickle)
    inputs = prepare(
        lake, outputs,
        features=features, weights=weights, indicators=categoricals == "indicators",
        sample=Sample(fraction, seed, sampling or "rows"), budget=parse_bytes(budget), storage_options=storage_options,
        table_version=table_version, verify_checksums=verify_checksums,
    )  # fmt: skip
    wanted = understand_groups(groups, group_prefix, group_correlated, group_rows, inputs.plan.selection)
    return Question(
        inputs, Settings(centering, rank_by, categoricals, max_categories, wanted, group_rows), goal, sampling
    )


def check_choice(name: str, value: Any) -> None:
    """Refuse a value that is none of those that an argument may have."""
    choices = CHOICES[name]
    if value not in choices:
        raise UsageError(f"{name} is '{value}'{nearest(str(value), choices)} (one of {', '.join(choices)})")
