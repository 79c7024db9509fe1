"""What columns may be centred on: from a pilot's summary provisionally, from the state of all rows finally."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from excir_dask.kernels.reference import REGIONS
from excir_dask.kernels.summaries import ColumnSummary

if TYPE_CHECKING:
    from excir_dask.kernels.settle_loops import Rule

Floats = NDArray[np.float64]


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
    levels: tuple[float, ...] = ()
    """quantiles that the centre rests on: it is their mean; the mean of all values where there are none"""
    needs_totals: bool = False
    """it is the mean of the values between the quartiles, so the pass sums the values per slot and cell"""

    @property
    def summed(self) -> bool:
        """It is a mean of values, not one of them."""
        return self.needs_totals or not self.levels

    @property
    def rule(self) -> Rule:
        """The same for compiled loops."""
        from excir_dask.kernels.settle_loops import Rule

        return Rule(np.array(self.levels, dtype=np.float64), self.needs_totals)

    def __post_init__(self) -> None:
        brackets = len({0.25, 0.75, *self.levels}) + 1  # one around the centre
        if brackets > REGIONS:
            raise ValueError(f"a centring on {self.levels} needs {brackets} brackets, and there are {REGIONS}")


CENTERINGS: dict[str, Centering] = {
    "midhinge": Centering(lambda summary, q25, q50, q75: q25 + (q75 - q25) / 2, levels=(0.25, 0.75)),
    "median": Centering(lambda summary, q25, q50, q75: q50, levels=(0.5,)),
    "mean": Centering(lambda summary, q25, q50, q75: summary.total / summary.weight),
    "trimmed": Centering(_inner_mean, levels=(0.25, 0.75), needs_totals=True),
}
