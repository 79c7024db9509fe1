"""The scans that need centres or quantiles first: co-movement sums, trimmed sums, values around a quantile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from excir_dask.errors import DataError
from excir_dask.graph.states import Reduction, SliceState, check_count, check_parts, merge_states
from excir_dask.kernels.categories import Categories, indicators
from excir_dask.kernels.centers import Centers, ColumnStats
from excir_dask.kernels.refine import Vicinities, concatenate_vicinities, gather, merge_vicinities
from excir_dask.kernels.sums import (
    OutputSide,
    RowSums,
    Sums,
    co_movement,
    concatenate_sums,
    merge_row_sums,
    merge_sums,
    one_unit,
    row_sums,
)
from excir_dask.kernels.trim import TrimmedSums, concatenate_trimmed, merge_trimmed, trim
from excir_dask.lake.blocks import Block, Layout, ModelOutputs
from excir_dask.lake.plan import Slice
from excir_dask.lake.read import read_slice

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class SpanSums:
    """Sums that the leading slice of a span takes."""

    VERSION: ClassVar[int] = 1

    rows: RowSums
    indicators: Sums
    """of the 0/1 features of categories"""


def sum_slice(
    piece: Slice,
    rows: Any,
    scored: ModelOutputs | None,
    layout: Layout,
    features: Centers,
    outputs: Centers,
    categories: Sequence[Categories],
) -> SliceState[Sums, SpanSums]:
    """Sums of the slice's features and, where it leads its span, of the indicators, whose centres come last."""
    mine = features.subset(slice(piece.start, piece.stop))
    of_categories = features.subset(slice(len(layout.features), None))
    states: list[SliceState[Sums, SpanSums]] = []
    for block in _blocks(piece, layout, rows, scored, outputs.center.size):
        side = OutputSide(block.outputs, outputs, block.weights, block.edges)
        found, span = co_movement(block.columns, side, mine), None
        if piece.lead:
            expanded = (
                indicators(coded.codes, coded.values, chosen)
                for coded, chosen in zip(block.categories, categories, strict=True)
            )
            others = co_movement(chain.from_iterable(expanded), side, of_categories)
            span = SpanSums(row_sums(block.outputs, side), others)
        states.append(SliceState(found, span))
    return _with_units(merge_states(states, merge_sums, _merge_spans), piece)


def _with_units(state: SliceState[Sums, SpanSums], piece: Slice) -> SliceState[Sums, SpanSums]:
    """Batches of one row group are one unit; how a frame is cut says nothing about its rows."""
    batches, span = piece.batch_rows is not None, state.span
    if span is not None:
        units = min(span.rows.units, 1) if batches else span.rows.units
        others = one_unit(span.indicators) if batches else span.indicators
        span = SpanSums(replace(span.rows, units=units if piece.fragments else 0), others)
    return SliceState(one_unit(state.columns) if batches else state.columns, span)


def _merge_spans(parts: Sequence[SpanSums]) -> SpanSums:
    return SpanSums(merge_row_sums([part.rows for part in parts]), merge_sums([part.indicators for part in parts]))


def _check_sums(
    state: SliceState[Sums, SpanSums],
    piece: Slice,
    scored: ModelOutputs | None,
    layout: Layout,
    features: Centers,
    outputs: Centers,
    categories: Sequence[Categories],
) -> None:
    check_parts(state, Sums, SpanSums, piece)
    found = [(state.columns, piece.stop - piece.start)]
    if state.span is not None:
        found.append((state.span.indicators, features.center.size - len(layout.features)))
        if state.span.rows.centers != outputs.identity or state.span.rows.below.shape != outputs.thresholds.shape:
            raise DataError("it holds counts at other centres")
    for sums, columns in found:
        check_count(sums.numerator.shape[0], outputs.center.size, "outputs")
        check_count(sums.numerator.shape[1], columns, "columns")
        if sums.centers != f"{features.identity}-{outputs.identity}" or (
            sums.below.shape[1:] != features.thresholds.shape[1:]
        ):
            raise DataError("it holds sums at other centres")


