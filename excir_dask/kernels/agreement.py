"""How far two score vectors of the same features agree. Every measure is defined for one feature and for constants too.

``a`` and ``b`` are scores in [0, 1], feature by feature, without NaN; ranks count from 1 without gaps. Values closer
than 1e-12 tie, as they do in rankings. Every measure of a vector with itself is exactly the perfect value.
"""

from __future__ import annotations

from math import comb

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ranks = NDArray[np.int64]

DIGITS = 12
"""decimals of a score that count"""

LEAST_BANDWIDTH = 0.01
"""of a density of scores, for scores that are (nearly) equal"""

GRID = np.linspace(-0.5, 1.5, 801)
"""where densities are compared: [0, 1] and half of it on either side, four points to the least bandwidth"""

FLOOR = 1e-9
"""share of a density that is spread evenly over the grid, so that the divergence of far densities stays finite"""

_BLOCK = 1024
"""scores whose kernels are in memory at a time: 6 MB"""

_ALL_PAIRS = 200
"""features up to which Kendall's tau looks at every pair: 20 take a tenth of the time that scipy needs"""


def dense_ranks(rank: Ranks) -> Ranks:
    """Ranks from 1 without gaps, of some of the features that were ranked together.

    >>> dense_ranks(np.array([7, 2, 4]))
    array([3, 1, 2])
    """
    found = np.empty(rank.size, dtype=np.int64)
    found[np.argsort(rank, kind="stable")] = np.arange(1, rank.size + 1)
    return found


