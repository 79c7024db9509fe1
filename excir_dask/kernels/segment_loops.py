"""The inner loop over segments: every column goes through the loops of the pass once per segment.

Rows of a segment lie side by side. One call per column takes all segments: a call from Python per segment would take
60 microseconds, as long as 5,000 rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from excir_dask.kernels.compiled import compiled
from excir_dask.kernels.pass_loops import column_pass
from excir_dask.kernels.reference import BUCKETS, SPARE
from excir_dask.kernels.tally import Grid, Scratch, Side, Tally

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


class Grids(NamedTuple):
    """Those of all segments and columns: all columns of the first segment come first."""

    center: Floats
    origin: Floats
    scale: Floats
    slots: NDArray[np.uint8]
    coarse: NDArray[np.uint8]
    edges: Floats
    steps: Floats
    first_edge: NDArray[np.uint16]
    flip_edges: Floats


class Sides(NamedTuple):
    """What a column is paired with: those of the segments of a block, one after the other."""

    starts: Rows
    """(segments + 1,) where the rows of each begin, and the last one ends"""
    weights: Floats
    """empty for ones"""
    units: Rows
    """(segments, units + 1) where units of rows begin in each"""
    moves: Floats
    """(outputs * rows,) of w (y - b): of each segment, all rows of the first output come first"""
    coarse: NDArray[np.uint8]
    """the same of coarse cells; empty if nobody asked"""
    near_starts: Rows
    """(segments + 1,) where the rows around the outputs' centres begin among the next two"""
    near_ends: Rows
    """(segments, outputs) where those of each output end, counted from there"""
    near_rows: NDArray[np.uint32]
    near_cells: NDArray[np.uint8]
    sums: Floats
    """(segments, outputs, 3) of w (y - b), w |y - b| and w (y - b)^2"""


class SegmentArrays(NamedTuple):
    """What is found, an entry per segment and column, as in :class:`excir_dask.kernels.tally.Tally`."""

    limits: Floats
    slots: Floats
    coarse: Floats
    coarse_first: NDArray[np.uint16]
    coarse_last: NDArray[np.uint16]
    cells: Floats
    cell_low: Floats
    cell_high: Floats
    slot_total: Floats
    cell_total: Floats
    sums: Floats
    units: Floats
    flips: Floats
    output_flips: Floats
    joint: Floats
    n: Rows
    missing: Rows
    fractional: Rows
    weight: Floats
    weight_squares: Floats
    flip_weight: Floats
    output_total: Floats
    output_absolute: Floats
    output_squares: Floats


@compiled
def _clear(tally: Tally) -> None:
    """As before anything was added."""
    tally.limits[:] = 0.0
    tally.limits[0], tally.limits[1] = np.inf, -np.inf
    tally.cell_low[:], tally.cell_high[:] = np.inf, -np.inf
    tally.coarse_first[:], tally.coarse_last[:] = BUCKETS, 0
    tally.slots[:], tally.coarse[:], tally.cells[:] = 0.0, 0.0, 0.0
    tally.slot_total[:], tally.cell_total[:], tally.sums[:], tally.units[:] = 0.0, 0.0, 0.0, 0.0
    tally.flips[:], tally.output_flips[:], tally.joint[:] = 0.0, 0.0, 0.0


@compiled
def _present(side: Side, where: Rows) -> Side:
    """The same over some of the rows."""
    outputs, rows = side.moves.shape[0], where.size
    moves = np.empty((outputs, rows))
    coarse = np.empty((side.coarse.shape[0], rows if side.coarse.shape[0] else 0), np.uint8)
    for k in range(outputs):
        for r in range(rows):
            moves[k, r] = side.moves[k, where[r]]
    for k in range(side.coarse.shape[0]):
        for r in range(rows):
            coarse[k, r] = side.coarse[k, where[r]]
    weights = np.empty(rows if side.weights.size else 0)
    for r in range(weights.size):
        weights[r] = side.weights[where[r]]
    ends, near = np.empty(outputs, np.int64), 0
    near_rows, near_cells = np.empty(side.near_rows.size, np.uint32), np.empty(side.near_rows.size, np.uint8)
    first = 0
    for k in range(outputs):
        place = 0
        for r in range(first, side.near_ends[k]):
            row = np.int64(side.near_rows[r])
            while place < rows and where[place] < row:
                place += 1
            if place < rows and where[place] == row:
                near_rows[near] = place
                near_cells[near] = side.near_cells[r]
                near += 1
        first = side.near_ends[k]
        ends[k] = near
    units = np.searchsorted(where, side.units)
    return Side(weights, units, moves, coarse, ends, near_rows[:near], near_cells[:near])


