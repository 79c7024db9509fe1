"""The pass: one look at every row, from which the scores follow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from excir_dask.errors import DataError
from excir_dask.graph.category_scan import same_names
from excir_dask.graph.segment_scan import SegmentReferences
from excir_dask.graph.states import Reduction, SliceState, check_count, check_names, check_parts, merge_states
from excir_dask.kernels.categories import Categories, indicators
from excir_dask.kernels.observe import OutputSide, observe, observe_outputs, output_side
from excir_dask.kernels.reference import Reference
from excir_dask.kernels.rowsample import RowPicker, RowSample, concatenate_samples, merge_samples
from excir_dask.kernels.segment_state import (
    SegmentColumns,
    SegmentSpans,
    concatenate_segment_columns,
    merge_segment_columns,
    merge_segment_spans,
)
from excir_dask.kernels.segments import SegmentSide, SegmentTallies, segment_outputs
from excir_dask.kernels.state import ColumnState, State, concatenate_state, merge_columns, merge_state, one_unit
from excir_dask.lake.blocks import Block, Layout, ModelOutputs, RowCounts
from excir_dask.lake.plan import Slice
from excir_dask.lake.read import read_slice

Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PassRequest:
    """What a pass keeps beside the sums."""

    VERSION: ClassVar[int] = 2

    totals: bool
    """sums of values per slot and cell, for trimmed means"""
    joint: bool
    """rows by coarse cells of column and output"""
    sample_rows: int
    """rows to return to the client; 0 for none"""
    threshold: int
    """draws below which rows may be among them"""
    segments: SegmentReferences | None = None
    """what segments are seen from; None where nobody asked for any"""

    @property
    def nbytes(self) -> int:
        return 0 if self.segments is None else self.segments.nbytes


@dataclass(frozen=True)
class PassColumns:
    """State of the columns of a slice."""

    VERSION: ClassVar[int] = 3

    state: State
    sample: RowSample | None
    """of these columns; None where no rows were requested"""
    segments: SegmentColumns | None = None
    """None where nobody asked for segments"""


@dataclass(frozen=True)
class PassSpan:
    """State of the rows of a span."""

    VERSION: ClassVar[int] = 3

    counts: RowCounts
    output_names: tuple[str, ...]
    """empty where a callable saw no row and did not say"""
    outputs: ColumnState
    units: int
    """row groups with rows that count"""
    indicators: State
    """of the 0/1 features of categories"""
    segments: SegmentSpans | None = None
    """None where nobody asked for segments"""


@dataclass(frozen=True)
class References:
    """What a pass is seen from."""

    VERSION: ClassVar[int] = 1

    features: Reference
    """of the features that are looked at, in order"""
    outputs: Reference
    indicators: Reference
    """of the 0/1 features of categories"""

    @property
    def nbytes(self) -> int:
        return self.features.nbytes + self.outputs.nbytes + self.indicators.nbytes


def pass_slice(
    piece: Slice,
    rows: Any,
    scored: ModelOutputs | None,
    layout: Layout,
    references: References,
    wanted: Mask | None,
    categories: Sequence[Categories],
    request: PassRequest,
) -> SliceState[PassColumns, PassSpan]:
    """State of the slice's features; where it leads its span, of the outputs and of the indicators too.

    ``wanted`` says which features to look at, all by default; the references are of those.
    """
    mine = references.features.subset(_mine(piece, wanted))
    lead = piece.lead and wanted is None
    if not mine.columns and not lead:
        return SliceState(PassColumns(_empty(mine, references.outputs, request), None, _no_segments(request)), None)
    names = layout.outputs if scored is None else scored.names
    states: list[SliceState[PassColumns, PassSpan]] = []
    for block in _blocks(piece, layout, rows, scored, references.outputs.columns, wanted):
        side = output_side(block.outputs, references.outputs, block.weights, block.edges, request.joint, request.totals)
        columns, picker = block.columns, None
        if request.sample_rows:
            picker = RowPicker(block.draws(), request.sample_rows, request.threshold)
            columns = picker.watch(columns)
        by = None if request.segments is None else SegmentBlock(block, side, request.segments)
        if by is not None:
            columns = by.watch(columns, _mine(piece, wanted))
        state = observe(columns, side, mine)
        sample = None if picker is None else picker.result()
        found = PassColumns(state, sample, None if by is None else by.columns())
        span = None
        if lead:
            expanded: Iterator[Floats] = chain.from_iterable(
                indicators(coded.codes, coded.values, chosen)
                for coded, chosen in zip(block.categories, categories, strict=True)
            )
            if by is not None:
                expanded = by.watch_indicators(expanded)
            others = observe(expanded, side, references.indicators)
            units = int(np.count_nonzero(np.diff(block.edges)))
            span = PassSpan(block.counts, names, observe_outputs(side), units, others)
            span = span if by is None else replace(span, segments=by.spans())
        states.append(SliceState(found, span))
    merged = merge_states(states, partial(_merge_columns, limit=request.sample_rows), merge_spans)
    return _with_units(merged, piece)


class SegmentBlock:
    """The segments of a block of rows, while its columns pass."""

    def __init__(self, block: Block, side: OutputSide, references: SegmentReferences):
        self.block, self.references = block, references
        names = references.names
        self.side = SegmentSide(side, names.codes(block), references.outputs, names.count)
        self.tallies: SegmentTallies | None = None
        self.others: SegmentTallies | None = None

    def watch(self, columns: Iterator[Floats], mine: slice) -> Iterator[Floats]:
        """The same columns, which stand at ``mine`` in the references."""
        self.tallies = SegmentTallies(self.side, self.references.features, mine.start, mine.stop - mine.start)
        return self.tallies.watch(columns)

    def watch_indicators(self, columns: Iterator[Floats]) -> Iterator[Floats]:
        mine = self.references.indicators
        self.others = SegmentTallies(self.side, mine, 0, mine.columns, shared=True)
        return self.others.watch(columns)

    def columns(self) -> SegmentColumns:
        assert self.tallies is not None, "no columns have passed"
        return SegmentColumns(self.side.present, self.tallies.state())

    def spans(self) -> SegmentSpans:
        """Facts of each segment's rows; segments whose rows do not count are there as well."""
        assert self.block.segments is not None, "the layout has no segments"
        assert self.others is not None, "no indicators have passed"
        units = np.count_nonzero(np.diff(self.side.sides.units, axis=1), axis=1)
        rows, places = self.block.segments.rows(), self.references.names.places(self.block)
        counts = np.array([rows.of(places == s).in_order for s in self.side.present.tolist()], dtype=np.int64)
        return SegmentSpans(
            self.side.present, counts.reshape(units.size, len(RowCounts().in_order)), units,
            segment_outputs(self.side), self.others.state(),
        )  # fmt: skip


