"""The loop over columns that finds the cells between their provisional and final centres."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from excir_dask.kernels.compiled import compiled_exactly

Floats = NDArray[np.float64]


@compiled_exactly
def crossed_cells(
    flip_edges: Floats,
    weights: Floats,
    centers: Floats,
    shifts: Floats,
    whole: Floats,
    partial: Floats,
    figures: Floats,
) -> None:
    """Fill the last three, which are zeros.

    ``figures`` has rows for the width, the sum if the cell were evenly filled and what was passed; see ``_Crossed`` in
    :mod:`excir_dask.kernels.recenter`.
    """
    width, even, passed = figures
    for j in range(shifts.size):
        if shifts[j] == 0.0:
            continue
        count = 0
        while count < flip_edges.shape[1] and flip_edges[j, count] < np.inf:
            count += 1
        edges = flip_edges[j, :count]
        final = centers[j] + shifts[j]
        home, there = np.searchsorted(edges, centers[j], side="right"), np.searchsorted(edges, final, side="right")
        start, stop = min(home, there + 1), max(home, there)
        whole[j, start:stop] = 1.0
        for cell in range(max(start, 1), min(stop, count)):
            middle = edges[cell - 1] + (edges[cell] - edges[cell - 1]) / 2.0
            passed[j] += weights[j, cell] * abs(final - middle)
        if not edges[0] <= final < edges[-1]:
            width[j] = np.inf
            continue
        below, above = edges[there - 1], edges[there]
        # rows from the provisional centre up to the final one, or from that up to the provisional one
        partial[j, there], width[j] = 1.0, final - below if shifts[j] > 0.0 else above - final
        passed[j] += weights[j, there] * width[j] ** 2 / (above - below) / 2.0
        if final == below:  # a cell begins at the final centre: below it, all or nothing has changed
            partial[j, there] = width[j] = 0.0
            whole[j, there] = 1.0 if shifts[j] < 0.0 else 0.0
        even[j] = width[j] * (width[j] / (above - below))
