"""How an output moves along a column, from counts by coarse cells of both: what people know as a dependence plot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from excir_dask.kernels.reference import BUCKETS, Reference, places
from excir_dask.kernels.state import ColumnState

Floats = NDArray[np.float64]

_ROUNDING = 1e-10
"""relative error of sums over all rows, with room"""

_STEEPEST = 500.0
"""powers of e over a tail: more cannot be told from it"""


@dataclass(frozen=True)
class CoarseCells:
    """The coarse cells of a column in the order of their values; those without rows are left out."""

    place: NDArray[np.int64]
    """which of the coarse cells"""
    weight: Floats
    low: Floats
    """no value of the cell is smaller"""
    high: Floats
    """no value of the cell is larger"""
    value: Floats
    """what all values of the cell are: exactly if low is high, else to a bucket's width; NaN where they differ"""
    width: float
    """of a bucket"""

    @property
    def two(self) -> bool:
        """The column has two values, to a bucket's width."""
        return self.place.size == 2 and bool(np.isfinite(self.value).all())

    @property
    def names(self) -> list[str]:
        """The value of each cell, or its limits; those are round numbers within a bucket's width."""
        named = []
        for low, high, value in zip(self.low.tolist(), self.high.tolist(), self.value.tolist(), strict=True):
            ends = (round_number(low, low + self.width), round_number(high - self.width, high))
            named.append(f"{value:.15g}" if np.isfinite(value) else f"{ends[0]:.15g} to {ends[1]:.15g}")
        return named


def coarse_cells(state: ColumnState, reference: Reference, j: int) -> CoarseCells:
    """Where the values of each coarse cell of a column lie, as far as a state knows.

    The first and the last bucket with values tell it to 1/2046 of the range. Where all of them are in brackets, the
    fine cells tell it exactly; that a column has two values follows from its moments.
    """
    place = np.flatnonzero(state.coarse[j] > 0)
    first, last = state.coarse_first[j, place].astype(np.int64), state.coarse_last[j, place].astype(np.int64)
    origin, scale = float(reference.origin[j]), float(reference.scale[j])
    # a value on the edge of a bucket may be rounded into its neighbour
    slack = 4.0 * np.finfo(float).eps * (abs(origin) + BUCKETS / scale)
    low = np.where(first > 0, origin + first / scale - slack, -np.inf)
    high = np.where(last < BUCKETS - 1, origin + (last + 1) / scale + slack, np.inf)
    low, high = (np.clip(end, state.low[j], state.high[j]) for end in (low, high))
    ends = _fine_ends(state, reference, j)
    for i in range(place.size):
        if (reference.slots[j, first[i] : last[i] + 1] & 1).all():
            inside = (ends.coarse == place[i]).all(axis=1)
            split = ~inside & (ends.coarse[:, 0] <= place[i]) & (ends.coarse[:, 1] >= place[i])
            if inside.any() and not split.any():
                low[i], high[i] = ends.low[inside].min(), ends.high[inside].max()
    if place.size == 2 and _at_ends(state, reference, j):
        low = high = np.array([state.low[j], state.high[j]])
    value = np.full(place.size, np.nan)
    for i in map(int, np.flatnonzero(high - low <= 1.001 / scale + 2.0 * slack)):
        value[i] = round_number(float(low[i]), float(high[i]))
    return CoarseCells(place, state.coarse[j, place], low, high, value, 1.0 / scale)


def _at_ends(state: ColumnState, reference: Reference, j: int) -> bool:
    """Whether every value is the smallest or the largest: the sum of (x - low)(high - x) is zero."""
    low, high = state.low[j] - reference.center[j], state.high[j] - reference.center[j]
    inside = (low + high) * state.total[j] - state.squares[j] - low * high * state.weight[j]
    spread = state.weight[j] * (high - low) ** 2
    return bool(0.0 < spread < np.inf and abs(inside) <= _ROUNDING * spread)


