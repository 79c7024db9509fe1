"""The state of a lake: what one pass over its rows keeps, from which every score follows.

States of one reference merge by addition, so that a week is the sum of its days and a lake the sum of its segments.
With a and b the provisional centres, d = x - a, m = w (y - b), p = d m and s = sign p, a column and an output need the
sums of p, |p|, p^2, p|p|, w s, w s d and s m over all rows, and of w s, w s d, s m and |p| per cell around both
centres: :mod:`excir_dask.kernels.recenter` moves them to the final ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from excir_dask.errors import InternalError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ColumnState:
    """What some columns looked like over some rows, seen from a reference."""

    VERSION: ClassVar[int] = 1

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

    VERSION: ClassVar[int] = 1

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
    flips: Annotated[Floats, "outputs", "columns", "flips", "four"]
    """of w s, w s d, s m, |p| per cell around the column's centre"""
    output_flips: Annotated[Floats, "outputs", "columns", "flips", "four"]
    """the same per cell around the output's centre"""
    joint: Annotated[Floats, "outputs", "columns", "coarse", "coarse"]
    """rows by coarse cells of column and output; no cells if nobody asked"""


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
    reference = _same_reference(parts)  # first: arrays of different references may differ in shape
    arrays = {name: _combined(name, [getattr(part, name) for part in parts]) for name in _arrays(ColumnState)}
    return ColumnState(reference, **arrays)


def _merge_pairs(parts: Sequence[PairState]) -> PairState:
    reference = _same_reference(parts)
    arrays = {name: _added([getattr(part, name) for part in parts]) for name in _arrays(PairState)}
    return PairState(reference, **arrays)


def concatenate_state(parts: Sequence[State]) -> State:
    """Neighbouring columns over the same rows as one."""
    columns, pairs = [part.columns for part in parts], [part.pairs for part in parts]
    return State(
        ColumnState(
            _same_reference(columns),
            **{name: np.concatenate([getattr(part, name) for part in columns]) for name in _arrays(ColumnState)},
        ),
        PairState(
            _same_reference(pairs),
            **{name: np.concatenate([getattr(part, name) for part in pairs], axis=1) for name in _arrays(PairState)},
        ),
    )


def replaced_state(state: State, where: NDArray[np.bool_], others: State, columns: str, pairs: str) -> State:
    """A state with some of its columns taken from another one; ``columns`` and ``pairs`` are the new references."""
    found = {}
    for name in _arrays(ColumnState):
        array, other = getattr(state.columns, name), getattr(others.columns, name)
        if array.ndim > 1:  # cells: those of another reference may be more
            empty = {"cell_low": np.inf, "cell_high": -np.inf}.get(name, 0.0)
            width = max(array.shape[1], other.shape[1])
            array, other = (np.pad(a, ((0, 0), (0, width - a.shape[1])), constant_values=empty) for a in (array, other))
        found[name] = array.copy()
        found[name][where] = other
    both = {}
    for name in _arrays(PairState):
        both[name] = getattr(state.pairs, name).copy()
        both[name][:, where] = getattr(others.pairs, name)
    return State(ColumnState(columns, **found), PairState(pairs, **both))


def one_unit(state: State) -> State:
    """The same with all rows as one unit: a row group that was read in batches."""
    n, d = state.pairs.sums[..., 0], state.pairs.sums[..., 1]
    return replace(state, pairs=replace(state.pairs, units=np.stack([n * n, n * d, d * d], axis=-1)))


def _arrays(kind: type[ColumnState] | type[PairState]) -> list[str]:
    return [field.name for field in fields(kind) if field.name != "reference"]


def _combined(name: str, arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    if name in ("low", "cell_low"):
        return np.asarray(np.minimum.reduce(arrays))
    if name in ("high", "cell_high"):
        return np.asarray(np.maximum.reduce(arrays))
    return _added(arrays)


def _added(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    total = arrays[0].copy()
    for array in arrays[1:]:
        total += array
    return total


def _same_reference(parts: Sequence[ColumnState] | Sequence[PairState]) -> str:
    """The reference of all parts; states that are seen from different ones mean nothing together."""
    for part in parts:
        if part.reference != parts[0].reference:
            raise InternalError(
                f"a state seen from reference {part.reference} cannot be combined with one from {parts[0].reference}"
            )
    return parts[0].reference
