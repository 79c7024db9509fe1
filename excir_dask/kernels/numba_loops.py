"""The inner loops, compiled by numba: one pass over a column, without Python's lock.

In numpy the co-movement sums are eleven passes over memory and cost three times as much; two threads then also wait for
each other's lock between the passes. Reassociation is allowed so that the loops become vector code: the order of
additions then depends on the width of the processor's vectors, never on threads, workers or time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]

BLOCK = 2048
"""rows that stay in the first-level cache during the loops over outputs and thresholds"""


class Cells(NamedTuple):
    """Cells that values are counted in: ``v = (x - origin) scale`` lies in segment ``s = int(v)``, and its cell is
    ``int(base[s] + v slope[s])``. The first and the last segment take whatever lies outside."""

    origin: float
    scale: float
    base: Floats
    """(segments,)"""
    slope: Floats
    """(segments,) cells per unit of v; 0 for the first and the last segment, which are one cell each"""


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile on first use; the result is cached on disk where that is possible."""
    options: dict[str, Any] = {"nogil": True, "fastmath": {"reassoc", "nsz"}}
    compiled: Callable[..., Any]
    try:
        compiled = njit(cache=True, **options)(function)
    except RuntimeError:  # no writable folder, as in a read-only container
        compiled = njit(**options)(function)
    return compiled


@_compiled
def products(
    x: Floats, center: float, moves: Floats, weights: Floats, edges: NDArray[np.int64], found: Floats
) -> float:
    """Add the sums of a column to ``found`` (7, outputs); returns its sum of w |x~|.

    They are N, D, S2 and SP and, over the units of rows between neighbouring ``edges``, the sums of N_u N_u, N_u D_u
    and D_u D_u. ``moves`` is (outputs, rows) of w y~; ``weights`` is (rows,), or empty for ones.
    """
    total = 0.0
    outputs = moves.shape[0]
    unit = np.zeros((2, outputs))
    for u in range(edges.size - 1):
        unit[:] = 0.0
        for start in range(edges[u], edges[u + 1], BLOCK):
            stop = min(start + BLOCK, edges[u + 1])
            for k in range(outputs):
                n = d = s2 = sp = part = 0.0
                for i in range(start, stop):
                    move = x[i] - center
                    p = move * moves[k, i]
                    a = abs(p)
                    n += p
                    d += a
                    s2 += p * p
                    sp += p * a
                    part += abs(move)
                unit[0, k] += n
                unit[1, k] += d
                found[2, k] += s2
                found[3, k] += sp
                if k == 0 and weights.size == 0:
                    total += part
            if weights.size:
                part = 0.0
                for i in range(start, stop):
                    part += weights[i] * abs(x[i] - center)
                total += part
        for k in range(outputs):
            found[0, k] += unit[0, k]
            found[1, k] += unit[1, k]
            found[4, k] += unit[0, k] * unit[0, k]
            found[5, k] += unit[0, k] * unit[1, k]
            found[6, k] += unit[1, k] * unit[1, k]
    return total


@_compiled
def below(x: Floats, thresholds: Floats, weights: Floats, found: Floats) -> None:
    """Add the weight of the values strictly below each threshold to ``found``; ``weights`` empty for ones.

    There are a multiple of four thresholds: four in one pass take half the time of one after the other.
    """
    for start in range(0, x.size, BLOCK):
        stop = min(start + BLOCK, x.size)
        for t in range(0, thresholds.size, 4):
            t0, t1, t2, t3 = thresholds[t], thresholds[t + 1], thresholds[t + 2], thresholds[t + 3]
            if weights.size:
                w0 = w1 = w2 = w3 = 0.0
                for i in range(start, stop):
                    w0 += weights[i] if x[i] < t0 else 0.0
                    w1 += weights[i] if x[i] < t1 else 0.0
                    w2 += weights[i] if x[i] < t2 else 0.0
                    w3 += weights[i] if x[i] < t3 else 0.0
                found[t] += w0
                found[t + 1] += w1
                found[t + 2] += w2
                found[t + 3] += w3
            else:
                n0 = n1 = n2 = n3 = 0
                for i in range(start, stop):
                    n0 += x[i] < t0
                    n1 += x[i] < t1
                    n2 += x[i] < t2
                    n3 += x[i] < t3
                found[t] += n0
                found[t + 1] += n1
                found[t + 2] += n2
                found[t + 3] += n3


@_compiled
def tally(x: Floats, cells: Cells, counts: NDArray[np.uint32]) -> None:
    """Count values in cells."""
    origin, scale, base, slope = cells
    top = float(base.size - 1)
    for i in range(x.size):
        v = min(max((x[i] - origin) * scale, 0.0), top)
        s = np.uint64(np.int64(v))  # unsigned: numba then leaves out the test for negative indices, a third of the time
        counts[np.uint64(np.int64(base[s] + v * slope[s]))] += np.uint32(1)


@_compiled
def collect(x: Floats, cells: Cells, wanted: NDArray[np.bool_], found: Floats) -> None:
    """Copy the values whose cell is wanted; ``found`` has one spare entry: always writing is faster than a branch."""
    origin, scale, base, slope = cells
    top = float(base.size - 1)
    n = 0
    for i in range(x.size):
        v = min(max((x[i] - origin) * scale, 0.0), top)
        s = np.uint64(np.int64(v))
        found[n] = x[i]
        n += wanted[np.uint64(np.int64(base[s] + v * slope[s]))]


@_compiled
def read_off(
    ranks: NDArray[np.int64],
    counts: NDArray[np.uint32],
    full: NDArray[np.bool_],
    cells: Cells,
    ends: Floats,
    found: Floats,
    positions: NDArray[np.int64],
) -> None:
    """Values at ascending ranks, by interpolation inside their cells; ``ends`` are the smallest and the largest value.

    A rank in a full cell gets its position among the values of all full cells instead; ``positions`` is -1 for others.
    """
    origin, scale, base, slope = cells
    cell = segment = 0
    before = crowd = 0
    last = base.size - 1
    for r in range(ranks.size):
        while before + counts[cell] <= ranks[r]:
            before += counts[cell]
            if full[cell]:
                crowd += counts[cell]
            cell += 1
        positions[r] = -1
        if full[cell]:
            positions[r] = crowd + ranks[r] - before
            continue
        while segment < last and base[segment + 1] + (segment + 1) * slope[segment + 1] <= cell:
            segment += 1
        left, right = ends[0], origin + 1.0 / scale
        if segment == last:
            left, right = origin + last / scale, ends[1]
        elif segment > 0:
            left = origin + (cell - base[segment]) / slope[segment] / scale
            right = origin + (cell + 1.0 - base[segment]) / slope[segment] / scale
        value = left + (ranks[r] - before + 0.5) / counts[cell] * (right - left)
        found[r] = min(max(value, ends[0]), ends[1])
