"""What the loops of the pass are given, and what they add to."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

BLOCK = 2048
"""rows that stay in the first-level cache, with an output, while they are gone through; fewer cost more in calls"""

CODES = 64
"""codes of runs of buckets at most: slots and coarse cells ascend, and a code may be skipped to stay odd or even"""


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

    code_of: NDArray[np.uint8]
    """(buckets,) code of each bucket, odd where its rows are looked at more closely"""
    seen: NDArray[np.uint8]
    """(buckets,) 1 where a bucket has values"""
    slot_of: NDArray[np.uint8]
    """(CODES,)"""
    coarse_of: NDArray[np.uint8]
    """(CODES,)"""
    counts: NDArray[np.uint32]
    """(outputs, CODES * coarse cells) rows by code and coarse cell of the output; (1, ...) if nobody asked"""
    masses: Floats
    """their weights"""
    totals: Floats
    """(CODES,)"""
    turns: NDArray[np.uint8]
    """(BLOCK,) in place of coarse cells of an output: neighbouring rows are counted in different places"""
    buckets: NDArray[np.uint16]
    """(BLOCK,) and so are the next two"""
    codes: NDArray[np.uint8]
    places: NDArray[np.uint16]
    listed: NDArray[np.uint16]
    """(BLOCK + 1,)"""
    cells: NDArray[np.uint16]
    """(BLOCK,)"""
    near_rows: NDArray[np.uint32]
    """(rows + 1,) rows around the column's centre"""
    near_cells: NDArray[np.uint8]
    """(rows + 1,) and their cells"""
    cursor: NDArray[np.int64]
    """(outputs,) where the rows around each output's centre go on"""


def scratch(rows: int, outputs: int, buckets: int, coarse: int, joint: bool = True) -> Scratch:
    tables = max(outputs, 1) if joint else 1
    return Scratch(
        np.empty(buckets, np.uint8), np.empty(buckets, np.uint8), np.zeros(CODES, np.uint8), np.zeros(CODES, np.uint8),
        np.empty((tables, CODES * coarse), np.uint32), np.empty((tables, CODES * coarse)), np.empty(CODES),
        (np.arange(BLOCK) % coarse).astype(np.uint8), np.empty(BLOCK, np.uint16), np.empty(BLOCK, np.uint8),
        np.empty(BLOCK, np.uint16), np.empty(BLOCK + 1, np.uint16), np.empty(BLOCK, np.uint16),
        np.empty(rows + 1, np.uint32), np.empty(rows + 1, np.uint8), np.empty(outputs, np.int64),
    )  # fmt: skip
