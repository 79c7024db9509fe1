"""From a plan to exact centres: a pilot, the pass over all rows, and another look at what that left open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from excir_dask.errors import DataError, NoRowsError, UsageError
from excir_dask.graph.closer import OUTPUT_CELLS, Closer
from excir_dask.graph.lake_state import LakeState, Settled
from excir_dask.graph.pass_scan import PassRequest, References
from excir_dask.graph.pilot_scan import reference_of
from excir_dask.graph.scans import Scans
from excir_dask.kernels.brackets import make_reference
from excir_dask.kernels.categories import (
    MOST_VALUES,
    Categories,
    CategoryCounts,
    choose_categories,
    indicator_summaries,
)
from excir_dask.kernels.centers import CENTERINGS
from excir_dask.kernels.reference import Reference
from excir_dask.kernels.rowsample import RowSample, draw_threshold
from excir_dask.lake.blocks import Layout, RowCounts
from excir_dask.lake.pilot import Pilot
from excir_dask.lake.select import Selection


@dataclass(frozen=True)
class Request:
    """What to measure."""

    centering: str
    max_categories: int = 0
    """categories of a column that become features; the others become one feature together"""
    sample_rows: int = 0
    """rows to return to the client as they are"""
    joint: bool = True
    """rows by coarse cells of feature and output: what dependence and profiles are made of"""


@dataclass(frozen=True)
class Found:
    """What is known once all rows were looked at."""

    names: tuple[str, ...]
    settled: Settled
    lake: LakeState
    """seen from the reference that was given, or from one that all centres follow from"""
    sample: RowSample | None


@dataclass(frozen=True)
class _Start:
    """What is fixed before the pass."""

    references: References
    categories: tuple[Categories, ...]
    too_many: tuple[str, ...]
    output_names: tuple[str, ...]
    """empty where only the pass tells"""


def look(scans: Scans, request: Request, pilot: Pilot, reference: LakeState | None = None) -> Found:
    """Pilot, pass, and further looks as needed; no pilot where a reference is given."""
    plan, layout, centering = scans.plan, scans.layout, request.centering
    start = _pilot(scans, request, pilot) if reference is None else _given(reference, layout, centering)
    wanted = PassRequest(
        totals=CENTERINGS[centering].needs_totals,
        joint=request.joint,
        sample_rows=request.sample_rows,
        threshold=draw_threshold(request.sample_rows, plan.rows),
    )
    columns, span = scans.all_rows(start.references, start.categories, wanted)
    assert span is not None, "a pass over all columns tells of the rows"
    _check_rows(span.counts, layout)
    span = replace(span, output_names=span.output_names or start.output_names)
    if reference is not None and span.output_names != start.output_names:
        raise UsageError(
            f"the reference has the outputs {', '.join(start.output_names)}, and this run has "
            f"{', '.join(span.output_names)}; name the same ones, or leave the reference out"
        )
    names = _feature_names(plan.selection, start.categories, start.too_many)
    seen = LakeState(
        centering, layout.features, start.categories, start.too_many, start.references, columns.state, span
    )
    settled, best = Closer(scans, wanted).settle(seen)
    sample = columns.sample
    if sample is not None and sample.draws.size < min(request.sample_rows, span.counts.used):
        share = span.counts.used / max(span.counts.sampled + span.counts.filtered_out, 1)
        sample = scans.picked_rows(request.sample_rows, draw_threshold(int(request.sample_rows / share), plan.rows))
    return Found(names, settled, best if reference is None else seen, sample)


def _pilot(scans: Scans, request: Request, pilot: Pilot) -> _Start:
    """From a part of the rows; categories are counted in all of them."""
    centering = request.centering
    counts = scans.counted_categories()
    categories, too_many = _chosen(scans.layout.categoricals, counts, request.max_categories)
    features, outputs, output_names = _references(scans, centering, pilot)
    summaries = [one for c, chosen in zip(counts, categories, strict=True) for one in indicator_summaries(c, chosen)]
    indicators = make_reference(summaries, [np.empty(0)] * len(summaries), centering, True)
    return _Start(References(features, outputs, indicators), categories, too_many, output_names)


def _given(reference: LakeState, layout: Layout, centering: str) -> _Start:
    """From an earlier run."""
    if reference.centering != centering:
        raise UsageError(
            f"the reference is centred on the {reference.centering}, and this run on the {centering}; "
            "give both the same centering, or leave the reference out"
        )
    places = {name: j for j, name in enumerate(reference.features)}
    known = tuple(each.column for each in reference.categories)
    missing = [name for name in layout.features if name not in places]
    missing += [name for name in layout.categoricals if name not in known]
    if missing or known != layout.categoricals:
        name = missing[0] if missing else next(name for name in known if name not in layout.categoricals)
        lacking, other = ("the reference", "this run") if missing else ("this run", "the reference")
        raise UsageError(
            f"{lacking} has no column '{name}', which {other} has; choose the same features, or leave the reference out"
        )
    features = reference.references.features.subset(np.array([places[name] for name in layout.features], dtype=int))
    return _Start(
        replace(reference.references, features=features),
        reference.categories,
        reference.too_many,
        reference.span.output_names,
    )


def _references(scans: Scans, centering: str, pilot: Pilot) -> tuple[Reference, Reference, tuple[str, ...]]:
    """References of features and outputs; from all rows where the pilot's have no output at all."""
    features, span = scans.pilot(centering, pilot)
    complete = pilot.complete
    if not complete and span.counts.used == 0:
        features, span = scans.all_summaries(centering, np.ones(len(scans.layout.features), dtype=bool))
        complete = True
    if complete:
        _check_rows(span.counts, scans.layout)
    return features, reference_of(span.outputs, centering, complete, OUTPUT_CELLS), span.output_names


def _chosen(
    columns: Sequence[str], counts: Sequence[CategoryCounts], most: int
) -> tuple[tuple[Categories, ...], tuple[str, ...]]:
    """Categories that become features, and columns with too many of them."""
    chosen = tuple(choose_categories(column, each, most) for column, each in zip(columns, counts, strict=True))
    return chosen, tuple(column for column, each in zip(columns, counts, strict=True) if each.too_many)


def _check_rows(counts: RowCounts, layout: Layout) -> None:
    if counts.used == 0:
        source = ", ".join(layout.outputs) or "the model's outputs"
        where = layout.where
        unmatched = "" if where is None else f"{counts.filtered_out} of those do not match {where.label}, "
        raise NoRowsError(
            f"no row is left to explain: {counts.read} rows, {unmatched}{counts.sampled} in the sample, "
            f"{counts.without_output} of those without a finite value in {source}, "
            f"{counts.without_weight} without a positive weight"
        )


def _feature_names(selection: Selection, categories: Sequence[Categories], too_many: Sequence[str]) -> tuple[str, ...]:
    """Columns, elements of vectors and categories; refuses what only the values could tell."""
    for column in too_many:
        if column in selection.named:
            raise DataError(
                f"column '{column}' (features) has more than {MOST_VALUES:,} different values, too many to be "
                "categories; leave it out, or make fewer of them"
            )
    names = (*selection.features, *(name for column in categories for name in column.features))
    if not names:
        raise DataError(f"no feature is left: {', '.join(too_many)} have too many values to be categories")
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise DataError(f"two features are called '{twice}', a category and another column; rename that column")
    return names
