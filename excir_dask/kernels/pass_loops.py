"""The inner loops of the pass: a column is gone through block by block, and each block stays in the cache
while its values are summed, counted per bucket and compared with every output.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from excir_dask.kernels.compiled import compiled, compiled_for_numbers
from excir_dask.kernels.reference import SPARE
from excir_dask.kernels.tally import BLOCK, Grid, Scratch, Side, Tally

Floats = NDArray[np.float64]


@compiled
def _cell(edges: Floats, first: int, stop: int, v: float) -> int:
    """How many of the ascending edges are at most ``v``, if that is at least ``first`` and at most ``stop``.

    The last few are compared at once: a processor guesses badly in which half a value lies.
    """
    while stop - first > SPARE:
        half = (first + stop) >> 1
        if edges[half] <= v:
            first = half + 1
        else:
            stop = half
    found = first
    for e in range(SPARE):
        found += edges[first + e] <= v
    return found


@compiled
def _sums(x: Floats, center: float, m: Floats, w: Floats) -> tuple[float, float, float, float, float, float, float]:
    n = d = s2 = sp = t0 = t1 = t2 = 0.0
    for i in range(x.size):
        away = x[i] - center
        p = away * m[i]
        s = math.copysign(1.0, p)
        q = abs(p)
        mass = w[i] if w.size else 1.0
        n += p
        d += q
        s2 += p * p
        sp += p * q
        t0 += mass * s
        t1 += mass * away * s
        t2 += m[i] * s
    return n, d, s2, sp, t0, t1, t2


@compiled_for_numbers
def _limits(x: Floats) -> tuple[float, float]:
    low, high, other_low, other_high = np.inf, -np.inf, np.inf, -np.inf
    even = x.size & ~1
    for i in range(0, even, 2):  # two of each: one waits for the one before
        a, b = x[i], x[i + 1]
        low = a if a < low else low
        high = a if a > high else high
        other_low = b if b < other_low else other_low
        other_high = b if b > other_high else other_high
    for i in range(even, x.size):
        low, high = min(low, x[i]), max(high, x[i])
    return min(low, other_low), max(high, other_high)


@compiled
def _spread(x: Floats, center: float, w: Floats) -> tuple[float, float, float, float]:
    """Sums of w d, w |d|, w d^2 and w sign d, with d = x - center."""
    total = absolute = squares = balance = 0.0
    if w.size:
        for i in range(x.size):
            away = x[i] - center
            total += w[i] * away
            absolute += w[i] * abs(away)
            squares += w[i] * away * away
            balance += math.copysign(w[i], away)
    else:
        for i in range(x.size):
            away = x[i] - center
            total += away
            absolute += abs(away)
            squares += away * away
            balance += math.copysign(1.0, away)
    return total, absolute, squares, balance


@compiled
def _bucket(v: float, origin: float, scale: float, top: float) -> np.uint64:
    place = (v - origin) * scale
    place = place if place > 0.0 else 0.0  # min() and max() would look for NaN first
    return np.uint64(np.int64(place if place < top else top))


@compiled
def _bucket_rows(x: Floats, w: Floats, grid: Grid, memory: Scratch) -> int:
    """Count the values per bucket, note their coarse cells, and list the rows whose bucket has an odd slot.

    Returns how many are listed. The list has a place to spare: always writing and advancing by a flag takes half the
    time of a branch.
    """
    origin, scale, slots, coarse = grid.origin, grid.scale, grid.slots, grid.coarse
    counts, masses, listed, codes = memory.counts, memory.masses, memory.listed, memory.codes
    top = float(slots.size - 1)
    n = 0
    if w.size:
        for i in range(x.size):
            b = _bucket(x[i], origin, scale, top)
            masses[b] += w[i]
            codes[i] = coarse[b]
            listed[n] = i
            n += slots[b] & np.uint8(1)
    elif memory.joint.size:
        for i in range(x.size):
            b = _bucket(x[i], origin, scale, top)
            counts[b] += np.uint32(1)
            codes[i] = coarse[b]
            listed[n] = i
            n += slots[b] & np.uint8(1)
    else:
        for i in range(x.size):
            b = _bucket(x[i], origin, scale, top)
            counts[b] += np.uint32(1)
            listed[n] = i
            n += slots[b] & np.uint8(1)
    return n


@compiled
def _bucket_totals(x: Floats, w: Floats, grid: Grid, totals: Floats) -> None:
    """Sum of w (x - center) per bucket."""
    top = float(grid.slots.size - 1)
    for i in range(x.size):
        b = _bucket(x[i], grid.origin, grid.scale, top)
        totals[b] += (w[i] if w.size else 1.0) * (x[i] - grid.center)


@compiled
def _closer(
    x: Floats, w: Floats, start: int, listed: NDArray[np.uint32], grid: Grid, tally: Tally, memory: Scratch, near: int
) -> int:
    """Weight, smallest and largest value per cell of the listed rows, and those around the centre; returns how many.

    The cell of a value is the number of edges that are at most as large, plus the number of odd slots below its own: so
    cells of different slots are different. Each odd slot is cut into equal parts, and ``first_edge`` says how many
    edges lie below each of them.
    """
    slots, edges, steps, first_edge, flip_edges = (
        grid.slots, grid.edges, grid.steps, grid.first_edge, grid.flip_edges,
    )  # fmt: skip
    cells, cell_low, cell_high, cell_total = tally.cells, tally.cell_low, tally.cell_high, tally.cell_total
    near_rows = memory.near_rows
    origin, scale, center, top = grid.origin, grid.scale, grid.center, float(grid.slots.size - 1)
    last_part = float(first_edge.shape[1] - 2)
    low, high = flip_edges[0], flip_edges[-SPARE - 1]
    for r in range(listed.size):
        i = listed[r]
        v = x[i]
        slot = np.int64(slots[_bucket(v, origin, scale, top)] >> np.uint8(1))
        part = _bucket(v, steps[slot, 0], steps[slot, 1], last_part)
        first, stop = np.int64(first_edge[slot, part]), np.int64(first_edge[slot, part + np.uint64(1)])
        c = _cell(edges, first, stop, v) + slot
        mass = w[i] if w.size else 1.0
        cells[c] += mass
        cell_low[c] = v if v < cell_low[c] else cell_low[c]
        cell_high[c] = v if v > cell_high[c] else cell_high[c]
        if cell_total.size:
            cell_total[c] += mass * (v - center)
        near_rows[near] = start + i
        near += (v >= low) & (v < high)
    return near


@compiled
def _pairs(x: Floats, center: float, side: Side, start: int, unit: Floats, tally: Tally) -> None:
    """Add the sums of a block with each output."""
    stop = start + x.size
    for k in range(side.moves.shape[0]):
        m = side.moves[k, start:stop]
        n, d, s2, sp, t0, t1, t2 = _sums(x, center, m, side.weights[start:stop])
        unit[k, 0] += n
        unit[k, 1] += d
        tally.sums[k, 2] += s2
        tally.sums[k, 3] += sp
        tally.sums[k, 4] += t0
        tally.sums[k, 5] += t1
        tally.sums[k, 6] += t2


@compiled
def _joint(codes: NDArray[np.uint8], others: NDArray[np.uint8], width: int, found: NDArray[np.uint32]) -> None:
    for i in range(others.size):
        found[np.uint64(codes[i]) * np.uint64(width) + np.uint64(others[i])] += np.uint32(1)


@compiled
def _joint_weights(codes: NDArray[np.uint8], others: NDArray[np.uint8], w: Floats, found: Floats) -> None:
    for i in range(others.size):
        found[codes[i], others[i]] += w[i]


@compiled
def _flips(
    x: Floats, center: float, m: Floats, w: Floats, start: int, rows: NDArray[np.uint32], cells: NDArray[np.uint8],
    found: Floats,
) -> None:  # fmt: skip
    """Add the sums per cell around a centre over the listed rows of a block, which begins at row ``start``."""
    for r in range(rows.size):
        i = np.int64(rows[r]) - start
        away = x[i] - center
        p = away * m[i]
        s = math.copysign(1.0, p)
        mass = w[i] if w.size else 1.0
        c = cells[r]
        found[c, 0] += mass * s
        found[c, 1] += mass * s * away
        found[c, 2] += m[i] * s
        found[c, 3] += abs(p)


@compiled
def _all_flips(
    x: Floats, grid: Grid, side: Side, start: int, before: int, near: int, tally: Tally, memory: Scratch
) -> None:
    """The same around the column's and every output's centre."""
    stop = start + x.size
    w = side.weights[start:stop]
    rows, cells = memory.near_rows[before:near], memory.near_cells[before:near]
    for r in range(rows.size):
        cells[r] = _cell(grid.flip_edges, 0, grid.flip_edges.size - SPARE, x[np.int64(rows[r]) - start])
    for k in range(side.moves.shape[0]):
        m = side.moves[k, start:stop]
        _flips(x, grid.center, m, w, start, rows, cells, tally.flips[k])
        first = last = memory.cursor[k]
        while last < side.near_ends[k] and side.near_rows[last] < stop:
            last += 1
        memory.cursor[k] = last
        mine, theirs = side.near_rows[first:last], side.near_cells[first:last]
        _flips(x, grid.center, m, w, start, mine, theirs, tally.output_flips[k])


@compiled
def column_pass(x: Floats, grid: Grid, side: Side, tally: Tally, memory: Scratch, checked: bool) -> int:
    """Add a column to its tally; returns how many rows lie around its centre, or -1 where values may not be finite.

    ``checked`` says that they are: a sum may not be finite although its values are.

    With d = x - center, m = w (y - b) and p = d m, s is the sign of p: that of d times that of m, and zero counts as
    positive. What was added before a -1 is to be thrown away.
    """
    memory.counts[:] = 0
    memory.masses[:] = 0.0
    memory.totals[:] = 0.0
    memory.joint[:] = 0
    outputs, joint = side.moves.shape[0], side.coarse.shape[0]
    unit = np.zeros((outputs, 2))
    width = tally.joint.shape[2]
    limits = tally.limits
    memory.cursor[:1] = 0
    memory.cursor[1:] = side.near_ends[: max(outputs - 1, 0)]
    near = 0
    for u in range(side.units.size - 1):
        unit[:] = 0.0
        for start in range(side.units[u], side.units[u + 1], BLOCK):
            stop = min(start + BLOCK, side.units[u + 1])
            some = x[start:stop]
            w = side.weights[start:stop]
            total, absolute, squares, balance = _spread(some, grid.center, w)
            if not (checked or math.isfinite(absolute)):
                return -1
            low, high = _limits(some)
            limits[0] = min(limits[0], low)
            limits[1] = max(limits[1], high)
            limits[2] += total
            limits[3] += absolute
            limits[4] += squares
            limits[5] += balance
            listed = _bucket_rows(some, w, grid, memory)
            before = near
            near = _closer(some, w, start, memory.listed[:listed], grid, tally, memory, before)
            if tally.slot_total.size:
                _bucket_totals(some, w, grid, memory.totals)
            _pairs(some, grid.center, side, start, unit, tally)
            _all_flips(some, grid, side, start, before, near, tally, memory)
            for k in range(joint):
                if w.size:
                    _joint_weights(memory.codes, side.coarse[k, start:stop], w, tally.joint[k])
                else:
                    _joint(memory.codes, side.coarse[k, start:stop], width, memory.joint[k])
        for k in range(outputs):
            n, d = unit[k, 0], unit[k, 1]
            tally.sums[k, 0] += n
            tally.sums[k, 1] += d
            tally.units[k, 0] += n * n
            tally.units[k, 1] += n * d
            tally.units[k, 2] += d * d
    for b in range(grid.slots.size):
        mass = memory.masses[b] if side.weights.size else memory.counts[b]
        tally.slots[grid.slots[b]] += mass
        tally.coarse[grid.coarse[b]] += mass
        if mass > 0:
            tally.coarse_first[grid.coarse[b]] = min(tally.coarse_first[grid.coarse[b]], np.uint16(b))
            tally.coarse_last[grid.coarse[b]] = np.uint16(b)  # buckets are gone through in order
        if tally.slot_total.size:
            tally.slot_total[grid.slots[b]] += memory.totals[b]
    for k in range(joint):
        for c in range(width):
            for e in range(width):
                tally.joint[k, c, e] += memory.joint[k, c * width + e]
    return near
