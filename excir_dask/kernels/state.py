"""The state of a lake: what one pass over its rows keeps, from which every score follows.

States of one reference merge by addition, so that a week is the sum of its days and a lake the sum of its segments.
With a and b the provisional centres, d = x - a, m = w (y - b), p = d m and s = sign p, a column and an output need the
sums of p, |p|, p^2, p|p|, w s, w s d and s m over all rows, and of w s, w s d, s m and |p| per cell around both
centres: :mod:`excir_dask.kernels.recenter` moves them to the final ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from excir_dask.errors import InternalError
from excir_dask.kernels.reference import BUCKETS, COARSE, FLIP_EDGES, REGIONS, Reference

Floats = NDArray[np.float64]

_NONE = np.empty(0)

Near = tuple[NDArray[np.uint32], NDArray[np.uint8]]
"""rows around a centre, and the cell of each"""


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


class OutputSide:
    """The outputs' half of every product over a block of rows, made once and used for every column.

    Parameters
    ----------
    outputs : float64 array of shape (outputs, rows)
    reference : Reference
        Of the outputs.
    weights : float64 array of shape (rows,), optional
    edges : int64 array, optional
        Where units of rows begin, and the last one ends; one unit by default.
    joint : bool
        Count rows by coarse cells too.
    totals : bool
        Sum values per slot and cell too: what a trimmed mean needs.
    """

    def __init__(
        self,
        outputs: Floats,
        reference: Reference,
        weights: Floats | None = None,
        edges: NDArray[np.int64] | None = None,
        joint: bool = True,
        totals: bool = False,
    ):
        self.outputs = outputs
        self.with_totals = totals
        self.reference = reference
        self.weights = _NONE if weights is None else weights
        self.edges = np.array([0, outputs.shape[1]]) if edges is None else edges
        self.joint = joint
        self.moves = outputs - np.array([_signed(center) for center in reference.center])[:, None]
        if weights is not None:
            self.moves *= weights
        self.totals = self.moves.sum(axis=1)
        self.absolutes = np.abs(self.moves).sum(axis=1)
        self.near = [_near_output(y, edges) for y, edges in zip(outputs, reference.flip_edges, strict=True)]
        """rows around each output's centre, and their cells"""
        self.coarse = [_coarse_cells(y, reference, k) for k, y in enumerate(outputs)] if joint else []

    @property
    def rows(self) -> int:
        return int(self.outputs.shape[1])

    def present(self, where: NDArray[np.int64]) -> OutputSide:
        """The same over some of the rows."""
        weights = self.weights.take(where) if self.weights.size else None
        edges = np.searchsorted(where, self.edges)
        return OutputSide(
            self.outputs.take(where, axis=1), self.reference, weights, edges, self.joint, self.with_totals
        )


def observe(columns: Iterable[Floats], side: OutputSide, reference: Reference) -> State:
    """States of a block of rows.

    Parameters
    ----------
    columns : iterable of float64 arrays of shape (rows,)
        One array per column of the reference, in order; each is released before the next is asked for.
    side : OutputSide
    reference : Reference
        Of the columns.
    """
    from excir_dask.kernels.pass_loops import flips, joint_counts, pair_sums

    found, pairs = _Columns(reference, side.with_totals), _Pairs(reference, side)
    for j, x in enumerate(columns):
        finite = _finite(x)
        mine = side
        if finite is not None:
            x, mine = x.take(finite), side.present(finite)
        near = found.add(j, x, side.rows, mine.weights)
        center = _signed(reference.center[j])
        pair_sums(x, center, mine.moves, mine.weights, mine.edges, pairs.sums[j], pairs.units[j])
        pairs.totals[j], pairs.absolutes[j] = mine.totals, mine.absolutes
        for k in range(len(mine.outputs)):
            flips(x, center, mine.moves[k], mine.weights, *near, pairs.flips[j, k])
            flips(x, center, mine.moves[k], mine.weights, *mine.near[k], pairs.output_flips[j, k])
            if side.joint:
                counts = np.zeros(COARSE * COARSE, dtype=np.uint32)
                joint_counts(
                    x, reference.origin[j], reference.scale[j], reference.coarse[j], mine.coarse[k], COARSE, counts
                )
                pairs.joint[j, k] = counts.reshape(COARSE, COARSE)
    return State(found.state(), pairs.state())


def observe_outputs(side: OutputSide) -> ColumnState:
    """What the outputs looked like over a block of rows."""
    found = _Columns(side.reference, side.with_totals)
    for k, y in enumerate(side.outputs):
        found.add(k, y, y.size, side.weights)
    return found.state()


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


