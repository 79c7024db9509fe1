"""The inner loop of :mod:`excir_dask.kernels.dependence`: monotone fits of many short rows of numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from excir_dask.kernels.compiled import compiled

Floats = NDArray[np.float64]


@compiled
def pool(totals: Floats, weights: Floats, fitted: Floats, levels: NDArray[np.int64]) -> None:
    """For each row, totals (value times weight) whose values rise and are nearest to those given.

    Neighbours that violate the order are pooled. Cells without weight are left out.

    Parameters
    ----------
    totals, weights : float64 arrays of shape (rows, cells)
    fitted : float64 array of shape (rows, cells)
        Filled with the fitted totals.
    levels : int64 array of shape (rows,)
        Filled with the number of different values.
    """
    cells = totals.shape[1]
    total, weight = np.empty(cells), np.empty(cells)
    last = np.empty(cells, dtype=np.int64)
    for row in range(totals.shape[0]):
        count = 0
        for i in range(cells):
            if weights[row, i] <= 0.0:
                continue
            total[count], weight[count], last[count] = totals[row, i], weights[row, i], i
            count += 1
            while count > 1 and total[count - 2] * weight[count - 1] >= total[count - 1] * weight[count - 2]:
                total[count - 2] += total[count - 1]
                weight[count - 2] += weight[count - 1]
                last[count - 2] = last[count - 1]
                count -= 1
        block = 0
        for i in range(cells):
            if weights[row, i] <= 0.0:
                fitted[row, i] = 0.0
                continue
            while last[block] < i:
                block += 1
            fitted[row, i] = total[block] / weight[block] * weights[row, i]
        levels[row] = count
