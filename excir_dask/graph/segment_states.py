"""The states of segments: each is the state of a lake that has the rows of one segment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from excir_dask.errors import UsageError
from excir_dask.graph.lake_state import LakeState, Settled, check_same
from excir_dask.graph.pass_scan import PassSpan, References
from excir_dask.graph.segment_scan import SegmentNames, SegmentReferences
from excir_dask.kernels.brackets import make_reference
from excir_dask.kernels.categories import Categories
from excir_dask.kernels.recenter import recentre
from excir_dask.kernels.reference import REGIONS, Reference
from excir_dask.kernels.segment_references import appended_segment, same_frames, segment_reference, stacked_segments
from excir_dask.kernels.segment_state import (
    SegmentColumns,
    SegmentSpans,
    joined,
    merge_segment_columns,
    merge_segment_spans,
    some_segments,
)
from excir_dask.kernels.settle import settle
from excir_dask.kernels.state import ColumnState, State, with_cells
from excir_dask.kernels.summaries import ColumnSummary
from excir_dask.lake.blocks import Layout, RowCounts
from excir_dask.lake.segments import OTHER


@dataclass(frozen=True)
class SegmentStates:
    """The states of all segments of a run, side by side: all columns of the first segment, then those of the next."""

    VERSION: ClassVar[int] = 2

    by: tuple[str, ...]
    """columns whose values are the segments"""
    centering: str
    features: tuple[str, ...]
    """columns of numbers"""
    categories: tuple[Categories, ...]
    """of each column of categories, those that are features"""
    too_many: tuple[str, ...]
    """columns with too many categories"""
    output_names: tuple[str, ...]
    references: SegmentReferences
    """of segments with rows, those with most rows first"""
    state: State
    """of the columns of numbers"""
    spans: SegmentSpans
    """of the rows, the outputs and the 0/1 features of categories"""

    @property
    def names(self) -> tuple[str, ...]:
        return self.references.names.names

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Columns of numbers, then the 0/1 features of categories."""
        return (*self.features, *(name for column in self.categories for name in column.features))

    @property
    def counts(self) -> list[RowCounts]:
        return [RowCounts(*map(int, each)) for each in self.spans.counts]

    @property
    def joint(self) -> NDArray[np.float64]:
        """Weight by coarse cells, (outputs, segments * features, cells, cells); no cells where nobody asked."""
        return joined([self.state.pairs, self.spans.indicators.pairs], len(self.names), axis=1).joint

    @cached_property
    def settled(self) -> Settled:
        """Centres and sums as far as the states know them, of all features of the first segment, then of the next."""
        segments, spans, references = len(self.names), self.spans, self.references
        outputs = settle(spans.outputs, references.outputs, self.centering)
        every = np.tile(np.arange(references.indicators.columns), segments)
        stats, sums = [], []
        for state, reference in (
            (self.state, references.features),
            (spans.indicators, references.indicators.subset(every)),
        ):
            stats.append(settle(state.columns, reference, self.centering))
            centers = stats[-1].center, outputs.center
            sums.append(recentre(state, spans.outputs, (reference, references.outputs), centers))
        return Settled(joined(stats, segments), outputs, joined(sums, segments, axis=-1))

    def lake(self, name: str) -> LakeState:
        """One segment as the state of a lake that has its rows alone."""
        place, segments = self.names.index(name), len(self.names)
        mine, spans, references = np.array([place]), self.spans, self.references
        own = References(
            segment_reference(references.features, place, segments),
            segment_reference(references.outputs, place, segments),
            references.indicators,
        )
        span = PassSpan(
            self.counts[place],
            self.output_names,
            some_segments(spans.outputs, mine, segments),
            int(spans.units[place]),
            _some(spans.indicators, mine, segments),
        )
        state = _some(self.state, mine, segments)
        return _identified(LakeState(self.centering, self.features, self.categories, self.too_many, own, state, span))


def segment_states(
    lake: LakeState, by: tuple[str, ...], references: SegmentReferences, columns: SegmentColumns, spans: SegmentSpans
) -> SegmentStates:
    """States of the segments that have rows; ``lake`` is that of all rows."""
    present = columns.present
    seen = references if present.size == references.names.count else references.of(present)
    names = lake.span.output_names
    return SegmentStates(
        by, lake.centering, lake.features, lake.categories, lake.too_many, names, seen, columns.state,
        replace(spans, present=np.arange(present.size)),
    )  # fmt: skip