class _Columns:
    """A state of columns in the making."""

    def __init__(self, reference: Reference, totals: bool):
        count = reference.columns
        self.reference = reference
        self.n, self.missing = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
        self.fractional = np.zeros(count, dtype=np.int64)
        self.weight, self.total, self.absolute = np.zeros(count), np.zeros(count), np.zeros(count)
        self.low, self.high = np.full(count, np.inf), np.full(count, -np.inf)
        self.slots = np.zeros((count, 2 * REGIONS + 1))
        size = reference.edges.shape[1] + REGIONS
        self.cells = np.zeros((count, size))
        self.cell_low, self.cell_high = np.full((count, size), np.inf), np.full((count, size), -np.inf)
        self.flip_weight = np.zeros((count, FLIP_EDGES))
        self.slot_total = np.zeros((count, self.slots.shape[1] if totals else 0))
        self.cell_total = np.zeros((count, size if totals else 0))

    def add(self, j: int, x: Floats, rows: int, weights: Floats) -> Near:
        """Add a column's values; returns the rows around its centre."""
        from excir_dask.kernels import pass_loops as loops

        ref = self.reference
        origin, scale, slots, center = float(ref.origin[j]), float(ref.scale[j]), ref.slots[j], float(ref.center[j])
        listed = np.empty(x.size + 1, dtype=np.uint32)
        if weights.size:
            found = np.zeros(BUCKETS)
            count = loops.bucket_weights(x, weights, origin, scale, slots, found, listed)
            self.weight[j] = weights.sum()
            self.fractional[j] = np.count_nonzero(weights != np.rint(weights))
        else:
            counts = np.zeros(BUCKETS, dtype=np.uint32)
            count = loops.bucket_rows(x, origin, scale, slots, counts, listed)
            found = counts.astype(np.float64)
            self.weight[j] = x.size
        self.n[j], self.missing[j] = x.size, rows - x.size
        self.low[j], self.high[j] = x.min(initial=np.inf), x.max(initial=-np.inf)
        self.total[j], self.absolute[j] = loops.spread(x, center, weights)
        self.slots[j] = np.bincount(slots, found, minlength=self.slots.shape[1])
        close = listed[:count]
        values, masses = x.take(close), weights.take(close) if weights.size else _NONE
        where = (origin, scale, slots, ref.edges[j], ref.first_edge[j])
        loops.cells(values, masses, *where, self.cells[j], self.cell_low[j], self.cell_high[j])
        if self.slot_total.size:
            sums = np.zeros(BUCKETS)
            loops.bucket_totals(x, weights, origin, scale, center, sums)
            self.slot_total[j] = np.bincount(slots, sums, minlength=self.slots.shape[1])
            loops.cell_totals(values, masses, *where, center, self.cell_total[j])
        near = _near(values, close, ref.flip_edges[j])
        mass = weights.take(near[0]) if weights.size else None
        self.flip_weight[j] = np.bincount(near[1], mass, minlength=FLIP_EDGES)
        return near

    def state(self) -> ColumnState:
        return ColumnState(
            self.reference.id, self.n, self.missing, self.weight, self.fractional, self.low, self.high, self.total,
            self.absolute, self.slots, self.cells, self.cell_low, self.cell_high, self.flip_weight, self.slot_total,
            self.cell_total,
        )  # fmt: skip


class _Pairs:
    """A state of pairs in the making; columns come first, so that a column's part is one piece of memory."""

    def __init__(self, reference: Reference, side: OutputSide):
        columns, outputs = reference.columns, len(side.outputs)
        self.id = f"{reference.id}-{side.reference.id}"
        self.sums, self.units = np.zeros((columns, outputs, 7)), np.zeros((columns, outputs, 3))
        self.totals, self.absolutes = np.zeros((columns, outputs)), np.zeros((columns, outputs))
        self.flips = np.zeros((columns, outputs, FLIP_EDGES, 4))
        self.output_flips = np.zeros((columns, outputs, FLIP_EDGES, 4))
        coarse = COARSE if side.joint else 0
        self.joint = np.zeros((columns, outputs, coarse, coarse))

    def state(self) -> PairState:
        arrays = (
            self.sums, self.units, self.totals, self.absolutes, self.flips, self.output_flips, self.joint
        )  # fmt: skip
        return PairState(self.id, *(np.ascontiguousarray(array.swapaxes(0, 1)) for array in arrays))


def _signed(center: float) -> float:
    """The same centre; -0.0 in place of zero, from which both zeros are +0.0 away: they lie in the cell above."""
    return float(center) or -0.0


def _finite(x: Floats) -> NDArray[np.int64] | None:
    """Rows with a value; None: all."""
    if x.size and np.isfinite(x.min()) and np.isfinite(x.max()):  # NaN spreads to both
        return None
    where = np.flatnonzero(np.isfinite(x))
    return None if where.size == x.size else where


def _near(values: Floats, rows: NDArray[np.uint32], edges: Floats) -> Near:
    """Of some rows and their values, those around a centre."""
    from excir_dask.kernels.pass_loops import near

    edges = edges[: int(np.searchsorted(edges, np.inf))]
    listed, where = np.empty(rows.size, dtype=np.uint32), np.empty(rows.size, dtype=np.uint8)
    count = near(values, rows, edges, listed, where)
    return listed[:count], where[:count]


def _near_output(y: Floats, edges: Floats) -> Near:
    rows = np.flatnonzero((y >= edges[0]) & (y < edges[np.isfinite(edges)][-1])).astype(np.uint32)
    return _near(y.take(rows), rows, edges)


def _coarse_cells(y: Floats, reference: Reference, k: int) -> NDArray[np.uint8]:
    place = np.clip((y - reference.origin[k]) * reference.scale[k], 0.0, BUCKETS - 1.0).astype(np.int64)
    return np.asarray(reference.coarse[k][place])
