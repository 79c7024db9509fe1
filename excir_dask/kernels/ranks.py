"""Values at given ranks of a long column, without sorting it.

Sorting would be the largest cost of a run: 7 to 11 ns per value, where decoding takes 5. A sorted sample shows how the
values are distributed; it cuts the range into cells that are about equally full, the values are counted in them in one
pass (2 ns), and the values at the ranks follow from the counts, by interpolation inside a cell. Cells that turn out too
full are gathered and sorted, so that repeated values stay exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from excir_dask.kernels.rank_loops import Cells

Floats = NDArray[np.float64]

_SEGMENTS = 512
"""equal parts of the sample's range; each has cells of its own width"""

_CELLS = 8192
"""cells that values are counted in: the counts stay in the second-level cache"""

_LEAST_CELLS = 4
"""of a segment, also where the sample has no values"""

_WIDE = 256
"""interquartile ranges: a sample that spans more has tails that would take all the segments"""

_FULL_SHARE = 8
"""if more than one in so many values is in a cell that is too full, sorting all of them is faster"""

_CHANCE = 8
"""values that a cell holds occasionally by chance"""


def values_at(x: Floats, ranks: NDArray[np.int64], sample: Floats, low: float, high: float) -> Floats | None:
    """Values at some ranks of ``x``; None where cells cannot tell the values apart.

    Each is off by less than the smallest distance of two ranks; values repeated that often are exact.

    Parameters
    ----------
    x : float64 array of shape (rows,)
        Finite values.
    ranks : int64 array
        Ascending, from 0 to ``rows - 1``.
    sample : float64 array
        Some values of ``x`` in order.
    low, high : float
        The smallest and the largest value of ``x``.
    """
    from excir_dask.kernels.rank_loops import collect, read_off, tally

    cells = _lay_out(sample)
    if cells is None:
        return None
    least = max(int(np.diff(ranks).min()), 1)
    for values in (sample, x):  # the sample alone often shows that cells will not do
        counts = np.zeros(int(cells.base[-1]) + 1, dtype=np.uint32)
        tally(values, cells, counts)
        full = counts > max(least * values.size // x.size, _CHANCE)
        among = int(counts[full].sum())
        if among * _FULL_SHARE > values.size:
            return None
    found, positions = np.empty(ranks.size), np.empty(ranks.size, dtype=np.int64)
    read_off(ranks, counts, full, cells, np.array([low, high]), found, positions)
    inside = positions >= 0
    if inside.any():
        gathered = np.empty(among + 1)
        collect(x, cells, full, gathered)
        found[inside] = np.sort(gathered[:among])[positions[inside]]
    return found


def _lay_out(sample: Floats) -> Cells | None:
    """Cells that a sample fills about equally; None where floats cannot tell them apart."""
    from excir_dask.kernels.rank_loops import Cells

    with np.errstate(all="ignore"):
        spread = sample[(3 * sample.size) // 4] - sample[sample.size // 4]
        skip = sample.size // 100 if sample[-1] - sample[0] > _WIDE * spread else 0
        inside = sample[skip : sample.size - skip]
        first, last = float(inside[0]), float(inside[-1])
        scale = float(np.float64(_SEGMENTS) / (last - first))
        origin = first - 1.0 / scale if scale > 0.0 else np.nan
    if not (0.0 < scale < np.inf and np.isfinite(origin) and origin < first):
        return None
    segment = np.minimum((inside - first) * scale, _SEGMENTS - 1).astype(np.int64)
    share = np.bincount(segment, minlength=_SEGMENTS)
    cells = _LEAST_CELLS + share * (_CELLS - _LEAST_CELLS * _SEGMENTS) // inside.size
    starts = np.cumsum(cells) - cells + 1
    base = np.concatenate(([0.0], starts - np.arange(1, _SEGMENTS + 1) * cells, [starts[-1] + cells[-1]]))
    slope = np.concatenate(([0.0], cells, [0.0]))
    return Cells(origin, scale, base, slope)
