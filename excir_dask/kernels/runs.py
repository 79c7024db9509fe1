"""A column as runs of values in order, and its quantiles as far as the runs tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from excir_dask.kernels.settle_loops import Figure, Runs

Floats = NDArray[np.float64]


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
    def arrays(self) -> Runs:
        """The same for compiled loops."""
        from excir_dask.kernels.settle_loops import Runs

        return Runs(self.ends, self.low, self.high, self.weights, self.totals, self.whole)


def quantile(runs: Elements, level: float) -> Quantile | None:
    """A linear quantile; None where it lies outside the brackets."""
    from excir_dask.kernels.settle_loops import quantile_of

    return known(quantile_of(runs.arrays, level))


def known(figure: Figure) -> Quantile | None:
    """What a loop has found; None where it is not known."""
    _, value, low, high, first, last = figure
    return Quantile(value, low, high, (first, last)) if figure.known else None


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