@dataclass(frozen=True)
class _FineEnds:
    """Fine cells of a column that hold values."""

    low: Floats
    high: Floats
    coarse: NDArray[np.int64]
    """(cells, 2) coarse cells of the smallest and the largest value"""


def _fine_ends(state: ColumnState, reference: Reference, j: int) -> _FineEnds:
    held = state.cells[j] > 0
    low, high = state.cell_low[j, held], state.cell_high[j, held]
    buckets = [places(end, float(reference.origin[j]), float(reference.scale[j]), BUCKETS) for end in (low, high)]
    return _FineEnds(low, high, reference.coarse[j][np.stack(buckets, axis=1)].astype(np.int64))


def round_number(low: float, high: float) -> float:
    """The number with the fewest digits from ``low`` to ``high``.

    >>> round_number(4.9976, 5.0024), round_number(-0.001, 0.001), round_number(0.2499, 0.2503), round_number(7.0, 7.0)
    (5.0, 0.0, 0.25, 7.0)
    """
    if low <= 0.0 <= high:
        return 0.0
    if not low < high:
        return low
    large = max(abs(low), abs(high))
    for digits in range(1, 18):
        found = _rounded_up(min(abs(low), abs(high)), digits)
        if found <= large:
            return math.copysign(found, low)
    return low


def _rounded_up(value: float, digits: int) -> float:
    """The smallest number of so many digits that is not smaller."""
    found = float(f"{value:.{digits - 1}e}")
    if found >= value:
        return found
    mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
    step = float(f"1e{int(exponent) - len(mantissa.partition('.')[2])}")
    return float(f"{found + step:.{digits - 1}e}")


def output_quantiles(joint: Floats, outputs: CoarseCells, levels: Sequence[float]) -> Floats:
    """Quantiles of an output in each cell of a column.

    Parameters
    ----------
    joint : array of shape (cells, coarse)
        Weight by cell of the column and coarse cell of the output.
    outputs : CoarseCells
        Of the output. A quantile is interpolated between the ends of the one that it lies in: evenly, but as in an
        exponential tail in the outermost ones.
    levels : list of float

    Returns
    -------
    array of shape (cells, levels)
        NaN for a cell without rows.
    """
    known = np.isfinite(outputs.value)
    low, high = np.where(known, outputs.value, outputs.low), np.where(known, outputs.value, outputs.high)
    decay = _tails(outputs.weight, low, high)
    found = np.full((len(joint), len(levels)), np.nan)
    for i, weights in enumerate(joint[:, outputs.place]):
        held = weights > 0
        if held.any():
            ends = np.cumsum(weights[held])
            wanted = np.asarray(levels) * ends[-1]
            at = np.minimum(np.searchsorted(ends, wanted, side="left"), ends.size - 1)
            part = (wanted - (ends[at] - weights[held][at])) / weights[held][at]
            found[i] = low[held][at] + _inside(part, decay[held][at]) * (high[held] - low[held])[at]
    return found


def _tails(weight: Floats, low: Floats, high: Floats) -> Floats:
    """How fast the rows thin out over the outermost cells, in powers of e; negative for the first, 0 where they do not.

    A tail reaches far, and its rows are near the other ones: it begins as dense as its neighbour is.
    """
    decay = np.zeros(low.size)
    for tail, neighbour, sign in ((0, 1, -1.0), (-1, -2, 1.0)) if low.size > 2 else ():
        width = high[neighbour] - low[neighbour]
        if width > 0:
            fall = weight[neighbour] / width * (high[tail] - low[tail]) / weight[tail]
            decay[tail] = sign * min(fall, _STEEPEST) if fall > 1.0 else 0.0
    return decay


def _inside(part: Floats, decay: Floats) -> Floats:
    """Where in a cell the rows up to a part of its weight end."""
    steep = np.abs(decay)
    start = np.where(decay < 0, 1.0 - part, part)
    with np.errstate(divide="ignore", invalid="ignore"):
        bent = -np.log1p(-start * -np.expm1(-steep)) / steep
    bent = np.where(steep > 0, bent, start)
    return np.where(decay < 0, 1.0 - bent, bent)
