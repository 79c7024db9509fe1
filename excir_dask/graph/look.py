"""From a plan to exact centres: a pilot, the pass over all rows, and another look at what that left open."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from excir_dask.common.wording import count
from excir_dask.errors import DataError, NoRowsError, UsageError
from excir_dask.graph.closer import OUTPUT_CELLS, Closer
from excir_dask.graph.lake_state import LakeState, Settled
from excir_dask.graph.pass_scan import PassRequest, References
from excir_dask.graph.pilot_scan import reference_of, segments_of
from excir_dask.graph.scans import PilotFound, Scans
from excir_dask.graph.segment_closer import close_segments
from excir_dask.graph.segment_scan import SegmentNames, SegmentReferences, choose_segments
from excir_dask.graph.segment_states import SegmentStates, given_segments, segment_states, shared_indicators
from excir_dask.kernels.brackets import make_reference
from excir_dask.kernels.categories import (
    MOST_VALUES,
    Categories,
    CategoryCounts,
    choose_categories,
    indicator_summaries,
)
from excir_dask.kernels.centers import CENTERINGS
from excir_dask.kernels.rowsample import RowSample, draw_threshold
from excir_dask.kernels.segment_references import OUTPUT_PICKS
from excir_dask.lake.blocks import Layout, RowCounts
from excir_dask.lake.pilot import Pilot
from excir_dask.lake.segments import OTHER
from excir_dask.lake.select import Selection

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Request:
    """What to measure."""

    centering: str
    max_categories: int = 0
    """categories of a column that become features; the others become one feature together"""
    sample_rows: int = 0
    """rows to return to the client as they are"""
    most_segments: int = 0
    """segments that are told apart; the others are one together"""
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
    segments: SegmentStates | None
    """None where nobody asked for segments"""
    closest: SegmentStates | None
    """the same after further looks: what scores follow from"""


@dataclass(frozen=True)
class _Start:
    """What is fixed before the pass."""

    references: References
    categories: tuple[Categories, ...]
    too_many: tuple[str, ...]
    output_names: tuple[str, ...]
    """empty where only the pass tells"""
    segments: SegmentReferences | None = None
    """None where nobody asked for segments"""


def look(
    scans: Scans,
    request: Request,
    pilot: Pilot,
    reference: LakeState | None = None,
    known_segments: SegmentStates | None = None,
) -> Found:
    """Pilot, pass, and further looks as needed; no pilot where a reference is given."""
    plan, layout, centering = scans.plan, scans.layout, request.centering
    start = _pilot(scans, request, pilot) if reference is None else _given(reference, layout, centering)
    if layout.by and reference is not None:
        start = replace(start, segments=given_segments(known_segments, start.references, layout))
    wanted = PassRequest(
        totals=CENTERINGS[centering].needs_totals,
        joint=request.joint,
        sample_rows=request.sample_rows,
        threshold=draw_threshold(request.sample_rows, plan.rows),
    )
    columns, span = scans.all_rows(start.references, start.categories, replace(wanted, segments=start.segments))
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
        centering, layout.features, start.categories, start.too_many, start.references, columns.state,
        replace(span, segments=None),
    )  # fmt: skip
    by = closest = None
    if start.segments is not None and columns.segments is not None and span.segments is not None:
        by = segment_states(seen, layout.by, start.segments, columns.segments, span.segments)
        closest = close_segments(scans, wanted, seen, by)
    settled, best = Closer(scans, wanted).settle(seen)
    sample = columns.sample
    if sample is not None and sample.draws.size < min(request.sample_rows, span.counts.used):
        share = span.counts.used / max(span.counts.sampled + span.counts.filtered_out, 1)
        sample = scans.picked_rows(request.sample_rows, draw_threshold(int(request.sample_rows / share), plan.rows))
    kept = by if reference is not None else closest  # states of a given reference can be merged with its own
    return Found(names, settled, best if reference is None else seen, sample, kept, closest)


def _pilot(scans: Scans, request: Request, pilot: Pilot) -> _Start:
    """From a part of the rows; categories are counted in all of them."""
    centering = request.centering
    counted = scans.counted_categories()
    counts = counted[: len(scans.layout.categoricals)]
    categories, too_many = _chosen(scans.layout.categoricals, counts, request.max_categories)
    segments = _segments(scans.layout, counted, request.most_segments)
    found, complete = _piloted(scans, centering, pilot, segments)
    outputs = reference_of(found.span.outputs, centering, complete, OUTPUT_CELLS)
    summaries = [one for c, chosen in zip(counts, categories, strict=True) for one in indicator_summaries(c, chosen)]
    indicators = make_reference(summaries, [np.empty(0)] * len(summaries), centering, True)
    by = None
    if segments is not None and found.segments is not None:
        per_output = segments_of(found.span.outputs, outputs, centering, complete, segments.count, OUTPUT_PICKS)
        assert per_output is not None, "a pilot keeps rows of outputs where it keeps rows of features"
        by = SegmentReferences(segments, found.segments, per_output, shared_indicators(len(summaries), centering))
    references = References(found.features, outputs, indicators)
    return _Start(references, categories, too_many, found.span.output_names, by)


def _segments(layout: Layout, counted: Sequence[CategoryCounts], most: int) -> SegmentNames | None:
    """The segments of a run; the last of the counts are theirs."""
    if not layout.by:
        return None
    segments, others = choose_segments(layout.by, counted[-1], most)
    if others:
        log.warning(
            "%s are told apart, those with most rows; %s together are '%s'",
            count(segments.count - 1, "segment"), count(others, "smaller one"), OTHER,
        )  # fmt: skip
    return segments


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


def _piloted(scans: Scans, centering: str, pilot: Pilot, segments: SegmentNames | None) -> tuple[PilotFound, bool]:
    """What a pilot says, and whether it has read all rows: it does where the first one's rows have no output at all."""
    found = scans.pilot(centering, pilot, segments)
    complete = pilot.complete
    if not complete and found.span.counts.used == 0:
        found = scans.pilot(centering, Pilot(spans=tuple(range(scans.plan.spans)), complete=True), segments)
        complete = True
    if complete:
        _check_rows(found.span.counts, scans.layout)
    return found, complete


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
