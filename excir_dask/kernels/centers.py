"""What columns may be centred on: from a pilot's summary provisionally, from the state of all rows finally."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from excir_dask.kernels.reference import REGIONS
from excir_dask.kernels.runs import Elements, Enclosed, Quantile, quantile
from excir_dask.kernels.summaries import ColumnSummary

Floats = NDArray[np.float64]
Known = Quantile | None


def _mean(runs: Elements, q25: Known, q75: Known, provisional: float, mean: float) -> Enclosed:
    return Enclosed(mean, mean, mean)


def _median(runs: Elements, q25: Known, q75: Known, provisional: float, mean: float) -> Enclosed | None:
    return quantile(runs, 0.5)


def _midhinge(runs: Elements, q25: Known, q75: Known, provisional: float, mean: float) -> Enclosed | None:
    if q25 is None or q75 is None:
        return None
    return Enclosed(
        q25.value + (q75.value - q25.value) / 2, q25.low + (q75.low - q25.low) / 2, q25.high + (q75.high - q25.high) / 2
    )


def _trimmed(runs: Elements, q25: Known, q75: Known, provisional: float, mean: float) -> Enclosed | None:
    """Mean of the values between the quartiles, both included; the midhinge where there are none."""
    if q25 is None or q75 is None:
        return None
    # between brackets limits are unknown, but all of such a run is on one side of each quartile
    below, above = np.flatnonzero(runs.high < q25.value), np.flatnonzero(runs.low > q75.value)
    first = int(below[-1]) + 1 if below.size else 0
    last = int(above[0]) if above.size else runs.ends.size
    inside = np.zeros(runs.ends.size)
    inside[first:last] = 1.0
    for i in range(first, last):
        low, high = runs.low[i], runs.high[i]
        if low < q25.value <= high:
            inside[i] = (high - q25.value) / (high - low)
        elif low <= q75.value < high:
            inside[i] = (q75.value - low) / (high - low)
    while first < last and np.isnan(runs.low[first]):  # lies below the bracket of the first quartile
        inside[first] = 0.0
        first += 1
    while first < last and np.isnan(runs.low[last - 1]):  # lies above the bracket of the third one
        inside[last - 1] = 0.0
        last -= 1
    weight = float((inside * runs.weights).sum())
    middle = q25.value + (q75.value - q25.value) / 2
    if weight == 0.0:
        return Enclosed(middle, q25.low, q75.high)
    center = provisional + float((inside * runs.totals).sum()) / weight
    unsure = (inside > 0) & (inside < 1) | (runs.low < q25.high) & (runs.high >= q25.low)
    unsure |= (runs.low <= q75.high) & (runs.high > q75.low)
    moved = float(runs.weights[unsure].sum())
    if moved >= weight:
        return Enclosed(center, q25.low, q75.high)
    reach = moved / (weight - moved) * max(center - q25.low, q75.high - center)
    return Enclosed(center, max(center - reach, q25.low), min(center + reach, q75.high))


def _inner_mean(summary: ColumnSummary, q25: float, q50: float, q75: float) -> float:
    """About the mean of the values between the quartiles."""
    inside = (summary.points >= q25) & (summary.points <= q75)
    weight = summary.weights[inside].sum()
    if weight == 0:
        return q25 + (q75 - q25) / 2
    return float(q25 + np.dot(summary.weights[inside], summary.points[inside] - q25) / weight)


@dataclass(frozen=True)
class Centering:
    """A way to centre columns. A new one is a new entry of ``CENTERINGS``."""

    provisional: Callable[[ColumnSummary, float, float, float], float]
    """(summary, q25, q50, q75) -> centre"""
    final: Callable[[Elements, Known, Known, float, float], Enclosed | None]
    """(runs, q25, q75, provisional centre, mean) -> centre; None where a quantile is not known"""
    levels: tuple[float, ...] = ()
    """quantiles that the centre rests on"""
    needs_totals: bool = False
    """the pass sums the values per slot and cell"""

    @property
    def summed(self) -> bool:
        """It is a mean of values, not one of them."""
        return self.needs_totals or not self.levels

    def __post_init__(self) -> None:
        brackets = len({0.25, 0.75, *self.levels}) + 1  # one around the centre
        if brackets > REGIONS:
            raise ValueError(f"a centring on {self.levels} needs {brackets} brackets, and there are {REGIONS}")


CENTERINGS: dict[str, Centering] = {
    "midhinge": Centering(lambda summary, q25, q50, q75: q25 + (q75 - q25) / 2, _midhinge, levels=(0.25, 0.75)),
    "median": Centering(lambda summary, q25, q50, q75: q50, _median, levels=(0.5,)),
    "mean": Centering(lambda summary, q25, q50, q75: summary.total / summary.weight, _mean),
    "trimmed": Centering(_inner_mean, _trimmed, levels=(0.25, 0.75), needs_totals=True),
}
