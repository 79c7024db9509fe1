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
from excir_dask.graph.states import Reduction, SliceState, check_count, check_names, check_parts, merge_states
from excir_dask.kernels.categories import Categories, indicators
from excir_dask.kernels.observe import observe, observe_outputs, output_side
from excir_dask.kernels.reference import Reference
from excir_dask.kernels.rowsample import RowPicker, RowSample, concatenate_samples, merge_samples
from excir_dask.kernels.state import ColumnState, State, concatenate_state, merge_columns, merge_state, one_unit
from excir_dask.lake.blocks import Block, Layout, ModelOutputs, RowCounts
from excir_dask.lake.plan import Slice
from excir_dask.lake.read import read_slice

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class PassRequest:
    """What a pass keeps beside the sums."""

    VERSION: ClassVar[int] = 1

    totals: bool
    """sums of values per slot and cell, for trimmed means"""
    joint: bool
    """rows by coarse cells of column and output"""
    sample_rows: int
    """rows to return to the client; 0 for none"""
    threshold: int
    """draws below which rows may be among them"""


@dataclass(frozen=True)
class PassColumns:
    """State of the columns of a slice."""

    VERSION: ClassVar[int] = 1

    state: State
    sample: RowSample | None
    """of these columns; None where no rows were requested"""


@dataclass(frozen=True)
class PassSpan:
    """State of the rows of a span."""

    VERSION: ClassVar[int] = 1

    counts: RowCounts
    output_names: tuple[str, ...]
    """empty where a callable saw no row and did not say"""
    outputs: ColumnState
    units: int
    """row groups with rows that count"""
    indicators: State
    """of the 0/1 features of categories"""


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
        return SliceState(PassColumns(_empty(mine, references.outputs, request), None), None)
    names = layout.outputs if scored is None else scored.names
    states: list[SliceState[PassColumns, PassSpan]] = []
    for block in _blocks(piece, layout, rows, scored, references.outputs.columns, wanted):
        side = output_side(block.outputs, references.outputs, block.weights, block.edges, request.joint, request.totals)
        columns, picker = block.columns, None
        if request.sample_rows:
            picker = RowPicker(block.draws(), request.sample_rows, request.threshold)
            columns = picker.watch(columns)
        found = PassColumns(observe(columns, side, mine), None if picker is None else picker.result())
        span = None
        if lead:
            expanded = (
                indicators(coded.codes, coded.values, chosen)
                for coded, chosen in zip(block.categories, categories, strict=True)
            )
            others = observe(chain.from_iterable(expanded), side, references.indicators)
            units = int(np.count_nonzero(np.diff(block.edges)))
            span = PassSpan(block.counts, names, observe_outputs(side), units, others)
        states.append(SliceState(found, span))
    merged = merge_states(states, partial(_merge_columns, limit=request.sample_rows), merge_spans)
    return _with_units(merged, piece)


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
        span = replace(span, units=units if piece.fragments else 0, indicators=others)
    return SliceState(replace(columns, state=one_unit(columns.state)) if batches else columns, span)


def _merge_columns(parts: Sequence[PassColumns], limit: int) -> PassColumns:
    found = [part.sample for part in parts if part.sample is not None]
    return PassColumns(merge_state([part.state for part in parts]), merge_samples(found, limit) if found else None)


def _concatenate_columns(parts: Sequence[PassColumns]) -> PassColumns:
    found = [part.sample for part in parts if part.sample is not None]
    return PassColumns(concatenate_state([part.state for part in parts]), concatenate_samples(found) if found else None)


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
    sample = state.columns.sample
    if (sample is not None) != bool(request.sample_rows and (mine.columns or lead)):
        raise DataError("it has sampled rows that nobody requested, or lacks those that somebody did")
    if sample is not None:
        check_count(sample.values.shape[0], mine.columns, "sampled columns")
    if state.span is not None:
        check_names(state.span.output_names, layout, scored)
        _check_state(state.span.indicators, references.indicators, references.outputs)
        if state.span.outputs.reference != references.outputs.id:
            raise DataError("it holds outputs seen from another reference")


def _check_state(state: State, reference: Reference, outputs: Reference) -> None:
    check_count(state.columns.n.size, reference.columns, "columns")
    check_count(state.pairs.sums.shape[0], outputs.columns, "outputs")
    if state.columns.reference != reference.id or state.pairs.reference != f"{reference.id}-{outputs.id}":
        raise DataError("it is seen from another reference")


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
