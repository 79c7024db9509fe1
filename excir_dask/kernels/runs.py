"""A column as runs of values in order, and its quantiles as far as the runs tell."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_SLACK = 1e-9
"""rounding of ranks of fractional weights, relative to the last: millions of weights are added up one by one"""


@dataclass(frozen=True)
class Enclosed:
    """A figure as far as a state knows it."""

    value: float
    low: float
    """the exact one is not smaller"""
    high: float
    """the exact one is not larger"""

    @property
    def error(self) -> float:
        return max(self.value - self.low, self.high - self.value)


@dataclass(frozen=True)
class Quantile(Enclosed):
    """A quantile, and the values behind it."""

    around: tuple[float, float]
    """the values that it is, or lies between, are not outside of these"""


@dataclass(frozen=True)
class Elements:
    """A column as runs of values in order: cells, whose limits are known, and what lies between brackets."""

    ends: Floats
    """rank behind the last value of each"""
    low: Floats
    """smallest value; NaN where it is not known"""
    high: Floats
    weights: Floats
    totals: Floats
    """sums of w (x - a); zeros if nobody asked"""
    whole: bool
    """weights are whole numbers, so that they count as repeated rows"""

    @property
    def starts(self) -> Floats:
        return np.concatenate(([0.0], self.ends[:-1]))


def quantile(runs: Elements, level: float) -> Quantile | None:
    """A linear quantile; None where it lies outside the brackets.

    It is the mean of the values over the ranks [r, r + 1] with r = level (total - 1).
    """
    total = float(runs.ends[-1])
    rank = level * max(total - 1.0, 0.0)
    stop = min(rank + 1.0, total)
    slack = 0.0 if runs.whole else _SLACK * total
    first = min(int(runs.ends.searchsorted(rank - slack, side="right")), runs.ends.size - 1)
    last = min(int(runs.ends.searchsorted(stop + slack, side="left")), runs.ends.size - 1)
    value = weight = low = high = 0.0
    around = [np.inf, -np.inf]
    start = float(runs.ends[first - 1]) if first else 0.0
    for i in range(first, last + 1):  # plain numbers: two or three runs take a fifth of the time that arrays do
        a, b, end = float(runs.low[i]), float(runs.high[i]), float(runs.ends[i])
        if math.isnan(a):
            return None
        left, right = max(rank, start), min(stop, end)
        part, size = max(right - left, 0.0), end - start
        if runs.whole and right - start <= 1.0:
            b = a
        elif runs.whole and end - left <= 1.0:
            a = b
        at, start = (left + right) / 2.0 - 0.5 - start, end
        guess = a + (b - a) * (min(max(at / (size - 1.0), 0.0), 1.0) if size > 1.0 else 0.5)
        value, weight = value + part * guess, weight + part
        low, high = low + part * a, high + part * b
        around = [min(around[0], a), max(around[1], b)]
    if weight == 0.0:
        return None
    if slack:  # as much as the ranks may be off, the mean may be over the neighbours
        around = [float(runs.low[first]), float(runs.high[last])]
        moved = min(slack, 1.0) * (around[1] - around[0])
        low, high = max(low - moved, weight * around[0]), min(high + moved, weight * around[1])
    return Quantile(value / weight, low / weight, high / weight, (around[0], around[1]))


def enclosing(runs: Elements, level: float, low: float, high: float) -> tuple[float, float]:
    """Values between which a linear quantile lies; ``low`` and ``high`` are those of all values."""
    found = quantile(runs, level)
    if found is not None:
        return found.around
    rank = level * max(float(runs.ends[-1]) - 1.0, 0.0)
    slack = 0.0 if runs.whole else 1e-9 * float(runs.ends[-1])
    first = min(int(np.searchsorted(runs.ends, rank - slack, side="right")), runs.ends.size - 1)
    last = min(int(np.searchsorted(runs.ends, rank + 1.0 + slack, side="left")), runs.ends.size - 1)
    # a run without limits lies between its neighbours, which have some
    below = runs.low[first] if np.isfinite(runs.low[first]) else runs.high[first - 1] if first else low
    above = (
        runs.high[last] if np.isfinite(runs.high[last]) else runs.low[last + 1] if last + 1 < runs.low.size else high
    )
    return (float(below) if np.isfinite(below) else low, float(above) if np.isfinite(above) else high)