SUMS = Reduction("sum", "scan 2: co-movement", sum_slice, _check_sums, merge_sums, concatenate_sums, _merge_spans)


def trim_slice(
    piece: Slice, rows: Any, scored: ModelOutputs | None, layout: Layout, features: ColumnStats, outputs: ColumnStats
) -> SliceState[TrimmedSums, TrimmedSums]:
    mine = features.subset(slice(piece.start, piece.stop))
    states = []
    for block in _blocks(piece, layout, rows, scored, outputs.q25.size):
        inner = trim(block.columns, mine.q25, mine.q75, block.weights)
        of_outputs = trim(block.outputs, outputs.q25, outputs.q75, block.weights) if piece.lead else None
        states.append(SliceState(inner, of_outputs))
    return merge_states(states, merge_trimmed, merge_trimmed)


def _check_trimmed(
    state: SliceState[TrimmedSums, TrimmedSums],
    piece: Slice,
    scored: ModelOutputs | None,
    layout: Layout,
    features: ColumnStats,
    outputs: ColumnStats,
) -> None:
    check_parts(state, TrimmedSums, TrimmedSums, piece)
    check_count(state.columns.total.size, piece.stop - piece.start, "columns")
    if state.span is not None:
        check_count(state.span.total.size, outputs.n.size, "outputs")


TRIMMED = Reduction(
    "trim", "trimmed centres", trim_slice, _check_trimmed, merge_trimmed, concatenate_trimmed, merge_trimmed
)


def refine_slice(
    piece: Slice,
    rows: Any,
    scored: ModelOutputs | None,
    layout: Layout,
    thresholds: Floats,
    features: Mask,
    output_thresholds: Floats,
    outputs: Mask,
) -> SliceState[Vicinities, Vicinities]:
    mine = _mine(piece, features)
    if not mine.size and not (piece.lead and outputs.any()):
        return SliceState(Vicinities(()), Vicinities(()) if piece.lead else None)
    states = []
    for block in _blocks(piece, layout, rows, scored, outputs.size, features):
        inner = gather(block.columns, thresholds[mine], block.weights)
        around = gather(block.outputs[outputs], output_thresholds[outputs], block.weights) if piece.lead else None
        states.append(SliceState(inner, around))
    return merge_states(states, merge_vicinities, merge_vicinities)


def _mine(piece: Slice, wanted: Mask) -> NDArray[np.int64]:
    """Features of a slice that are wanted."""
    return np.flatnonzero(wanted[piece.start : piece.stop]) + piece.start


def _check_vicinities(
    state: SliceState[Vicinities, Vicinities],
    piece: Slice,
    scored: ModelOutputs | None,
    layout: Layout,
    thresholds: Floats,
    features: Mask,
    output_thresholds: Floats,
    outputs: Mask,
) -> None:
    check_parts(state, Vicinities, Vicinities, piece)
    found = [(state.columns, _mine(piece, features).size)]
    if state.span is not None:
        found.append((state.span, int(outputs.sum())))
    for vicinities, columns in found:
        check_count(len(vicinities.columns), columns, "columns")
        for levels in vicinities.columns:
            check_count(len(levels), thresholds.shape[1], "quantiles")


VICINITIES = Reduction(
    "refine",
    "a closer look",
    refine_slice,
    _check_vicinities,
    merge_vicinities,
    concatenate_vicinities,
    merge_vicinities,
)


def _blocks(
    piece: Slice, layout: Layout, rows: Any, scored: ModelOutputs | None, outputs: int, wanted: Mask | None = None
) -> Iterator[Block]:
    """Blocks of a slice once it is known how many outputs there are: a callable that saw no row of it did not say."""
    for block in read_slice(piece, layout, rows, wanted, scored):
        yield block if len(block.outputs) == outputs else replace(block, outputs=np.empty((outputs, 0)))
