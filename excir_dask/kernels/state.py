"""The state of a lake: what one pass over its rows keeps, from which every score follows.

States of one reference merge by addition, so that a week is the sum of its days and a lake the sum of its segments.
With a and b the provisional centres, d = x - a, m = w (y - b), p = d m and s = sign p, a column and an output need the
sums of p, |p|, p^2, p|p|, w s, w s d and s m over all rows, and of w s, w s d, s m and |p| per cell around both
centres: :mod:`excir_dask.kernels.recenter` moves them to the final ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from excir_dask.errors import InternalError
from excir_dask.kernels.array_records import arrays_of, concatenated, replaced

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ColumnState:
    """What some columns looked like over some rows, seen from a reference."""

    VERSION: ClassVar[int] = 3

    reference: str
    """id of the reference; states of others do not merge with this one"""
    n: Annotated[NDArray[np.int64], "columns"]
    """rows with a value"""
    missing: Annotated[NDArray[np.int64], "columns"]
    """rows without one: null, NaN or infinite"""
    weight: Annotated[Floats, "columns"]
    """sum of w over the rows with a value; n without weights"""
    fractional: Annotated[NDArray[np.int64], "columns"]
    """rows whose weight is not a whole number"""
    low: Annotated[Floats, "columns"]
    """no value is smaller; inf where there are none"""
    high: Annotated[Floats, "columns"]
    """no value is larger; -inf where there are none"""
    total: Annotated[Floats, "columns"]
    """sum of w (x - a)"""
    absolute: Annotated[Floats, "columns"]
    """sum of w |x - a|"""
    squares: Annotated[Floats, "columns"]
    """sum of w (x - a)^2"""
    balance: Annotated[Floats, "columns"]
    """sum of w sign(x - a); the sign of zero is positive"""
    weight_squares: Annotated[Floats, "columns"]
    """sum of w^2 over the rows with a value; n without weights"""
    coarse: Annotated[Floats, "columns", "coarse"]
    """weight per coarse cell"""
    coarse_first: Annotated[NDArray[np.uint16], "columns", "coarse"]
    """first bucket of each with values; BUCKETS where there are none"""
    coarse_last: Annotated[NDArray[np.uint16], "columns", "coarse"]
    """last bucket of each with values; 0 where there are none"""
    slots: Annotated[Floats, "columns", "slots"]
    """weight per slot of the reference"""
    cells: Annotated[Floats, "columns", "cells"]
    """weight per fine cell"""
    cell_low: Annotated[Floats, "columns", "cells"]
    """smallest value of each; inf where there is none"""
    cell_high: Annotated[Floats, "columns", "cells"]
    """largest value of each; -inf where there is none"""
    flip_weight: Annotated[Floats, "columns", "flips"]
    """weight per cell around the centre"""
    slot_total: Annotated[Floats, "columns", "slot totals"]
    """sum of w (x - a) per slot; no slots if nobody asked"""
    cell_total: Annotated[Floats, "columns", "cell totals"]
    """sum of w (x - a) per fine cell; no cells if nobody asked"""


@dataclass(frozen=True)
class PairState:
    """How some columns moved with every output, seen from a reference."""

    VERSION: ClassVar[int] = 2

    reference: str
    """ids of the columns' and the outputs' reference"""
    sums: Annotated[Floats, "outputs", "columns", "seven"]
    """of p, |p|, p^2, p|p|, w s, w s d, s m"""
    units: Annotated[Floats, "outputs", "columns", "three"]
    """over units of rows (row groups), of N_u N_u, N_u D_u, D_u D_u"""
    output_total: Annotated[Floats, "outputs", "columns"]
    """sum of w (y - b) over the rows where the column has a value"""
    output_absolute: Annotated[Floats, "outputs", "columns"]
    """sum of w |y - b| over the same rows"""
    output_squares: Annotated[Floats, "outputs", "columns"]
    """sum of w (y - b)^2 over the same rows"""
    flips: Annotated[Floats, "outputs", "columns", "flips", "four"]
    """of w s, w s d, s m, |p| per cell around the column's centre"""
    output_flips: Annotated[Floats, "outputs", "columns", "flips", "four"]
    """the same per cell around the output's centre"""
    joint: Annotated[Floats, "outputs", "columns", "coarse", "coarse"]
    """weight by coarse cells of column and output; no cells if nobody asked"""