@compiled
def output_sums(starts: Rows, moves: Floats, weights: Floats) -> Floats:
    """Sums of w (y - b), w |y - b| and w (y - b)^2 of each segment and output."""
    found = np.empty((starts.size - 1, moves.shape[0], 3))
    for s in range(starts.size - 1):
        rows = slice(starts[s], starts[s + 1])
        _outputs(moves[:, rows], weights[rows], found[s])
    return found


@compiled
def _outputs(moved: Floats, weights: Floats, found: Floats) -> None:
    """The same of each output over some rows."""
    for k in range(moved.shape[0]):
        a = b = c = 0.0
        moves = moved[k]
        if weights.size:
            for i in range(moves.size):
                a += moves[i]
                b += abs(moves[i])
                c += moves[i] * moves[i] / weights[i]
        else:  # without a division it is vector code
            for i in range(moves.size):
                a += moves[i]
                b += abs(moves[i])
                c += moves[i] * moves[i]
        found[k, 0], found[k, 1], found[k, 2] = a, b, c


@compiled
def segments_pass(
    x: Floats, grid_of: Rows, tally_of: Rows, grids: Grids, sides: Sides, outputs: int, found: SegmentArrays,
    memory: Scratch,
) -> None:  # fmt: skip
    """Add a column to the tallies of all segments of a block.

    ``grid_of`` and ``tally_of`` say which grid and which tally each segment has.
    """
    for i in range(grid_of.size):
        start, stop = sides.starts[i], sides.starts[i + 1]
        rows = stop - start
        g, c = grid_of[i], tally_of[i]
        flips = grids.flip_edges[g]
        some = 0
        while some < flips.size and flips[some] < np.inf:
            some += 1
        grid = Grid(
            grids.center[g], grids.origin[g], grids.scale[g], grids.slots[g], grids.coarse[g], grids.edges[g],
            grids.steps[g], grids.first_edge[g], flips[: some + SPARE],
        )  # fmt: skip
        a, b = sides.near_starts[i], sides.near_starts[i + 1]
        joint = outputs if sides.coarse.size else 0
        side = Side(
            sides.weights[start:stop],
            sides.units[i],
            sides.moves[outputs * start : outputs * stop].reshape(outputs, rows),
            sides.coarse[joint * start : joint * stop].reshape(joint, rows if joint else 0),
            sides.near_ends[i],
            sides.near_rows[a:b],
            sides.near_cells[a:b],
        )
        tally = Tally(
            found.limits[c], found.slots[c], found.coarse[c], found.coarse_first[c], found.coarse_last[c],
            found.cells[c], found.cell_low[c], found.cell_high[c], found.slot_total[c], found.cell_total[c],
            found.sums[c], found.units[c], found.flips[c], found.output_flips[c], found.joint[c],
        )  # fmt: skip
        values = x[start:stop]
        sums = sides.sums[i]
        near = column_pass(values, grid, side, tally, memory, False)
        if near < 0:
            _clear(tally)
            finite = np.flatnonzero(np.isfinite(values))
            if finite.size < rows:
                values, side, sums = values[finite], _present(side, finite), np.empty_like(sums)
                _outputs(side.moves, side.weights, sums)
            near = column_pass(values, grid, side, tally, memory, True)
        found.n[c], found.missing[c] = values.size, rows - values.size
        weight, squares, fractional = 0.0, 0.0, 0
        for r in range(side.weights.size):
            w = side.weights[r]
            weight += w
            squares += w * w
            fractional += w != np.rint(w)
        found.weight[c] = weight if sides.weights.size else values.size
        found.weight_squares[c] = squares if sides.weights.size else values.size
        found.fractional[c] = fractional
        for r in range(near):
            mass = side.weights[memory.near_rows[r]] if side.weights.size else 1.0
            found.flip_weight[c, memory.near_cells[r]] += mass
        for k in range(outputs):
            found.output_total[c, k], found.output_absolute[c, k] = sums[k, 0], sums[k, 1]
            found.output_squares[c, k] = sums[k, 2]
