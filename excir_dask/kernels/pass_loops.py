"""The inner loops of the pass: sums of pairs, counts per bucket, and what lies around quantiles and centres."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from excir_dask.kernels.compiled import compiled

Floats = NDArray[np.float64]

BLOCK = 2048
"""rows that stay in the first-level cache while every output is gone through"""

FEW = 16
"""edges that are compared one by one"""


@compiled
def _cell(edges: Floats, first: int, stop: int, v: float) -> int:
    """How many of the ascending edges are at most ``v``, if that is at least ``first`` and at most ``stop``."""
    while stop - first > FEW:
        half = (first + stop) >> 1
        if edges[half] <= v:
            first = half + 1
        else:
            stop = half
    found = first
    for e in range(first, stop):  # a processor does not guess well in which half a value lies
        found += edges[e] <= v
    return found


@compiled
def _plain_sums(x: Floats, center: float, m: Floats) -> tuple[float, float, float, float, float, float, float]:
    n = d = s2 = sp = t0 = t1 = t2 = 0.0
    for i in range(x.size):
        away = x[i] - center
        p = away * m[i]
        s = math.copysign(1.0, p)
        q = abs(p)
        n += p
        d += q
        s2 += p * p
        sp += p * q
        t0 += s
        t1 += away * s
        t2 += m[i] * s
    return n, d, s2, sp, t0, t1, t2


@compiled
def _weighted_sums(
    x: Floats, center: float, m: Floats, w: Floats
) -> tuple[float, float, float, float, float, float, float]:
    n = d = s2 = sp = t0 = t1 = t2 = 0.0
    for i in range(x.size):
        away = x[i] - center
        p = away * m[i]
        s = math.copysign(1.0, p)
        q = abs(p)
        n += p
        d += q
        s2 += p * p
        sp += p * q
        t0 += w[i] * s
        t1 += w[i] * away * s
        t2 += m[i] * s
    return n, d, s2, sp, t0, t1, t2


@compiled
def pair_sums(
    x: Floats, center: float, moves: Floats, weights: Floats, edges: NDArray[np.int64], found: Floats, units: Floats
) -> None:
    """Add the sums of a column with each output.

    With d = x - center, m = w (y - b), p = d m and s = sign p (that of d times that of m, zero counts as positive),
    ``found`` (outputs, 7) gets the sums of p, |p|, p^2, p|p|, w s, w s d and s m; ``units`` (outputs, 3) gets, over the
    units of rows between neighbouring ``edges``, the sums of N_u N_u, N_u D_u and D_u D_u. ``moves`` is
    (outputs, rows) of m; ``weights`` is (rows,), or empty for ones.
    """
    outputs = moves.shape[0]
    unit = np.zeros((outputs, 2))
    for u in range(edges.size - 1):
        unit[:] = 0.0
        for start in range(edges[u], edges[u + 1], BLOCK):
            stop = min(start + BLOCK, edges[u + 1])
            for k in range(outputs):
                some, m = x[start:stop], moves[k, start:stop]
                if weights.size:
                    n, d, s2, sp, t0, t1, t2 = _weighted_sums(some, center, m, weights[start:stop])
                else:
                    n, d, s2, sp, t0, t1, t2 = _plain_sums(some, center, m)
                unit[k, 0] += n
                unit[k, 1] += d
                found[k, 2] += s2
                found[k, 3] += sp
                found[k, 4] += t0
                found[k, 5] += t1
                found[k, 6] += t2
        for k in range(outputs):
            found[k, 0] += unit[k, 0]
            found[k, 1] += unit[k, 1]
            units[k, 0] += unit[k, 0] * unit[k, 0]
            units[k, 1] += unit[k, 0] * unit[k, 1]
            units[k, 2] += unit[k, 1] * unit[k, 1]


@compiled
def spread(x: Floats, center: float, weights: Floats) -> tuple[float, float]:
    """Sums of w (x - center) and w |x - center|."""
    total = absolute = 0.0
    if weights.size:
        for i in range(x.size):
            away = x[i] - center
            total += weights[i] * away
            absolute += weights[i] * abs(away)
    else:
        for i in range(x.size):
            away = x[i] - center
            total += away
            absolute += abs(away)
    return total, absolute


@compiled
def bucket_rows(
    x: Floats,
    origin: float,
    scale: float,
    slots: NDArray[np.uint8],
    counts: NDArray[np.uint32],
    rows: NDArray[np.uint32],
) -> int:
    """Count the values per bucket, and list the rows whose bucket has an odd slot; returns how many are listed.

    ``rows`` has a place to spare: always writing and advancing by a flag takes half the time of a branch.
    """
    top = float(counts.size - 1)
    n = 0
    for i in range(x.size):
        b = np.uint64(np.int64(min(max((x[i] - origin) * scale, 0.0), top)))
        counts[b] += np.uint32(1)
        rows[n] = i
        n += slots[b] & np.uint8(1)
    return n


@compiled
def bucket_weights(
    x: Floats, weights: Floats, origin: float, scale: float, slots: NDArray[np.uint8], found: Floats,
    rows: NDArray[np.uint32],
) -> int:  # fmt: skip
    """The same with weights."""
    top = float(found.size - 1)
    n = 0
    for i in range(x.size):
        b = np.uint64(np.int64(min(max((x[i] - origin) * scale, 0.0), top)))
        found[b] += weights[i]
        rows[n] = i
        n += slots[b] & np.uint8(1)
    return n


@compiled
def cells(
    values: Floats, weights: Floats, origin: float, scale: float, slots: NDArray[np.uint8], edges: Floats,
    first: NDArray[np.uint16], found: Floats, low: Floats, high: Floats,
) -> None:  # fmt: skip
    """Weight, smallest and largest value per cell.

    The cell of a value is the number of edges that are at most as large, plus the number of odd slots below its own:
    cells of different slots are different. ``first`` says how many edges lie below each bucket.
    """
    top = float(slots.size - 1)
    for r in range(values.size):
        v = values[r]
        b = np.uint64(np.int64(min(max((v - origin) * scale, 0.0), top)))
        c = _cell(edges, np.int64(first[b]), np.int64(first[b + np.uint64(1)]), v) + np.int64(slots[b] >> np.uint8(1))
        found[c] += weights[r] if weights.size else 1.0
        low[c] = min(low[c], v)
        high[c] = max(high[c], v)


@compiled
def bucket_totals(x: Floats, weights: Floats, origin: float, scale: float, center: float, found: Floats) -> None:
    """Sum of w (x - center) per bucket."""
    top = float(found.size - 1)
    for i in range(x.size):
        b = np.uint64(np.int64(min(max((x[i] - origin) * scale, 0.0), top)))
        found[b] += (weights[i] if weights.size else 1.0) * (x[i] - center)


@compiled
def cell_totals(
    values: Floats, weights: Floats, origin: float, scale: float, slots: NDArray[np.uint8], edges: Floats,
    first: NDArray[np.uint16], center: float, found: Floats,
) -> None:  # fmt: skip
    """Sum of w (x - center) per cell; cells as in :func:`cells`."""
    top = float(slots.size - 1)
    for r in range(values.size):
        v = values[r]
        b = np.uint64(np.int64(min(max((v - origin) * scale, 0.0), top)))
        c = _cell(edges, np.int64(first[b]), np.int64(first[b + np.uint64(1)]), v) + np.int64(slots[b] >> np.uint8(1))
        found[c] += (weights[r] if weights.size else 1.0) * (v - center)


@compiled
def flips(
    x: Floats, center: float, moves: Floats, weights: Floats, rows: NDArray[np.uint32], where: NDArray[np.uint8],
    found: Floats,
) -> None:  # fmt: skip
    """Sums per cell around a centre over the listed rows: of w s, w s d, s m and |p|; ``found`` is (cells, 4)."""
    for r in range(rows.size):
        i = rows[r]
        away = x[i] - center
        m = moves[i]
        p = away * m
        s = math.copysign(1.0, p)
        w = weights[i] if weights.size else 1.0
        c = where[r]
        found[c, 0] += w * s
        found[c, 1] += w * s * away
        found[c, 2] += s * m
        found[c, 3] += abs(p)


@compiled
def near(
    values: Floats, rows: NDArray[np.uint32], edges: Floats, listed: NDArray[np.uint32], where: NDArray[np.uint8]
) -> int:
    """Rows of the values between the first and the last edge, with their cells; returns how many."""
    n = 0
    low, high = edges[0], edges[-1]
    for r in range(values.size):
        v = values[r]
        if low <= v < high:
            listed[n] = rows[r]
            where[n] = _cell(edges, 0, edges.size, v)
            n += 1
    return n


@compiled
def joint_counts(
    x: Floats, origin: float, scale: float, cell: NDArray[np.uint8], others: NDArray[np.uint8], width: int,
    found: NDArray[np.uint32],
) -> None:  # fmt: skip
    """Count rows by the coarse cells of a column and an output; ``others`` are the output's, (rows,)."""
    top = float(cell.size - 1)
    for i in range(x.size):
        b = np.uint64(np.int64(min(max((x[i] - origin) * scale, 0.0), top)))
        found[np.uint64(cell[b]) * np.uint64(width) + np.uint64(others[i])] += np.uint32(1)
