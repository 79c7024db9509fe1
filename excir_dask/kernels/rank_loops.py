"""The inner loops of :mod:`excir_dask.kernels.ranks`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from excir_dask.kernels.compiled import compiled

Floats = NDArray[np.float64]


class Cells(NamedTuple):
    """Cells that values are counted in: ``v = (x - origin) scale`` lies in segment ``s = int(v)``, and its cell is
    ``int(base[s] + v slope[s])``. The first and the last segment take whatever lies outside."""

    origin: float
    scale: float
    base: Floats
    """(segments,)"""
    slope: Floats
    """(segments,) cells per unit of v; 0 for the first and the last segment, which are one cell each"""


@compiled
def tally(x: Floats, cells: Cells, counts: NDArray[np.uint32]) -> None:
    """Count values in cells."""
    origin, scale, base, slope = cells
    top = float(base.size - 1)
    for i in range(x.size):
        v = min(max((x[i] - origin) * scale, 0.0), top)
        s = np.uint64(np.int64(v))  # unsigned: numba then leaves out the test for negative indices, a third of the time
        counts[np.uint64(np.int64(base[s] + v * slope[s]))] += np.uint32(1)


@compiled
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


@compiled
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
