"""The inner loops of the pass: a column is gone through block by block, and each block stays in the cache
while its values are summed, counted per bucket and compared with every output.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from excir_dask.kernels.compiled import compiled
from excir_dask.kernels.reference import SPARE
from excir_dask.kernels.tally import BLOCK, CODES, Grid, Scratch, Side, Tally

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
    if w.size:
        for i in range(x.size):
            away = x[i] - center
            p = away * m[i]
            s = math.copysign(1.0, p)
            n += p
            d += abs(p)
            s2 += p * p
            sp += p * abs(p)
            t0 += w[i] * s
            t1 += w[i] * away * s
            t2 += m[i] * s
    else:  # 0.25 ns per value, where a loop that looks for weights in every row takes 0.5
        for i in range(x.size):
            away = x[i] - center
            p = away * m[i]
            s = math.copysign(1.0, p)
            n += p
            d += abs(p)
            s2 += p * p
            sp += p * abs(p)
            t0 += s
            t1 += away * s
            t2 += m[i] * s
    return n, d, s2, sp, t0, t1, t2


@compiled
def _spread(x: Floats, center: float, w: Floats, low: float, high: float) -> tuple[float, float, float, float, int]:
    """Sums of w d, w |d|, w d^2 and w sign d, with d = x - center, and how many values lie outside some limits."""
    total = absolute = squares = balance = 0.0
    outside = 0
    if w.size:
        for i in range(x.size):
            away = x[i] - center
            total += w[i] * away
            absolute += w[i] * abs(away)
            squares += w[i] * away * away
            balance += math.copysign(w[i], away)
            outside += (x[i] < low) | (x[i] > high)
    else:
        for i in range(x.size):
            away = x[i] - center
            total += away
            absolute += abs(away)
            squares += away * away
            balance += math.copysign(1.0, away)
            outside += (x[i] < low) | (x[i] > high)
    return total, absolute, squares, balance, outside


@compiled
def _widen(x: Floats, limits: Floats) -> None:
    """Make room for the values; seldom needed, since it takes three times as long as to count those outside."""
    for i in range(x.size):
        limits[0] = x[i] if x[i] < limits[0] else limits[0]
        limits[1] = x[i] if x[i] > limits[1] else limits[1]


@compiled
def _bucket(v: float, origin: float, scale: float, top: float) -> np.int32:
    place = (v - origin) * scale
    place = place if place > 0.0 else 0.0  # min() and max() would look for NaN first
    return np.int32(place if place < top else top)


@compiled
def _number_codes(grid: Grid, memory: Scratch) -> None:
    """Give each run of buckets with the same slot and coarse cell a code, which is odd where the slot is."""
    code = -1
    for b in range(grid.slots.size):
        slot, coarse = grid.slots[b], grid.coarse[b]
        if b == 0 or slot != grid.slots[b - 1] or coarse != grid.coarse[b - 1]:
            code += 1
            code += (code ^ slot) & 1
            memory.slot_of[code], memory.coarse_of[code] = slot, coarse
        memory.code_of[b] = code


@compiled
def _find_codes(x: Floats, grid: Grid, memory: Scratch) -> None:
    origin, scale, top = grid.origin, grid.scale, float(grid.slots.size - 1)
    buckets, codes, code_of, seen = memory.buckets, memory.codes, memory.code_of, memory.seen
    for i in range(x.size):
        buckets[i] = np.uint16(_bucket(x[i], origin, scale, top))
    for i in range(x.size):  # apart from the loop above, which is vector code
        codes[i] = code_of[buckets[i]]
        seen[buckets[i]] = np.uint8(1)


@compiled
def _list_odd(codes: NDArray[np.uint8], listed: NDArray[np.uint16]) -> int:
    """List the rows with odd codes; returns how many there are.

    The list has a place to spare: always writing and advancing by a flag takes half the time of a branch.
    """
    n = np.uint64(0)
    for i in range(codes.size):
        listed[n] = np.uint16(i)
        n += np.uint64(codes[i]) & np.uint64(1)
    return int(n)


@compiled
def _count(
    codes: NDArray[np.uint8], others: NDArray[np.uint8], w: Floats, places: NDArray[np.uint16],
    counts: NDArray[np.uint32], masses: Floats,
) -> None:  # fmt: skip
    """Count rows, or add up their weights, by code and whatever the others are.

    Loops by themselves: a processor that finds codes, lists rows and counts in one loop waits for stores that may
    concern later loads, 2.0 ns per value in place of 1.2.
    """
    width = np.uint16(counts.size // CODES)
    for i in range(others.size):
        places[i] = np.uint16(codes[i]) * width + np.uint16(others[i])
    if w.size:
        for i in range(others.size):
            masses[places[i]] += w[i]
    else:
        for i in range(others.size):
            counts[places[i]] += np.uint32(1)


@compiled
def _code_totals(x: Floats, w: Floats, center: float, codes: NDArray[np.uint8], totals: Floats) -> None:
    """Sum of w (x - center) per code."""
    for i in range(x.size):
        totals[codes[i]] += (w[i] if w.size else 1.0) * (x[i] - center)


@compiled
def _find_cells(x: Floats, listed: NDArray[np.uint16], grid: Grid, memory: Scratch) -> None:
    """The cell of each listed row: how many edges are at most as large, and odd slots below its own.

    So cells of different slots are different. Each odd slot is cut into equal parts, and ``first_edge`` says how many
    edges lie below each of them.
    """
    slots, edges, steps, first_edge = grid.slots, grid.edges, grid.steps, grid.first_edge
    buckets, cells = memory.buckets, memory.cells
    last_part = float(first_edge.shape[1] - 2)
    for r in range(listed.size):
        v = x[listed[r]]
        slot = np.uint64(slots[buckets[listed[r]]] >> np.uint8(1))
        part = np.uint64(_bucket(v, steps[slot, 0], steps[slot, 1], last_part))
        first, stop = np.int64(first_edge[slot, part]), np.int64(first_edge[slot, part + np.uint64(1)])
        cells[r] = np.uint64(_cell(edges, first, stop, v)) + slot


@compiled
def _closer(
    x: Floats, w: Floats, start: int, listed: NDArray[np.uint16], grid: Grid, tally: Tally, memory: Scratch, near: int
) -> int:
    """Weight, smallest and largest value per cell of the listed rows, and those around the centre; returns how many."""
    _find_cells(x, listed, grid, memory)
    cell_of, near_rows = memory.cells, memory.near_rows
    cells, cell_low, cell_high, cell_total = tally.cells, tally.cell_low, tally.cell_high, tally.cell_total
    for r in range(listed.size):
        v, c = x[listed[r]], cell_of[r]
        cells[c] += w[listed[r]] if w.size else 1.0
        cell_low[c] = v if v < cell_low[c] else cell_low[c]
        cell_high[c] = v if v > cell_high[c] else cell_high[c]
    if cell_total.size:
        for r in range(listed.size):
            cell_total[cell_of[r]] += (w[listed[r]] if w.size else 1.0) * (x[listed[r]] - grid.center)
    low, high = grid.flip_edges[0], grid.flip_edges[-SPARE - 1]
    for r in range(listed.size):
        v = x[listed[r]]
        near_rows[near] = start + listed[r]
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
    rows, cells, flip_edges = memory.near_rows[before:near], memory.near_cells[before:near], grid.flip_edges
    for r in range(rows.size):
        v, cell = x[np.int64(rows[r]) - start], 0
        for e in range(flip_edges.size):  # all of them at once: half the time of a search
            cell += flip_edges[e] <= v
        cells[r] = cell
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
def _add_codes(side: Side, tally: Tally, memory: Scratch) -> None:
    """From what was found per code to slots, coarse cells and joint counts."""
    width = memory.counts.shape[1] // CODES
    for code in range(CODES):
        slot, coarse = memory.slot_of[code], memory.coarse_of[code]
        for k in range(memory.counts.shape[0]):
            for e in range(width):
                place = code * width + e
                mass = memory.masses[k, place] if side.weights.size else float(memory.counts[k, place])
                if k == 0:
                    tally.slots[slot] += mass
                    tally.coarse[coarse] += mass
                if k < side.coarse.shape[0]:
                    tally.joint[k, coarse, e] += mass
        if tally.slot_total.size:
            tally.slot_total[slot] += memory.totals[code]


@compiled
def column_pass(x: Floats, grid: Grid, side: Side, tally: Tally, memory: Scratch, checked: bool) -> int:
    """Add a column to its tally; returns how many rows lie around its centre, or -1 where values may not be finite.

    ``checked`` says that they are: a sum may not be finite although its values are.

    With d = x - center, m = w (y - b) and p = d m, s is the sign of p: that of d times that of m, and zero counts as
    positive. What was added before a -1 is to be thrown away.
    """
    memory.counts[:], memory.seen[:] = 0, 0
    memory.masses[:], memory.totals[:] = 0.0, 0.0
    _number_codes(grid, memory)
    outputs, joint = side.moves.shape[0], side.coarse.shape[0]
    unit = np.zeros((outputs, 2))
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
            codes = memory.codes[: some.size]
            total, absolute, squares, balance, outside = _spread(some, grid.center, w, limits[0], limits[1])
            if not (checked or math.isfinite(absolute)):
                return -1
            if outside:
                _widen(some, limits)
            limits[2] += total
            limits[3] += absolute
            limits[4] += squares
            limits[5] += balance
            _find_codes(some, grid, memory)
            if joint == 0:
                _count(codes, memory.turns[: some.size], w, memory.places, memory.counts[0], memory.masses[0])
            for k in range(joint):
                others = side.coarse[k, start:stop]
                _count(codes, others, w, memory.places, memory.counts[k], memory.masses[k])
            if tally.slot_total.size:
                _code_totals(some, w, grid.center, codes, memory.totals)
            listed = memory.listed[: _list_odd(codes, memory.listed)]
            before = near
            near = _closer(some, w, start, listed, grid, tally, memory, before)
            _pairs(some, grid.center, side, start, unit, tally)
            _all_flips(some, grid, side, start, before, near, tally, memory)
        for k in range(outputs):
            n, d = unit[k, 0], unit[k, 1]
            tally.sums[k, 0] += n
            tally.sums[k, 1] += d
            tally.units[k, 0] += n * n
            tally.units[k, 1] += n * d
            tally.units[k, 2] += d * d
    _add_codes(side, tally, memory)
    for b in range(grid.coarse.size):
        if memory.seen[b]:
            tally.coarse_first[grid.coarse[b]] = min(tally.coarse_first[grid.coarse[b]], np.uint16(b))
            tally.coarse_last[grid.coarse[b]] = np.uint16(b)  # buckets are gone through in order
    return near
