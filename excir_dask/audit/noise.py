"""How far noise alone changes the order of features: simulated from scores and their errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from excir_dask.kernels import agreement as measures
from excir_dask.kernels.scores import RANKINGS, strength

Floats = NDArray[np.float64]

DRAWS = 400
"""simulated pairs of runs"""

CLEAR = 3.0
"""standard errors from chance below which a feature counts as noise, and its rank means nothing"""

_NORMAL = 200.0
"""degrees of freedom above which the normal distribution stands for Student's t; it is five times as fast to draw"""


@dataclass(frozen=True)
class Order:
    """How the scores of two runs become orders."""

    rank_by: str
    """one of ``RANKINGS``"""
    null_was: Floats
    """what chance gives, in each run"""
    null_now: Floats

    def values(self, was: Floats, now: Floats) -> tuple[Floats, Floats]:
        """What ranks follow."""
        value = RANKINGS[self.rank_by].value
        return value(was, self.null_was), value(now, self.null_now)

    def gains(self, was: Floats, now: Floats) -> tuple[Floats, Floats]:
        """What a place in the top is worth, whatever the direction."""
        if RANKINGS[self.rank_by].of != "cir":
            return self.values(was, now)
        return strength(was, self.null_was), strength(now, self.null_now)


Measure = Callable[[Floats, Floats, int, Order], float]
"""agreement of the orders of two runs' scores, feature by feature: was, now, size of the top, what ranks follow"""


def ndcg(was: Floats, now: Floats, k: int, order: Order) -> float:
    """nDCG of the top, with strength (or dependence) as the gain."""
    one, other = order.gains(was, now)
    return measures.ndcg(one, _places(other), k)


def jaccard(was: Floats, now: Floats, k: int, order: Order) -> float:
    """Jaccard index of the two tops."""
    one, other = map(_places, order.values(was, now))
    return measures.jaccard(one, other, k)


def kendall(was: Floats, now: Floats, k: int, order: Order) -> float:
    """Kendall's tau-b over all features."""
    return measures.kendall(*order.values(was, now))


def noise_floor(
    was: Floats,
    now: Floats,
    error_was: Floats,
    error_now: Floats,
    degrees_was: Floats,
    degrees_now: Floats,
    level: float,
    value: Callable[[Floats, Floats], float],
    *,
    null: Floats | float = 0.5,
) -> float:
    """The agreement that two runs of the same true scores exceed, except for a share ``level`` of such pairs.

    Errors are drawn from Student's t with their degrees of freedom. Levels rarer than one of the simulated pairs are
    extrapolated as in a normal distribution.

    The true scores are taken to be the means of both runs, weighted by their errors, or ``null``, which chance gives,
    if not clear of it.
    """
    from scipy.special import ndtri

    a, b = np.maximum(error_was, 1e-12) ** -2, np.maximum(error_now, 1e-12) ** -2
    truth = (a * was + b * now) / (a + b)
    truth = np.where(np.abs(truth - null) < CLEAR / np.sqrt(a + b), null, truth)
    rng = np.random.default_rng(0)
    found = []
    for _ in range(DRAWS):
        one = np.clip(truth + error_was * _drawn(rng, degrees_was), 0.0, 1.0)
        other = np.clip(truth + error_now * _drawn(rng, degrees_now), 0.0, 1.0)
        found.append(value(one, other))
    if level * DRAWS >= 1.0:
        return float(np.quantile(found, level, method="lower"))
    middle = float(np.median(found))
    return middle - (middle - min(found)) * float(ndtri(level) / ndtri(1.0 / DRAWS))


def _drawn(rng: np.random.Generator, degrees: Floats) -> Floats:
    if degrees.min() > _NORMAL:
        return rng.standard_normal(degrees.size)
    return rng.standard_t(degrees)


def _places(primary: Floats) -> NDArray[np.int64]:
    """Ranks from 1, the highest first; ties keep their order."""
    order = np.argsort(-np.round(primary, measures.DIGITS), kind="stable")
    found = np.empty(primary.size, dtype=np.int64)
    found[order] = np.arange(1, primary.size + 1)
    return found