def top_size(k: int, d: int) -> int:
    """The ``k`` that is used for ``d`` features: the upper half where the top k would be all of them.

    >>> top_size(8, 40), top_size(8, 8), top_size(8, 1)
    (8, 4, 1)
    """
    return k if d > k else max(d // 2, 1)


def jaccard(ranks_a: Ranks, ranks_b: Ranks, k: int) -> float:
    """Overlap of two top k: features in both over features in either.

    >>> jaccard(np.array([1, 2, 3]), np.array([1, 3, 2]), 2)
    0.3333333333333333
    """
    a, b = ranks_a <= k, ranks_b <= k
    return float(np.sum(a & b) / np.sum(a | b))


def jaccard_chance(d: int, k: int) -> float:
    """Mean overlap of two random sets of ``k`` out of ``d`` features, ``k <= d``.

    >>> round(jaccard_chance(40, 8), 3)
    0.117
    """
    least, all_ways, mean = max(2 * k - d, 0), comb(d, k), 0.0
    ways = comb(k, least) * comb(d - k, k - least)
    for shared in range(least, k + 1):
        mean += (ways / all_ways) * shared / (2 * k - shared)
        # from one number of ways to the next, because binomials of thousands take a millisecond each
        ways = ways * (k - shared) ** 2 // ((shared + 1) * (d - 2 * k + shared + 1))
    return mean


def spearman(a: Floats, b: Floats) -> float:
    """Rank correlation with mean ranks for ties. Both constant: 1. One of them: 0, what ties broken at random give.

    >>> spearman(np.array([0.1, 0.2, 0.3]), np.array([0.5, 0.9, 0.7]))
    0.5
    """
    if _constant(a) or _constant(b):
        return float(_constant(a) and _constant(b))
    # doubled and centred ranks are whole numbers, whose products are exact: a vector and itself give exactly 1
    x, y = 2.0 * _mean_ranks(a) - (a.size + 1), 2.0 * _mean_ranks(b) - (b.size + 1)
    return _dot(x, y) / float(np.sqrt(_dot(x, x) * _dot(y, y)))


def kendall(a: Floats, b: Floats) -> float:
    """Kendall's tau-b. Both constant: 1. One of them: 0, what ties broken at random give.

    >>> round(kendall(np.array([0.1, 0.2, 0.3]), np.array([0.5, 0.9, 0.7])), 12)
    0.333333333333
    """
    if a.size > _ALL_PAIRS:
        return _kendall_of_many(a, b)
    one, other = (np.sign(np.subtract.outer(v, v)) for v in (np.round(a, DIGITS), np.round(b, DIGITS)))
    differ = np.count_nonzero(one), np.count_nonzero(other)  # each pair counts twice, here and in the sum
    if not all(differ):
        return float(differ[0] == differ[1])
    if np.array_equal(one, other):  # tau-b divides by two roots, after which 1 may be one bit off
        return 1.0
    return float(np.clip(0.5 * _dot(one, other) / np.sqrt(0.5 * differ[0]) / np.sqrt(0.5 * differ[1]), -1.0, 1.0))


def _kendall_of_many(a: Floats, b: Floats) -> float:
    from scipy.stats import kendalltau

    if _constant(a) or _constant(b):
        return float(_constant(a) and _constant(b))
    x, y = _mean_ranks(a), _mean_ranks(b)
    return 1.0 if np.array_equal(x, y) else float(kendalltau(x, y).statistic)


def procrustes(a: Floats, b: Floats) -> float:
    """Orthogonal Procrustes residual: half the squared distance of the two shapes, 0 (same shape) to 1.

    Both vectors are centred and scaled to length 1, and ``a`` is turned onto ``b`` by the best orthogonal matrix. In
    one dimension that is 1 or -1, so the residual is 1 - abs(correlation): a vector that is mirrored at 0.5 has the
    same shape. Both constant: 0. One of them: 1.

    >>> procrustes(np.array([0.1, 0.2, 0.3]), np.array([0.5, 0.7, 0.9])) < 1e-15
    True
    """
    if _constant(a) or _constant(b):
        return float(_constant(a) != _constant(b))
    x, y = _shape(a), _shape(b)
    turn = 1.0 if _dot(x, y) >= 0 else -1.0
    return float(min(0.5 * np.sum((turn * x - y) ** 2), 1.0))


def affine(a: Floats, b: Floats) -> float:
    """Affine residual: root mean square of ``b - (alpha a + beta)`` at its least, over the standard deviation of ``b``.

    0: a shift and a scale (which may be negative) turn one into the other; 1: they explain nothing. It is
    sqrt(1 - correlation^2), hence the same from ``b`` to ``a``. Both constant: 0. One of them: 1.

    >>> round(affine(np.array([0.0, 0.5, 1.0]), np.array([0.0, 1.0, 0.5])), 3)
    0.866
    """
    if _constant(a) or _constant(b):
        return float(_constant(a) != _constant(b))
    x, y = _shape(a), _shape(b)
    return float(min(np.sqrt(np.sum((y - (_dot(x, y) / _dot(x, x)) * x) ** 2)), 1.0))


def symmetric_kl(a: Floats, b: Floats) -> float:
    """Jeffreys divergence KL(p, q) + KL(q, p) of the two densities of scores, in nats: 0 (same) to about 49.

    Densities are sums of Gaussian kernels with Scott's bandwidth, at least ``LEAST_BANDWIDTH`` (constants and single
    scores have that one), on ``GRID``, as shares that sum to 1. Which feature has which score does not matter.

    >>> symmetric_kl(np.array([0.5]), np.array([0.5]))
    0.0
    """
    p, q = _density(a), _density(b)
    return float(np.sum((p - q) * np.log(p / q)))


def ndcg(gains: Floats, order: Ranks, k: int | None = None) -> float:
    """Gain that an order collects in its top k (or in all ranks) over what the best order collects; 1 without gains.

    Parameters
    ----------
    gains : float64 array
        What ``a`` ranks by, for instance strengths.
    order : int64 array
        Ranks in ``b``.
    k : int, optional
        Ranks that count. Default: all.

    Examples
    --------
    >>> ndcg(np.array([1.0, 0.0]), np.array([1, 2])), round(ndcg(np.array([1.0, 0.0]), np.array([2, 1])), 3)
    (1.0, 0.631)
    """
    gains = np.round(gains, DIGITS)
    size = gains.size if k is None else min(k, gains.size)
    discount = 1.0 / np.log2(np.arange(2, size + 2))
    best = _dot(np.sort(gains)[::-1][:size], discount)
    if best == 0.0:
        return 1.0
    return _dot(gains[np.argsort(order)][:size], discount) / best


def largest(a: Floats, b: Floats, order: Ranks) -> tuple[float, int | None]:
    """The largest abs(b - a) and where it is, the first by ``order`` among equals; nowhere if nothing differs.

    >>> largest(np.array([0.1, 0.2]), np.array([0.1, 0.5]), np.array([1, 2]))
    (0.3, 1)
    """
    shift = np.round(np.abs(b - a).astype(np.float64), DIGITS)
    where = int(np.lexsort((order, -shift))[0])
    return float(shift[where]), where if shift[where] > 0 else None


def _constant(a: Floats) -> bool:
    return bool(np.ptp(np.round(a, DIGITS)) == 0)


def _dot(a: Floats, b: Floats) -> float:
    """Sum of products without BLAS, whose last digits depend on strides and threads."""
    return float(np.sum(a * b))


def _mean_ranks(a: Floats) -> Floats:
    _, place, counts = np.unique(np.round(a, DIGITS), return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(counts) - 0.5 * (counts - 1))[place]
    return ranks


def _shape(a: Floats) -> Floats:
    """Centred, of length 1."""
    centred = a - a.mean()
    scaled: Floats = centred / np.sqrt(_dot(centred, centred))
    return scaled


def _density(a: Floats) -> Floats:
    spread = a.std(ddof=1) if a.size > 1 else 0.0
    width = max(float(spread) * a.size**-0.2, LEAST_BANDWIDTH)
    total = np.zeros(GRID.size)
    for start in range(0, a.size, _BLOCK):
        distance = (GRID[None, :] - a[start : start + _BLOCK, None]) / width
        total += np.exp(-0.5 * distance**2).sum(axis=0)
    density: Floats = (1.0 - FLOOR) * total / total.sum() + FLOOR / GRID.size
    return density