def _no_segments(request: PassRequest) -> SegmentColumns | None:
    """Of a slice without columns that are looked at."""
    if request.segments is None:
        return None
    features, outputs = request.segments.features, request.segments.outputs
    joined = np.empty((outputs.columns // request.segments.names.count, 0))
    side = output_side(joined, outputs.subset(slice(len(joined))), None, None, request.joint, request.totals)
    return SegmentColumns(np.empty(0, np.int64), observe((), side, features.subset(slice(0))))


def _mine(piece: Slice, wanted: Mask | None) -> slice:
    """Where the slice's features stand in the references."""
    if wanted is None:
        return slice(piece.start, piece.stop)
    first = int(wanted[: piece.start].sum())
    return slice(first, first + int(wanted[piece.start : piece.stop].sum()))


def _empty(mine: Reference, outputs: Reference, request: PassRequest) -> State:
    side = output_side(np.empty((outputs.columns, 0)), outputs, None, None, request.joint, request.totals)
    return observe((), side, mine)


def _with_units(state: SliceState[PassColumns, PassSpan], piece: Slice) -> SliceState[PassColumns, PassSpan]:
    """Batches of one row group are one unit; how a frame is cut says nothing about its rows."""
    batches, span, columns = piece.batch_rows is not None, state.span, state.columns
    if span is not None:
        units = min(span.units, 1) if batches else span.units
        others = one_unit(span.indicators) if batches else span.indicators
        by = None if span.segments is None else _segment_units(span.segments, piece)
        span = replace(span, units=units if piece.fragments else 0, indicators=others, segments=by)
    if batches:
        each = columns.segments
        of_segments = None if each is None else replace(each, state=one_unit(each.state))
        columns = replace(columns, state=one_unit(columns.state), segments=of_segments)
    return SliceState(columns, span)


def _segment_units(spans: SegmentSpans, piece: Slice) -> SegmentSpans:
    batches = piece.batch_rows is not None
    units = np.minimum(spans.units, 1) if batches else spans.units
    others = one_unit(spans.indicators) if batches else spans.indicators
    return replace(spans, units=units if piece.fragments else np.zeros_like(units), indicators=others)


def _merge_columns(parts: Sequence[PassColumns], limit: int) -> PassColumns:
    found = [part.sample for part in parts if part.sample is not None]
    return PassColumns(
        merge_state([part.state for part in parts]),
        merge_samples(found, limit) if found else None,
        merge_segment_columns(by) if (by := [part.segments for part in parts if part.segments is not None]) else None,
    )


def _concatenate_columns(parts: Sequence[PassColumns]) -> PassColumns:
    found = [part.sample for part in parts if part.sample is not None]
    return PassColumns(
        concatenate_state([part.state for part in parts]),
        concatenate_samples(found) if found else None,
        concatenate_segment_columns(by)
        if (by := [part.segments for part in parts if part.segments is not None])
        else None,
    )


def merge_spans(parts: Sequence[PassSpan]) -> PassSpan:
    """The rows of all parts."""
    named = [part for part in parts if part.output_names]
    for part in named:
        same_names(named[0].output_names, part.output_names)
    return PassSpan(
        sum((part.counts for part in parts), RowCounts()),
        named[0].output_names if named else (),
        merge_columns([part.outputs for part in parts]),
        sum(part.units for part in parts),
        merge_state([part.indicators for part in parts]),
        merge_segment_spans(by) if (by := [part.segments for part in parts if part.segments is not None]) else None,
    )


def _check(
    state: SliceState[PassColumns, PassSpan],
    piece: Slice,
    scored: ModelOutputs | None,
    layout: Layout,
    references: References,
    wanted: Mask | None,
    categories: Sequence[Categories],
    request: PassRequest,
) -> None:
    lead = piece.lead and wanted is None
    check_parts(state, PassColumns, PassSpan, piece if lead else replace(piece, lead=False))
    mine = references.features.subset(_mine(piece, wanted))
    _check_state(state.columns.state, mine, references.outputs)
    by = request.segments
    _check_segments(state.columns.segments, by)
    if by is not None and state.columns.segments is not None:
        found, present = state.columns.segments.state, state.columns.segments.present.size
        check_count(found.columns.n.size, present * mine.columns, "columns of segments")
        _check_seen(found, by.features, by.outputs)
    sample = state.columns.sample
    if (sample is not None) != bool(request.sample_rows and (mine.columns or lead)):
        raise DataError("its sampled rows do not match the request")
    if sample is not None:
        check_count(sample.values.shape[0], mine.columns, "sampled columns")
    if state.span is not None:
        _check_segments(state.span.segments, by)
        check_names(state.span.output_names, layout, scored)
        _check_state(state.span.indicators, references.indicators, references.outputs)
        if state.span.outputs.reference != references.outputs.id:
            raise DataError("it holds outputs seen from another reference")


def _check_state(state: State, reference: Reference, outputs: Reference) -> None:
    check_count(state.columns.n.size, reference.columns, "columns")
    check_count(state.pairs.sums.shape[0], outputs.columns, "outputs")
    _check_seen(state, reference, outputs)


def _check_seen(state: State, reference: Reference, outputs: Reference) -> None:
    if state.columns.reference != reference.id or state.pairs.reference != f"{reference.id}-{outputs.id}":
        raise DataError("it is seen from another reference")


def _check_segments(found: SegmentColumns | SegmentSpans | None, request: SegmentReferences | None) -> None:
    if (found is None) != (request is None):
        raise DataError("it has segments that nobody requested, or lacks those that somebody did")
    if found is not None and request is not None:
        places = found.present
        if (np.diff(places) <= 0).any() or (places < 0).any() or (places >= request.names.count).any():
            raise DataError("it holds segments that there are not")


def passes(request: PassRequest) -> Reduction[PassColumns, PassSpan]:
    return Reduction(
        "pass",
        "pass: co-movement",
        pass_slice,
        _check,
        partial(_merge_columns, limit=request.sample_rows),
        _concatenate_columns,
        merge_spans,
    )


def _blocks(
    piece: Slice, layout: Layout, rows: Any, scored: ModelOutputs | None, outputs: int, wanted: Mask | None
) -> Iterator[Block]:
    """Blocks of a slice once it is known how many outputs there are: a callable that saw no row of it did not say."""
    for block in read_slice(piece, layout, rows, wanted, scored):
        if len(block.outputs) != outputs and block.counts.used:
            raise DataError(
                f"there are {len(block.outputs)} outputs, and the reference has {outputs}; explain the same outputs, "
                "or leave the reference out"
            )
        yield block if len(block.outputs) == outputs else replace(block, outputs=np.empty((outputs, 0)))
