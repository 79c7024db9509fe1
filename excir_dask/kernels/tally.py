"""What the loops of the pass are given, and what they add to."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

BLOCK = 8192
"""rows that stay in the second-level cache while every output is gone through; fewer cost more in calls"""


class Grid(NamedTuple):
    """What the values of a column are compared with; see :class:`excir_dask.kernels.reference.Reference`."""

    center: float
    origin: float
    scale: float
    slots: NDArray[np.uint8]
    coarse: NDArray[np.uint8]
    edges: Floats
    steps: Floats
    first_edge: NDArray[np.uint16]
    flip_edges: Floats


class Side(NamedTuple):
    """What a column is paired with, over the same rows."""

    weights: Floats
    """empty for ones"""
    units: NDArray[np.int64]
    """where units of rows begin, and the last one ends"""
    moves: Floats
    """(outputs, rows) of w (y - b)"""
    coarse: NDArray[np.uint8]
    """(outputs, rows) coarse cells of the outputs; (0, 0) if nobody asked"""
    near_ends: NDArray[np.int64]
    """(outputs,) where the rows around each output's centre end among the next two"""
    near_rows: NDArray[np.uint32]
    """ascending for each output"""
    near_cells: NDArray[np.uint8]


class Tally(NamedTuple):
    """What is found of a column: arrays that are added to."""

    limits: Floats
    """smallest and largest value, and the sums of w d, w |d|, w d^2 and w sign d, with d = x - a"""
    slots: Floats
    coarse: Floats
    coarse_first: NDArray[np.uint16]
    """first and last bucket with values of each coarse cell"""
    coarse_last: NDArray[np.uint16]
    cells: Floats
    cell_low: Floats
    cell_high: Floats
    slot_total: Floats
    """empty if nobody asked, and so is the next"""
    cell_total: Floats
    sums: Floats
    """(outputs, 7) of p, |p|, p^2, p|p|, w s, w s d and s m"""
    units: Floats
    """(outputs, 3) of N_u N_u, N_u D_u and D_u D_u"""
    flips: Floats
    """(outputs, flips, 4) of w s, w s d, s m and |p| per cell around the column's centre"""
    output_flips: Floats
    """the same per cell around the output's centre"""
    joint: Floats
    """(outputs, coarse, coarse) weights; (0, 0, 0) if nobody asked"""


class Scratch(NamedTuple):
    """Memory that all columns of a block of rows use one after the other."""

    counts: NDArray[np.uint32]
    """(buckets,)"""
    masses: Floats
    """(buckets,)"""
    totals: Floats
    """(buckets,)"""
    joint: NDArray[np.uint32]
    """(outputs, coarse * coarse)"""
    listed: NDArray[np.uint32]
    """(BLOCK + 1,)"""
    codes: NDArray[np.uint8]
    """(BLOCK,)"""
    near_rows: NDArray[np.uint32]
    """(rows + 1,) rows around the column's centre"""
    near_cells: NDArray[np.uint8]
    """(rows + 1,) and their cells"""
    cursor: NDArray[np.int64]
    """(outputs,) where the rows around each output's centre go on"""


def scratch(rows: int, outputs: int, buckets: int, coarse: int) -> Scratch:
    return Scratch(
        np.empty(buckets, np.uint32), np.empty(buckets), np.empty(buckets),
        np.empty((outputs, coarse * coarse), np.uint32), np.empty(BLOCK + 1, np.uint32), np.empty(BLOCK, np.uint8),
        np.empty(rows + 1, np.uint32), np.empty(rows + 1, np.uint8), np.empty(outputs, np.int64),
    )  # fmt: skip
