"""The scan of a pilot: what some rows say about where the quantiles of each column are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from excir_dask.errors import DataError
from excir_dask.graph.category_scan import same_names
from excir_dask.graph.segment_scan import (
    PilotPicker,
    PilotRows,
    SegmentNames,
    concatenate_pilot_rows,
    pilot_reference,
)
from excir_dask.graph.states import Reduction, SliceState, check_count, check_names, check_parts, merge_states
from excir_dask.kernels.atoms import Atoms, find_atoms, merge_atoms
from excir_dask.kernels.brackets import CELLS, make_reference
from excir_dask.kernels.reference import Reference
from excir_dask.kernels.segment_references import PICKS
from excir_dask.kernels.summaries import ColumnSummary, merge_column, summarise
from excir_dask.lake.blocks import Block, Layout, ModelOutputs, RowCounts
from excir_dask.lake.plan import Slice
from excir_dask.lake.read import read_slice

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class PilotColumns:
    """What some columns look like."""

    VERSION: ClassVar[int] = 3

    summaries: tuple[ColumnSummary, ...]
    atoms: tuple[Atoms, ...]
    rows: int
    """that count"""
    weight: float
    """sum of their weights"""
    squares: float
    """sum of the squares of their weights"""
    kept: tuple[PilotRows, ...] = ()
    """rows for the references of segments, slice by slice; none where nobody asked for segments"""

    @property
    def effect(self) -> float:
        """Times that the rows say less than so many rows of equal weight."""
        return self.squares * self.rows / self.weight**2 if self.weight > 0 else 1.0


@dataclass(frozen=True)
class PilotSpan:
    """What the outputs look like, and how many rows there are."""

    VERSION: ClassVar[int] = 1

    counts: RowCounts
    output_names: tuple[str, ...]
    """empty where a callable saw no row and did not say"""
    outputs: PilotColumns


def pilot_slice(
    piece: Slice,
    rows: Any,
    scored: ModelOutputs | None,
    layout: Layout,
    wanted: Mask | None,
    segments: SegmentNames | None,
    limit: int,
) -> SliceState[PilotColumns, PilotSpan]:
    """What the slice's rows say; ``limit`` is how many of them are kept for the references of segments."""
    names = layout.outputs if scored is None else scored.names
    blocks = read_slice(piece, layout, rows, wanted, scored)
    states = [_look(block, names if piece.lead else None, segments, limit) for block in blocks]
    return merge_states(states, _merge_columns, _merge_spans)


def _look(
    block: Block, output_names: tuple[str, ...] | None, segments: SegmentNames | None, limit: int
) -> SliceState[PilotColumns, PilotSpan]:
    columns = _columns(block.columns, block, segments, limit)
    if output_names is None:
        return SliceState(columns, None)
    outputs = _columns(block.outputs, block, segments, limit)
    return SliceState(columns, PilotSpan(block.counts, output_names, outputs))


def _columns(
    columns: Iterable[NDArray[np.float64]], block: Block, segments: SegmentNames | None, limit: int
) -> PilotColumns:
    picker = None if segments is None else PilotPicker(block, segments, limit)
    watched = columns if picker is None else picker.watch(columns)
    found = [(summarise(x, block.weights), find_atoms(x)) for x in watched]
    weights = np.ones(block.counts.used) if block.weights is None else block.weights
    return PilotColumns(
        tuple(summary for summary, _ in found),
        tuple(atoms for _, atoms in found),
        block.counts.used,
        float(weights.sum()),
        float((weights * weights).sum()),
        () if picker is None else (picker.result(),),
    )


def _merge_columns(parts: Sequence[PilotColumns]) -> PilotColumns:
    return PilotColumns(
        tuple(merge_column(column) for column in zip(*(part.summaries for part in parts), strict=True)),
        tuple(merge_atoms(column) for column in zip(*(part.atoms for part in parts), strict=True)),
        sum(part.rows for part in parts),
        sum(part.weight for part in parts),
        sum(part.squares for part in parts),
        tuple(each for part in parts for each in part.kept),
    )


def _concatenate_columns(parts: Sequence[PilotColumns]) -> PilotColumns:
    return PilotColumns(
        tuple(summary for part in parts for summary in part.summaries),
        tuple(atoms for part in parts for atoms in part.atoms),
        parts[0].rows,
        parts[0].weight,
        parts[0].squares,
        concatenate_pilot_rows([part.kept for part in parts]),
    )


def _merge_spans(parts: Sequence[PilotSpan]) -> PilotSpan:
    named = [part for part in parts if part.output_names]
    for part in named:
        same_names(named[0].output_names, part.output_names)
    return PilotSpan(
        sum((part.counts for part in parts), RowCounts()),
        named[0].output_names if named else (),
        _merge_columns([part.outputs for part in named or parts]),
    )


def _check(
    state: SliceState[PilotColumns, PilotSpan],
    piece: Slice,
    scored: ModelOutputs | None,
    layout: Layout,
    wanted: Mask | None,
    segments: SegmentNames | None,
    limit: int,
) -> None:
    check_parts(state, PilotColumns, PilotSpan, piece)
    width = piece.stop - piece.start if wanted is None else int(wanted[piece.start : piece.stop].sum())
    check_count(len(state.columns.summaries), width, "columns")
    check_count(len(state.columns.atoms), width, "columns")
    _check_summaries(state.columns.summaries)
    if bool(state.columns.kept) != (segments is not None):
        raise DataError("it has rows of segments that nobody requested, or lacks those that somebody did")
    if state.span is not None:
        check_names(state.span.output_names, layout, scored)
        check_count(len(state.span.outputs.summaries), len(state.span.output_names), "outputs")
        _check_summaries(state.span.outputs.summaries)


PILOT = Reduction("pilot", "pilot", pilot_slice, _check, _merge_columns, _concatenate_columns, _merge_spans)


@dataclass(frozen=True)
class PilotResult:
    """What the pass starts from."""

    columns: Reference
    segments: Reference | None
    """of the same columns in each segment"""
    span: PilotSpan | None
    """None where another column block tells"""


def refer(
    merged: Sequence[SliceState[PilotColumns, PilotSpan]], centering: str, complete: bool, segments: int
) -> PilotResult:
    """A reference for the columns of a block, made where their summaries are."""
    (state,) = merged
    found = reference_of(state.columns, centering, complete)
    return PilotResult(found, segments_of(state.columns, found, centering, complete, segments), state.span)


def segments_of(
    columns: PilotColumns, base: Reference, centering: str, complete: bool, segments: int, picks: int = PICKS
) -> Reference | None:
    """References of the segments; ``base`` is that of all rows."""
    if not columns.kept:
        return None
    every_row = complete and sum(each.codes.size for each in columns.kept) == columns.rows
    return pilot_reference(columns.kept, segments, base, centering, every_row, picks)


def reference_of(columns: PilotColumns, centering: str, complete: bool, cells: int = CELLS) -> Reference:
    atoms = [each.values for each in columns.atoms]
    return make_reference(columns.summaries, atoms, centering, complete, columns.effect, cells)


def _check_summaries(columns: Sequence[ColumnSummary]) -> None:
    """What merging relies on: a digest that is fed anything else may crash."""
    for column in columns:
        numbers = np.concatenate([column.points, column.weights])
        if (column.n > 0) != (column.points.size > 0) or not np.isfinite(numbers).all():
            raise DataError("it holds a summary without values, or with values that are no numbers")
        if (np.diff(column.points) < 0).any() or (column.weights <= 0).any():
            raise DataError("it holds a summary whose values are out of order or weigh nothing")
