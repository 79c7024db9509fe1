"""From a block of rows to a state: every column is gone through once, with all outputs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from excir_dask.kernels.reference import BUCKETS, COARSE, FLIP_EDGES, REGIONS, SPARE, Reference, places
from excir_dask.kernels.state import ColumnState, PairState, State
from excir_dask.kernels.tally import Grid, Side, Tally, scratch

if TYPE_CHECKING:
    from excir_dask.kernels.segment_loops import SegmentArrays

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

Near = tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint8]]
"""rows around the centre of each output in turn: where they end, the rows, and their cells"""

_PART = 8192
"""rows that numpy goes through at once: what stays in the cache takes a third of the time"""

_NOTHING = (np.inf, -np.inf, 0.0, 0.0, 0.0, 0.0)
"""limits and sums of a column without values"""


@dataclass(frozen=True)
class OutputSide:
    """The outputs' half of every product over a block of rows, made once and used for every column."""

    reference: Reference
    """of the outputs"""
    outputs: Floats
    """(outputs, rows); (outputs, 0) where only some rows are present and weights do not need them"""
    weights: Floats
    """(rows,); empty for ones"""
    units: Rows
    """where units of rows begin, and the last one ends"""
    moves: Floats
    """(outputs, rows) of w (y - b)"""
    near: Near
    coarse: NDArray[np.uint8]
    """(outputs, rows) coarse cells; (0, 0) where joint counts are not asked for"""
    totals: bool
    """sum values per slot and cell too: what a trimmed mean needs"""

    @property
    def rows(self) -> int:
        return int(self.moves.shape[1])

    @cached_property
    def moved(self) -> tuple[Floats, Floats, Floats]:
        """For each output, the sums of w (y - b), w |y - b| and w (y - b)^2."""
        away = self.outputs - self.reference.center[:, None] if self.weights.size else self.moves
        squares = np.array([(m * d).sum() for m, d in zip(self.moves, away, strict=True)])
        return self.moves.sum(axis=1), np.abs(self.moves).sum(axis=1), squares

    def present(self, where: Rows) -> OutputSide:
        """The same over some of the rows."""
        return OutputSide(
            self.reference,
            self.outputs.take(where, axis=1) if self.weights.size else self.outputs[:, :0],
            self.weights.take(where) if self.weights.size else self.weights,
            np.searchsorted(where, self.units),
            self.moves.take(where, axis=1),
            _among(self.near, where),
            self.coarse.take(where, axis=1) if self.coarse.size else self.coarse,
            self.totals,
        )


