"""The states of segments: each is the state of a lake that has the rows of one segment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from excir_dask.errors import UsageError
from excir_dask.graph.lake_state import LakeState, check_alike, merge_lakes
from excir_dask.graph.pass_scan import PassSpan, References
from excir_dask.graph.segment_scan import SegmentNames, SegmentReferences
from excir_dask.kernels.brackets import make_reference
from excir_dask.kernels.reference import REGIONS, Reference, concatenate_references
from excir_dask.kernels.segment_references import segment_reference
from excir_dask.kernels.state import ColumnState, State, with_cells
from excir_dask.kernels.summaries import ColumnSummary
from excir_dask.lake.blocks import Layout
from excir_dask.lake.segments import OTHER


@dataclass(frozen=True)
class SegmentStates:
    """The states of all segments of a run."""

    VERSION: ClassVar[int] = 1

    by: tuple[str, ...]
    """columns whose values are the segments"""
    names: Annotated[tuple[str, ...], "segments"]
    """those with most rows first"""
    lakes: Annotated[tuple[LakeState, ...], "segments"]


def segment_states(
    lake: LakeState,
    by: tuple[str, ...],
    references: SegmentReferences,
    columns: Sequence[State | None],
    spans: Sequence[PassSpan | None],
) -> SegmentStates:
    """States of the segments that have rows; ``lake`` is that of all rows."""
    names, lakes = [], []
    for s, (name, state, span) in enumerate(zip(references.names.names, columns, spans, strict=True)):
        if state is None or span is None:
            continue
        mine = References(
            segment_reference(references.features, s, references.names.count),
            segment_reference(references.outputs, s, references.names.count),
            references.indicators,
        )
        names.append(name)
        span = replace(span, output_names=span.output_names or lake.span.output_names)
        lakes.append(_identified(replace(lake, references=mine, state=state, span=span)))
    return SegmentStates(by, tuple(names), tuple(lakes))


def merge_segments(parts: Sequence[SegmentStates], names: Sequence[str]) -> SegmentStates:
    """The rows of all parts, which messages call ``names``; a part may lack segments that others have."""
    lakes: dict[str, list[LakeState]] = {}
    owners: dict[str, list[str]] = {}
    for part, owner in zip(parts, names, strict=True):
        for name, lake in zip(part.names, part.lakes, strict=True):
            lakes.setdefault(name, []).append(lake)
            owners.setdefault(name, []).append(owner)
    for name, found in lakes.items():
        check_alike(found, owners[name], "then merge them")
    merged = {name: merge_lakes(found) for name, found in lakes.items()}
    order = sorted(merged, key=lambda name: (name == OTHER, -merged[name].span.counts.used, name))
    return SegmentStates(parts[0].by, tuple(order), tuple(merged[name] for name in order))


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
    places = {name: j for j, name in enumerate(known.lakes[0].features)}
    mine = np.array([places[name] for name in layout.features], dtype=int)
    names = list(known.names)
    lakes = [replace(lake.references, features=lake.references.features.subset(mine)) for lake in known.lakes]
    if OTHER not in names:
        names.append(OTHER)
        lakes.append(references)
    return SegmentReferences(
        SegmentNames(tuple(names)),
        concatenate_references([each.features for each in lakes]),
        concatenate_references([each.outputs for each in lakes]),
        lakes[0].indicators,
    )