@dataclass(frozen=True)
class State:
    """What some columns, and they with every output, looked like over some rows."""

    VERSION: ClassVar[int] = 1

    columns: ColumnState
    pairs: PairState


def merge_state(parts: Sequence[State]) -> State:
    """The same columns over the rows of all parts, added in the order given."""
    return State(merge_columns([part.columns for part in parts]), _merge_pairs([part.pairs for part in parts]))


def merge_columns(parts: Sequence[ColumnState]) -> ColumnState:
    """Columns over the rows of all parts."""
    _same_reference(parts)  # first: arrays of different references may differ in shape
    arrays: dict[str, Any] = {
        name: _combined(name, [getattr(part, name) for part in parts]) for name in arrays_of(parts[0])
    }
    return replace(parts[0], **arrays)


def _merge_pairs(parts: Sequence[PairState]) -> PairState:
    _same_reference(parts)
    arrays: dict[str, Any] = {name: _added([getattr(part, name) for part in parts]) for name in arrays_of(parts[0])}
    return replace(parts[0], **arrays)


def concatenate_state(parts: Sequence[State]) -> State:
    """Neighbouring columns over the same rows as one."""
    columns, pairs = [part.columns for part in parts], [part.pairs for part in parts]
    _same_reference(columns)
    _same_reference(pairs)
    return State(concatenated(columns), concatenated(pairs, axis=1))


def replaced_state(state: State, where: NDArray[np.bool_], others: State, columns: str, pairs: str) -> State:
    """A state with some of its columns taken from another one; ``columns`` and ``pairs`` are the new references."""
    width = max(one.columns.cells.shape[1] for one in (state, others))  # another reference may have more cells
    found = replaced(with_cells(state.columns, width), where, with_cells(others.columns, width))
    both = replaced(state.pairs, where, others.pairs, axis=1)
    return State(replace(found, reference=columns), replace(both, reference=pairs))


def with_cells(state: ColumnState, width: int) -> ColumnState:
    """The same with room for so many cells; those that are cut off must be empty."""

    def fitted(array: Floats, empty: float) -> Floats:
        more = ((0, 0), (0, max(width - array.shape[1], 0)))
        return np.ascontiguousarray(np.pad(array[:, :width], more, constant_values=empty))

    return replace(
        state,
        cells=fitted(state.cells, 0.0),
        cell_low=fitted(state.cell_low, np.inf),
        cell_high=fitted(state.cell_high, -np.inf),
        cell_total=fitted(state.cell_total, 0.0) if state.cell_total.shape[1] else state.cell_total,
    )


def one_unit(state: State) -> State:
    """The same with all rows as one unit: a row group that was read in batches."""
    n, d = state.pairs.sums[..., 0], state.pairs.sums[..., 1]
    return replace(state, pairs=replace(state.pairs, units=np.stack([n * n, n * d, d * d], axis=-1)))


def _combined(name: str, arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    if name in ("low", "cell_low", "coarse_first"):
        return np.asarray(np.minimum.reduce(arrays))
    if name in ("high", "cell_high", "coarse_last"):
        return np.asarray(np.maximum.reduce(arrays))
    return _added(arrays)


def _added(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    if len(arrays) == 1:
        return arrays[0].copy()
    total = np.asarray(arrays[0] + arrays[1])
    for array in arrays[2:]:
        total += array
    return total


def _same_reference(parts: Sequence[ColumnState] | Sequence[PairState]) -> None:
    """Refuse states that use different references: they mean nothing together."""
    for part in parts:
        if part.reference != parts[0].reference:
            raise InternalError(
                f"a state seen from reference {part.reference} cannot be combined with one from {parts[0].reference}"
            )
