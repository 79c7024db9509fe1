"""One call from a plan to everything that scores follow from.

:func:`measure` is the only way into this folder for whoever explains a lake. How often the rows are read for it, and in
what order, is decided behind it and is no part of its result.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from excir_dask.errors import DataError, NoRowsError
from excir_dask.graph.checkpoint import Checkpoint
from excir_dask.graph.run import Runner
from excir_dask.graph.scans import Scans
from excir_dask.graph.sources import Sources
from excir_dask.graph.summary_scan import SpanStats
from excir_dask.kernels.categories import MOST_VALUES, Categories
from excir_dask.kernels.centers import Centers, ColumnStats, center_errors, centers, concatenate
from excir_dask.kernels.rowsample import RowSample
from excir_dask.kernels.sums import Sums
from excir_dask.lake.blocks import Layout, RowCounts
from excir_dask.lake.plan import Plan
from excir_dask.lake.select import Selection
from excir_dask.models.checks import check_categories, known_categories

if TYPE_CHECKING:
    from excir_dask.models.scoring import Model


@dataclass(frozen=True)
class Request:
    """What to measure."""

    centering: str
    max_categories: int = 0
    """categories of a column that become features; the others become one feature together"""
    sample_rows: int = 0
    """rows to return to the client as they are"""


@dataclass(frozen=True)
class MeasuredColumns:
    """What is known of some columns, in order."""

    names: tuple[str, ...]
    stats: ColumnStats
    centers: Centers
    center_errors: NDArray[np.float64]
    """(columns,) certified distance between the centres and the exact ones"""


@dataclass(frozen=True)
class Measurement:
    """Everything that scores follow from."""

    rows: RowCounts
    row_groups: int
    """row groups with rows that count; 0 for a DataFrame"""
    features: MeasuredColumns
    """columns of numbers, then the 0/1 features of categories"""
    outputs: MeasuredColumns
    sums: Sums
    """at these centres"""
    categories: tuple[Categories, ...]
    """of each column of categories, those that are features"""
    too_many: tuple[str, ...]
    """columns with too many categories"""
    sample: RowSample | None
    """rows of the columns of numbers; None where none were requested"""
    bytes_read: int
    """compressed bytes of the column chunks that were read"""
    resumed_states: int | None
    """states taken from the checkpoint; None without one"""
    sources: Sources
    """rows and model outputs that the runner still has, for a larger sample"""


def measure(
    plan: Plan,
    layout: Layout,
    request: Request,
    runner: Runner,
    *,
    frames: Sequence[Any] | None = None,
    model: Model | None = None,
    checkpoint: Checkpoint | None = None,
    earlier: Measurement | None = None,
    cache_fraction: float | None = None,
) -> Measurement:
    """Measure the rows of a plan.

    Parameters
    ----------
    plan : Plan
    layout : Layout
    request : Request
    runner : Runner
    frames : sequence, optional
        For each span of rows, the piece of a DataFrame it stands for (a delayed partition, or the piece itself).
    model : Model, optional
        What makes the outputs, where they are not columns.
    checkpoint : Checkpoint, optional
        Where states of finished slices are saved, and taken from.
    earlier : Measurement, optional
        Of a smaller sample of the same lake by the same runner: the model does not see its rows again, and cached rows
        are not read again.
    cache_fraction : float, optional
        Share of the rows that is read once and cached, at least that of the sample; None reads them again whenever they
        are needed.
    """
    sources = Sources(
        plan,
        layout,
        uuid.uuid4().hex,
        frames=frames,
        model=model,
        checkpoint=checkpoint,
        cache_fraction=cache_fraction,
        earlier=None if earlier is None else earlier.sources,
    )
    scans = Scans(sources, runner, checkpoint)
    if model is not None and earlier is None:
        known = {column: len(values) for column, values in known_categories(model).items()}
        check_categories(model, scans.categories(known))
    stats = scans.statistics(request.centering, request.max_categories, request.sample_rows)
    rows, outputs = stats.rows, stats.rows.outputs
    _check_rows(rows.counts, layout)
    names = _feature_names(plan.selection, rows)
    features = concatenate([stats.features, rows.indicators])
    feature_centers, output_centers = (centers(each, request.centering) for each in (features, outputs))
    sums, row_sums = scans.sums(feature_centers, output_centers, stats)
    feature_errors = center_errors(features, request.centering, feature_centers.center, sums.below)
    output_errors = center_errors(outputs, request.centering, output_centers.center, row_sums.below)
    return Measurement(
        rows.counts,
        row_sums.units,
        MeasuredColumns(names, features, feature_centers, feature_errors),
        MeasuredColumns(rows.output_names, outputs, output_centers, output_errors),
        sums,
        rows.categories,
        rows.too_many,
        stats.sample,
        scans.cost.bytes_read,
        None if checkpoint is None else scans.cost.resumed,
        sources,
    )


def _check_rows(counts: RowCounts, layout: Layout) -> None:
    if counts.used == 0:
        source = ", ".join(layout.outputs) or "the model's outputs"
        raise NoRowsError(
            f"no row is left to explain: {counts.read} rows, {counts.sampled} in the sample, "
            f"{counts.without_output} of those without a finite value in {source}, "
            f"{counts.without_weight} without a positive weight"
        )


def _feature_names(selection: Selection, rows: SpanStats) -> tuple[str, ...]:
    """Columns, elements of vectors and categories; refuses what only the values could tell."""
    for column in rows.too_many:
        if column in selection.named:
            raise DataError(
                f"column '{column}' (features) has more than {MOST_VALUES:,} different values, too many to be "
                "categories; leave it out, or make fewer of them"
            )
    names = (*selection.features, *(name for column in rows.categories for name in column.features))
    if not names:
        raise DataError(f"no feature is left: {', '.join(rows.too_many)} have too many values to be categories")
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise DataError(f"two features are called '{twice}', a category and another column; rename that column")
    return names
