"""Uncertainty of a sample's scores: intervals for the scores of all rows, and how stable the top k is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from excir_dask.kernels.scores import RANKINGS, Ranking

Floats = NDArray[np.float64]

DRAWS = 4000
"""simulated rankings: a probability of 0.9 is then known to half a percent"""


@dataclass(frozen=True)
class Stability:
    """How well the top k of a sample represents that of all rows, by simulation."""

    k: int
    jaccard: float
    """expected Jaccard of the two"""
    probability: float
    """that the Jaccard meets the target"""
    inside: Floats
    """(features,) probability of belonging to the top k of all rows"""


def intervals(cir: Floats, stderr: Floats, n_eff: Floats, level: float = 0.95) -> tuple[Floats, Floats]:
    """Lower and upper limits of scores.

    They are symmetric on the scale of log(cir / (1 - cir)), so that they stay between 0 and 1, and use Student's t
    with the effective rows, because a score that few rows carry has an error that is itself uncertain.

    >>> low, high = intervals(np.array([0.9]), np.array([0.02]), np.array([500.0]))
    >>> round(float(low[0]), 3), round(float(high[0]), 3)
    (0.853, 0.933)
    """
    from scipy.special import expit, logit, stdtrit

    sure = (stderr == 0) | (cir <= 0) | (cir >= 1)
    inner = np.where(sure, 0.5, cir)
    reach = stdtrit(np.maximum(n_eff - 1.0, 1.0), (1.0 + level) / 2.0) * stderr / (inner * (1.0 - inner))
    low, high = expit(logit(inner) - reach), expit(logit(inner) + reach)
    # no row disagreed: as many may as the sample misses with probability 1 - level
    unseen = np.where(stderr > 0, np.minimum(-np.log(1.0 - level) / np.maximum(n_eff, 1.0), 1.0), 0.0)
    wide = np.maximum(unseen, np.where(stderr >= _ANYTHING, 1.0, 0.0))
    low, high = np.where(sure, cir - wide, low), np.where(sure, cir + wide, high)
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


def stability(
    scores: Floats,
    stderr: Floats,
    n_eff: Floats,
    ranks: NDArray[np.int64],
    k: int,
    target: float,
    rank_by: str = "strength",
    *,
    null: Floats | None = None,
    reach: Floats | None = None,
    draws: int = DRAWS,
    seed: int = 0,
) -> Stability:
    """Simulate the scores of all rows from those of a sample and their errors, and compare the top k.

    Errors of different features are drawn independently of each other, from Student's t with their effective numbers.

    Parameters
    ----------
    scores, stderr, n_eff : arrays of shape (features,)
        What ranks are made of (cir or dependence), its standard errors as estimates of what all rows would give, and
        the effective numbers behind them.
    ranks : array of shape (features,)
        Ranks in the sample, from 1.
    k : int
        At most half of the features count: the first 8 of 8 always agree.
    target : float
        Jaccard that is wanted.
    rank_by : str
        One of ``RANKINGS``.
    null : array of shape (features,), optional
        Scores that chance gives; 0.5 by default.
    reach : array of shape (features,), optional
        Distance from there within which chance would explain the score of all rows; 0 by default.
    draws : int
        Rankings to simulate.
    seed : int
        Of the simulation, so that it can be repeated.
    """
    from excir_dask.kernels.agreement import top_size

    k, ranking = top_size(k, scores.size), RANKINGS[rank_by]
    null = np.full(scores.size, 0.5) if null is None else null
    reach = np.zeros(scores.size) if reach is None else reach
    mine = ranks <= k
    if not stderr.any():
        return Stability(k, 1.0, 1.0, mine.astype(np.float64))
    rng = np.random.default_rng(seed)
    freedom = np.clip(n_eff - 1.0, 1.0, 1e6)
    order = np.argsort(ranks, kind="stable")  # equal scores stay in the order of the sample
    order = order[_candidates(scores, stderr, freedom, k, ranking, null, reach)[order]]
    normal = bool(freedom[order].min() > _NORMAL)
    counts, hits, total = np.zeros(scores.size), 0, 0.0
    chunk = max(min(_VALUES // order.size, draws), 1)
    for first in range(0, draws, chunk):
        shape = (min(chunk, draws - first), order.size)
        noise = rng.standard_normal(shape) if normal else rng.standard_t(freedom[order], shape)
        drawn = np.clip(scores[order] + stderr[order] * noise, 0.0, 1.0)
        by_chance = np.abs(drawn - null[order]) < reach[order]
        top = _top_indices(ranking.order(ranking.value(drawn, null[order]), by_chance), k)
        overlap = mine[order][top].sum(axis=1)
        jaccard = overlap / (2 * k - overlap)
        counts[order] += np.bincount(top.ravel(), minlength=order.size)
        hits += int((jaccard >= target - 1e-12).sum())
        total += float(jaccard.sum())
    return Stability(k, total / draws, hits / draws, counts / draws)


def _candidates(
    scores: Floats, stderr: Floats, freedom: Floats, k: int, ranking: Ranking, null: Floats, reach: Floats
) -> NDArray[np.bool_]:
    """Features that are in the top k in more than one of a hundred million simulations."""
    from scipy.special import stdtrit

    far = stdtrit(freedom, 1.0 - _NEVER) * stderr
    ends = np.clip(scores - far, 0.0, 1.0), np.clip(scores + far, 0.0, 1.0)
    low, high = ranking.limits(*ends, null)
    within = [np.abs(end - null) < reach for end in ends]
    low = ranking.order(low, (ends[0] < null + reach) & (ends[1] > null - reach))
    high = ranking.order(high, within[0] & within[1])
    return np.asarray(high >= np.partition(low, low.size - k)[low.size - k])


def _top_indices(drawn: Floats, k: int) -> NDArray[np.int64]:
    """(rankings, k) indices of the k largest values of each row; the first of equal ones."""
    if drawn.shape[1] == k:
        return np.broadcast_to(np.arange(k), drawn.shape)
    edge = -np.partition(-drawn, k - 1, axis=1)[:, k - 1 : k]
    above = drawn > edge
    # of those at the edge, as many as there is room for
    level = drawn == edge
    room = k - above.sum(axis=1, keepdims=True)
    taken = above | (level & (np.cumsum(level, axis=1) <= room))
    return np.nonzero(taken)[1].reshape(-1, k)


def smaller_errors(stderr: Floats, share: float, wanted: float) -> Floats:
    """Standard errors, as estimates of what all rows would give, that a larger share of the rows would have.

    >>> smaller_errors(np.array([0.1]), 0.2, 1.0)
    array([0.])
    """
    if wanted >= 1.0:
        return np.zeros_like(stderr)
    foreseen: Floats = stderr * np.sqrt((1.0 - wanted) / wanted * share / (1.0 - share))
    return foreseen


_VALUES = 2**20
"""values simulated at a time"""

_NORMAL = 200.0
"""degrees of freedom above which the normal distribution stands in for Student's t: it is drawn five times as fast"""

_NEVER = 1e-8
"""probability that is ignored"""

_ANYTHING = 0.5
"""the standard error of a score of which nothing is known"""
