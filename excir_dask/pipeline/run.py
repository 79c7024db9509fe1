"""One run in order: two scans of a plan, from centres to sums to scores to an explanation."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from excir_dask.errors import DataError, NoRowsError
from excir_dask.graph.checkpoint import Checkpoint
from excir_dask.graph.run import Runner
from excir_dask.graph.scans import Scans
from excir_dask.graph.slices import LakeStats
from excir_dask.kernels.categories import MOST_VALUES
from excir_dask.kernels.centers import ColumnStats, center_errors, centers, concatenate
from excir_dask.kernels.scores import score
from excir_dask.kernels.sums import Sums
from excir_dask.lake.footers import still_columns, unlike_columns
from excir_dask.lake.select import Selection
from excir_dask.lake.snapshot import check_unchanged
from excir_dask.models.checks import check_categories, known_categories
from excir_dask.pipeline.groups import WantedGroups, all_groups
from excir_dask.pipeline.inputs import Inputs, Outputs
from excir_dask.pipeline.metadata import facts, output_table, provenance
from excir_dask.results.explanation import Explanation
from excir_dask.results.tables import feature_table, group_table


@dataclass(frozen=True)
class Settings:
    """What decides the scores beside the rows."""

    centering: str
    rank_by: str
    categoricals: str
    max_categories: int
    groups: WantedGroups
    group_rows: int
    """rows in which groups are looked for"""


@dataclass(frozen=True)
class Attempt:
    """An explanation, and the scans behind it: what a model said of their rows is still there."""

    explanation: Explanation
    scans: Scans


def attempt(
    inputs: Inputs,
    settings: Settings,
    runner: Runner,
    earlier: Scans | None = None,
    checkpoint: Checkpoint | None = None,
    hold: float | None = None,
) -> Attempt:
    """Explain the rows of a plan.

    Parameters
    ----------
    inputs : Inputs
    settings : Settings
    runner : Runner
    earlier : Scans, optional
        Of a smaller sample by the same runner: what is known of its rows is taken over.
    checkpoint : Checkpoint, optional
        Where states of finished slices are kept, and taken from.
    hold : float, optional
        Share of the rows that is read once for all scans, and for those that come after.
    """
    began = time.perf_counter()
    model, selection, sample = inputs.outputs.model, inputs.plan.selection, inputs.sample
    resumed = None if checkpoint is None else checkpoint.states()
    scans = Scans(inputs.plan, inputs.layout, runner, inputs.frames, model, earlier, checkpoint, hold)
    if model is not None and earlier is None:
        known = known_categories(model)
        check_categories(model, scans.categories({column: len(values) for column, values in known.items()}))
    looked_for = settings.groups.correlated is not None
    stats = scans.statistics(settings.centering, settings.max_categories, settings.group_rows if looked_for else 0)
    _check_rows(stats, inputs.outputs)
    names = _feature_names(selection, stats)
    output_names = inputs.outputs.columns.names or stats.output_names
    features = concatenate([stats.features, stats.indicators])
    feature_centers, output_centers = centers(features, settings.centering), centers(stats.outputs, settings.centering)
    sums = scans.sums(feature_centers, output_centers, stats)
    if inputs.snapshot is not None:
        check_unchanged(inputs.snapshot)
    _check_range(sums, names, output_names)

    feature_errors = center_errors(features, settings.centering, feature_centers.center, sums.below)
    output_errors = center_errors(stats.outputs, settings.centering, output_centers.center, sums.output_below)
    whole_groups = sample.by == "row-groups" and sample.fraction < 1.0
    scores = score(sums, features, stats.outputs, feature_errors, output_errors, whole_groups)
    table = feature_table(names, output_names, features, stats.outputs, feature_centers, sums, scores, settings.rank_by)
    still = _still(inputs, names, features) if sample.fraction < 1.0 else []
    unlike = [] if inputs.snapshot is None else unlike_columns(inputs.snapshot, sample, inputs.layout.fixed)
    groups = all_groups(settings.groups, selection, stats, table)
    explanation = Explanation(
        features=table,
        groups=group_table(table, groups, settings.rank_by),
        outputs=output_table(output_names, inputs.outputs, stats.outputs, output_centers.center, output_errors),
        facts=facts(
            inputs, stats, int(sums.units), still, unlike, output_names,
            fraction=sample.fraction, sampling=sample.by, seed=sample.seed, weights=selection.weight,
            centering=settings.centering, rank_by=settings.rank_by,
            categoricals=settings.categoricals, max_categories=settings.max_categories,
            group_correlated=settings.groups.correlated, group_rows=settings.group_rows if looked_for else None,
        ),
        provenance=provenance(inputs, stats.counts.bytes_read + float(sums.bytes_read), resumed, began),
    )  # fmt: skip
    return Attempt(explanation, scans)


def _still(inputs: Inputs, names: Sequence[str], features: ColumnStats) -> list[str]:
    """Features that do not vary in the sample because they do not vary at all."""
    constant = [name for name, still in zip(names, features.constant | (features.n == 0), strict=True) if still]
    return still_columns(inputs.lake, inputs.snapshot, constant)


def _check_rows(stats: LakeStats, outputs: Outputs) -> None:
    counts = stats.counts
    if counts.used == 0:
        source = ", ".join(outputs.columns.columns) or "the model's outputs"
        raise NoRowsError(
            f"no row is left to explain: {counts.read} rows, {counts.sampled} in the sample, "
            f"{counts.without_output} of those without a finite value in {source}, "
            f"{counts.without_weight} without a positive weight"
        )


def _feature_names(selection: Selection, stats: LakeStats) -> list[str]:
    """Columns, elements of vectors and categories; what is known only now may still be wrong with them."""
    for column in stats.too_many:
        if column in selection.named:
            raise DataError(
                f"column '{column}' (features) has more than {MOST_VALUES:,} different values, too many to be "
                "categories; leave it out, or make fewer of them"
            )
    names = [*selection.features, *(name for column in stats.categories for name in column.features)]
    if not names:
        raise DataError(f"no feature is left: {', '.join(stats.too_many)} have too many values to be categories")
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise DataError(f"two features are called '{twice}', a category and another column; rename that column")
    return names


def _check_range(sums: Sums, names: Sequence[str], output_names: Sequence[str]) -> None:
    large = ~np.isfinite(sums.squares + sums.denominator)
    small = (sums.denominator > 0) & (sums.squares == 0)
    if (large | small).any():
        k, j = np.argwhere(large | small)[0]
        size, cure = ("large", "divide") if large[k, j] else ("small", "multiply")
        raise DataError(
            f"column '{names[j]}' times output '{output_names[k]}' is too {size} to square; "
            f"{cure} one of them by a constant (scores do not change by that)"
        )