def output_side(
    outputs: Floats,
    reference: Reference,
    weights: Floats | None = None,
    units: Rows | None = None,
    joint: bool = True,
    totals: bool = False,
) -> OutputSide:
    """The outputs' half of a block of rows.

    Parameters
    ----------
    outputs : float64 array of shape (outputs, rows)
    reference : Reference
        Of the outputs.
    weights : float64 array of shape (rows,), optional
    units : int64 array, optional
        Where units of rows begin, and the last one ends; one unit by default.
    joint : bool
        Count rows by coarse cells too.
    totals : bool
        Sum values per slot and cell too: what a trimmed mean needs.
    """
    moves = outputs - np.array([_signed(center) for center in reference.center])[:, None]
    if weights is not None:
        moves *= weights
    coarse = np.zeros((len(outputs) if joint else 0, outputs.shape[1] if joint else 0), dtype=np.uint8)
    for k in range(len(coarse)):
        for start in range(0, outputs.shape[1], _PART):
            part = slice(start, start + _PART)
            buckets = places(outputs[k, part], reference.origin[k], reference.scale[k], BUCKETS)
            coarse[k, part] = reference.coarse[k][buckets]
    return OutputSide(
        reference,
        outputs,
        np.empty(0) if weights is None else weights,
        np.array([0, outputs.shape[1]]) if units is None else units,
        moves,
        _near(outputs, reference.flip_edges),
        coarse,
        totals,
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
    found = Tallies(reference, side, len(side.outputs))
    for j, x in enumerate(columns):
        found.output_total[j], found.output_absolute[j], found.output_squares[j] = found.add(j, x).moved
    return State(found.columns(), found.pairs())


def observe_outputs(side: OutputSide) -> ColumnState:
    """What the outputs looked like over a block of rows."""
    found = Tallies(side.reference, side, 0)
    for k, y in enumerate(side.outputs):
        found.add(k, y)
    return found.columns()


class Tallies:
    """States in the making; columns come first, so that a column's part is one piece of memory."""

    def __init__(self, reference: Reference, side: OutputSide, outputs: int, columns: int | None = None):
        count = reference.columns if columns is None else columns
        slots, cells = 2 * REGIONS + 1, reference.edges.shape[1] + REGIONS
        coarse = COARSE if len(side.coarse) and outputs else 0
        self.reference, self.side, self.outputs = reference, side, outputs
        self.n, self.missing = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
        self.fractional, self.weight = np.zeros(count, dtype=np.int64), np.zeros(count)
        self.limits = np.tile(_NOTHING, (count, 1))
        self.slots, self.slot_total = np.zeros((count, slots)), np.zeros((count, slots if side.totals else 0))
        self.cells, self.cell_total = np.zeros((count, cells)), np.zeros((count, cells if side.totals else 0))
        self.cell_low, self.cell_high = np.full((count, cells), np.inf), np.full((count, cells), -np.inf)
        self.flip_weight, self.coarse = np.zeros((count, FLIP_EDGES)), np.zeros((count, COARSE))
        self.coarse_first = np.full((count, COARSE), BUCKETS, dtype=np.uint16)
        self.coarse_last = np.zeros((count, COARSE), dtype=np.uint16)
        self.weight_squares = np.zeros(count)
        self.sums, self.units = np.zeros((count, outputs, 7)), np.zeros((count, outputs, 3))
        self.joint = np.zeros((count, outputs, coarse, coarse))
        self.output_total, self.output_absolute, self.output_squares = np.zeros((3, count, outputs))
        self.flips, self.output_flips = (np.zeros((count, outputs, FLIP_EDGES, 4)) for _ in range(2))
        self.memory = scratch(side.rows, outputs, BUCKETS, COARSE, coarse > 0)

    def add(self, j: int, x: Floats) -> OutputSide:
        """Add a column; returns the outputs of the rows where it has values."""
        side = self.side
        count = self._pass(j, x, side, checked=False)
        if count < 0:
            finite = np.flatnonzero(np.isfinite(x))
            x, side = (x, side) if finite.size == x.size else (x.take(finite), side.present(finite))
            self._clear(j)
            count = self._pass(j, x, side, checked=True)
        self.n[j], self.missing[j] = x.size, self.side.rows - x.size
        self.weight[j] = side.weights.sum() if side.weights.size else x.size
        self.weight_squares[j] = (side.weights * side.weights).sum() if side.weights.size else x.size
        self.fractional[j] = np.count_nonzero(side.weights != np.rint(side.weights))
        mass = side.weights.take(self.memory.near_rows[:count]) if side.weights.size else None
        self.flip_weight[j] = np.bincount(self.memory.near_cells[:count], mass, minlength=FLIP_EDGES)
        return side

    def _pass(self, j: int, x: Floats, side: OutputSide, checked: bool) -> int:
        from excir_dask.kernels.pass_loops import column_pass

        ref = self.reference
        flip_edges = ref.flip_edges[j, : int(np.searchsorted(ref.flip_edges[j], np.inf)) + SPARE]
        grid = Grid(
            _signed(ref.center[j]), float(ref.origin[j]), float(ref.scale[j]), ref.slots[j], ref.coarse[j],
            ref.edges[j], ref.steps[j], ref.first_edge[j], flip_edges,
        )  # fmt: skip
        tally = Tally(
            self.limits[j], self.slots[j], self.coarse[j], self.coarse_first[j], self.coarse_last[j], self.cells[j],
            self.cell_low[j], self.cell_high[j], self.slot_total[j], self.cell_total[j], self.sums[j], self.units[j],
            self.flips[j], self.output_flips[j], self.joint[j],
        )  # fmt: skip
        joint = side.coarse if self.joint.shape[-1] else side.coarse[:0, :0]
        paired = Side(side.weights, side.units, side.moves[: self.outputs], joint, *side.near)
        return int(column_pass(x, grid, paired, tally, self.memory, checked))

    def _clear(self, j: int) -> None:
        self.limits[j] = _NOTHING
        self.cell_low[j], self.cell_high[j] = np.inf, -np.inf
        self.coarse_first[j], self.coarse_last[j] = BUCKETS, 0
        for array in (
            self.slots, self.slot_total, self.coarse, self.cells, self.cell_total, self.sums, self.units, self.flips,
            self.output_flips, self.joint,
        ):  # fmt: skip
            array[j] = 0.0

    def arrays(self) -> SegmentArrays:
        """The arrays that the loop over segments adds to."""
        from excir_dask.kernels.segment_loops import SegmentArrays

        return SegmentArrays(*(getattr(self, name) for name in SegmentArrays._fields))

    def columns(self) -> ColumnState:
        low, high, total, absolute, squares, balance = np.ascontiguousarray(self.limits.T)
        return ColumnState(
            self.reference.id, self.n, self.missing, self.weight, self.fractional, low + 0.0, high + 0.0, total,
            absolute, squares, balance, self.weight_squares, self.coarse, self.coarse_first, self.coarse_last,
            self.slots, self.cells, self.cell_low, self.cell_high, self.flip_weight, self.slot_total, self.cell_total,
        )  # fmt: skip

    def pairs(self) -> PairState:
        arrays = (
            self.sums, self.units, self.output_total, self.output_absolute, self.output_squares, self.flips,
            self.output_flips, self.joint,
        )  # fmt: skip
        identity = f"{self.reference.id}-{self.side.reference.id}"
        return PairState(identity, *(np.ascontiguousarray(array.swapaxes(0, 1)) for array in arrays))


def _signed(center: float) -> float:
    """The same centre; -0.0 in place of zero, from which both zeros are +0.0 away: they lie in the cell above."""
    return float(center) or -0.0


def _near(outputs: Floats, flip_edges: Floats) -> Near:
    """Rows around each output's centre."""
    rows, cells = [], []
    for y, edges in zip(outputs, flip_edges, strict=True):
        finite = edges[np.isfinite(edges)]
        rows.append(np.flatnonzero((y >= finite[0]) & (y < finite[-1])))
        cells.append(np.searchsorted(finite, y.take(rows[-1]), side="right"))
    ends = np.cumsum([each.size for each in rows], dtype=np.int64)
    return ends, np.concatenate([*rows, []]).astype(np.uint32), np.concatenate([*cells, []]).astype(np.uint8)


def _among(near: Near, where: Rows) -> Near:
    """Rows around the centres, counted among some of the rows."""
    ends, rows, cells = near
    places = np.searchsorted(where, rows)
    there = places < where.size
    there[there] = where[places[there]] == rows[there]
    kept = np.concatenate(([0], np.cumsum(there)))
    return kept[ends], places[there].astype(np.uint32), cells[there]