def merge_segments(parts: Sequence[SegmentStates], names: Sequence[str]) -> SegmentStates:
    """The rows of all parts, which messages call ``names``; a part may lack segments that others have."""
    first = parts[0]
    for part, name in zip(parts, names, strict=True):
        check_same([
            ("centring", first.centering, part.centering), ("features", first.feature_names, part.feature_names),
            ("outputs", first.output_names, part.output_names), ("segments", first.by, part.by),
        ], names[0], name)  # fmt: skip
    known = list(dict.fromkeys(name for part in parts for name in part.names))
    owners = [next(i for i, part in enumerate(parts) if name in part.names) for name in known]
    for part, label in zip(parts, names, strict=True):
        for name in part.names:
            other = parts[owners[known.index(name)]]
            if not _same_view(part, other, name):
                raise UsageError(
                    f"segment '{name}' of {names[0]} and of {label} is seen from different references; compute {label} "
                    f"again with --reference {names[0]}, then merge them"
                )
    width = max(part.references.features.edges.shape[1] for part in parts)
    places = [np.array([known.index(name) for name in part.names]) for part in parts]
    columns, spans = [], []
    for part, place in zip(parts, places, strict=True):
        order, segments = np.argsort(place), place.size
        state = _with_ids(_some(part.state, order, segments), first)
        state = replace(state, columns=with_cells(state.columns, width + REGIONS))
        columns.append(SegmentColumns(place[order], state))
        mine = part.spans
        outputs = replace(some_segments(mine.outputs, order, segments), reference=first.spans.outputs.reference)
        others = _some(mine.indicators, order, segments)
        others = replace(others, pairs=replace(others.pairs, reference=first.spans.indicators.pairs.reference))
        spans.append(SegmentSpans(place[order], mine.counts[order], mine.units[order], outputs, others))
    found, rows = merge_segment_columns(columns), merge_segment_spans(spans)
    used = np.array([RowCounts(*map(int, each)).used for each in rows.counts])
    order = np.array(sorted(range(len(known)), key=lambda i: (known[i] == OTHER, -used[i], known[i])))
    references = _joined_references(parts, known, owners)
    return replace(
        first,
        references=references.of(order),
        state=_some(found.state, order, len(known)),
        spans=SegmentSpans(
            np.arange(order.size), rows.counts[order], rows.units[order],
            some_segments(rows.outputs, order, order.size), _some(rows.indicators, order, order.size),
        ),
    )  # fmt: skip


def _joined_references(
    parts: Sequence[SegmentStates], known: Sequence[str], owners: Sequence[int]
) -> SegmentReferences:
    """Of all segments, each from the first part that has it."""
    taken = [
        part.references.of(np.array([part.names.index(name) for name in mine]))
        for i, part in enumerate(parts)
        if (mine := [name for name, owner in zip(known, owners, strict=True) if owner == i])
    ]
    return SegmentReferences(
        SegmentNames(tuple(known)),
        stacked_segments([each.features for each in taken]),
        stacked_segments([each.outputs for each in taken]),
        parts[0].references.indicators,
    )


def _same_view(one: SegmentStates, other: SegmentStates, name: str) -> bool:
    """Whether a segment is seen from the same reference in both."""
    if one is other:
        return True
    if one.references.indicators.id != other.references.indicators.id:
        return False
    for kind in ("features", "outputs"):
        mine, theirs = (
            some_segments(getattr(part.references, kind), np.array([part.names.index(name)]), len(part.names))
            for part in (one, other)
        )
        if not same_frames(mine, theirs):
            return False
    return True


def _with_ids(state: State, like: SegmentStates) -> State:
    """The same, which is known to be seen from the references of another one."""
    return State(
        replace(state.columns, reference=like.state.columns.reference),
        replace(state.pairs, reference=like.state.pairs.reference),
    )


def _some(state: State, where: NDArray[np.int64], segments: int) -> State:
    return State(some_segments(state.columns, where, segments), some_segments(state.pairs, where, segments, axis=1))


def _identified(lake: LakeState) -> LakeState:
    """The same, whose states are seen from the references that it has."""
    references = lake.references
    outputs = references.outputs.id
    return replace(
        lake,
        state=_seen_from(lake.state, references.features, outputs),
        span=replace(
            lake.span,
            outputs=_columns(lake.span.outputs, references.outputs),
            indicators=_seen_from(lake.span.indicators, references.indicators, outputs),
        ),
    )


def _seen_from(state: State, reference: Reference, outputs: str) -> State:
    pairs = replace(state.pairs, reference=f"{reference.id}-{outputs}")
    return State(_columns(state.columns, reference), pairs)


def _columns(state: ColumnState, reference: Reference) -> ColumnState:
    return replace(with_cells(state, reference.edges.shape[1] + REGIONS), reference=reference.id)


def shared_indicators(count: int, centering: str) -> Reference:
    """A reference of 0/1 features, whatever share of the rows has them: both values have cells of their own."""
    half = ColumnSummary(4, 0, 4.0, True, 0.0, 1.0, 2.0, True, np.array([0.0, 1.0]), np.array([2.0, 2.0]))
    return make_reference([half] * count, [np.empty(0)] * count, centering, True)


def given_segments(known: SegmentStates | None, references: References, layout: Layout) -> SegmentReferences:
    """Those of an earlier run; rows of others go to the rest, which is seen as all rows are where it had none."""
    if known is None or known.by != layout.by:
        had = "no segments" if known is None else f"segments by {' and '.join(known.by)}"
        raise UsageError(
            f"the reference has {had}, and this run has segments by {' and '.join(layout.by)}; "
            "give both the same, or leave the reference out"
        )
    places = {name: j for j, name in enumerate(known.features)}
    mine = np.array([places[name] for name in layout.features], dtype=np.int64)
    starts = np.arange(len(known.names))[:, None] * len(known.features)
    seen = known.references
    features, outputs, names = seen.features.subset((starts + mine).ravel()), seen.outputs, known.names
    if OTHER not in names:
        names = (*names, OTHER)
        features = appended_segment(features, references.features)
        outputs = appended_segment(outputs, references.outputs)
    return SegmentReferences(SegmentNames(names), features, outputs, seen.indicators)
