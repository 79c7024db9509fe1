"""Scan 1: what is remembered of a column so that its quantiles are known at the end.

While a column has few distinct values the memory is exact: every value with its count (or weight). Beyond
that it is a t-digest (Dunning, "Computing extremely accurate quantiles using t-digests", 2019), kept by crick.
A digest takes 116 ns for each value it is shown, 25 times the cost of decoding it, so it is never shown values: a
sorted slice is cut into bins of equal rank, and the digest sees the middle value of each with the weight of the bin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from crick import TDigest
from numpy.typing import NDArray

Floats = NDArray[np.float64]

EXACT_LIMIT = 2048
"""distinct values up to which a column is remembered exactly (32 kB a column)"""

COMPRESSION = 500
"""of the digest; rank errors stay below 1e-4 (100 gives 4.5e-4; crick clips silently above 1,000)"""

BINS = 1000
"""equal-rank bins that a sorted slice is cut into before the digest sees it"""

_SAMPLE = 4096
"""values that decide how a slice is sorted"""


@dataclass(frozen=True)
class ColumnSummary:
    """What one column looked like over some rows. Missing means null, NaN or infinite."""

    n: int
    """rows with a value"""
    missing: int
    """rows without one"""
    weight: float
    """sum of the weights of the rows with a value; equals n without weights"""
    whole: bool
    """every weight is a whole number, so that weights count as repeated rows"""
    low: float
    """no value is smaller; inf where there are none"""
    high: float
    """no value is larger; -inf where there are none"""
    total: float
    """weighted sum of the values; NaN where nobody asked for it"""
    exact: bool
    """points are the distinct values themselves, not centroids of a digest"""
    points: Floats
    """distinct values, or centroids, ascending"""
    weights: Floats
    """weight of each point"""


def summarise(x: Floats, w: Floats | None = None, with_total: bool = True) -> ColumnSummary:
    """Summary of one column over one block of rows.

    Parameters
    ----------
    x : float64 array of shape (rows,)
        Values; NaN and infinities are missing.
    w : float64 array of shape (rows,), optional
        Positive weights.
    with_total : bool
        Sum the values as well, which only a mean needs.
    """
    weights, offset = None, None
    if w is None:
        ordered, offset, few = _sort(x)
    else:
        order = np.argsort(x, kind="stable")
        inside = _finite(x[order])
        ordered, weights = x[order][inside], w[order][inside]
        few = _few_distinct(ordered)
    n = int(ordered.size)
    missing = int(x.size) - n
    if n == 0:
        return _nothing(missing)
    if weights is None:
        weight, whole = float(n), True
        total = float((x[np.isfinite(x)] if missing else x).sum()) if with_total else np.nan
    else:
        weight, whole = float(weights.sum()), bool(np.all(weights == np.rint(weights)))
        total = float((weights * ordered).sum()) if with_total else np.nan
    low, high = _outer_limits(ordered, offset)
    if few:
        starts = np.concatenate(([0], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1))
        masses = np.add.reduceat(np.ones(n) if weights is None else weights, starts)
        return ColumnSummary(n, missing, weight, whole, low, high, total, True, ordered[starts].astype(float), masses)
    points, masses = _equal_rank_bins(ordered, weights)
    digest = TDigest(COMPRESSION)
    digest.update(points + (offset or 0.0), masses)
    return ColumnSummary(n, missing, weight, whole, low, high, total, False, *_centroids(digest))


def merge_column(parts: Sequence[ColumnSummary]) -> ColumnSummary:
    """One summary for the rows of all parts. The order of the parts matters in the fourth digit of a digest's ranks."""
    if len(parts) == 1:
        return parts[0]
    exact = all(part.exact for part in parts)
    if exact:
        points, where = np.unique(np.concatenate([part.points for part in parts]), return_inverse=True)
        masses = np.concatenate([part.weights for part in parts])
        weights: Floats = np.bincount(where, masses, minlength=points.size).astype(np.float64)
        if points.size > EXACT_LIMIT:
            exact = False
            digest = TDigest(COMPRESSION)
            digest.update(points, weights)
            points, weights = _centroids(digest)
    else:
        digest = TDigest(COMPRESSION)
        for part in parts:
            if part.points.size:
                digest.update(part.points, part.weights)
        points, weights = _centroids(digest)
    return ColumnSummary(
        n=sum(part.n for part in parts),
        missing=sum(part.missing for part in parts),
        weight=sum(part.weight for part in parts),
        whole=all(part.whole for part in parts),
        low=min(part.low for part in parts),
        high=max(part.high for part in parts),
        total=sum(part.total for part in parts),
        exact=exact,
        points=points,
        weights=weights,
    )


def quantiles(summary: ColumnSummary, levels: Sequence[float]) -> Floats:
    """Values at some levels between 0 and 1; exact and linearly interpolated where the summary is exact.

    The linear quantile of n sorted values is the mean of their step function over the unit window that starts at
    rank q (n - 1). Written like that it also holds for weights: whole weights are repeated rows, other weights are
    first scaled to a mean of 1.
    """
    if summary.n == 0:
        return np.full(len(levels), np.nan)
    if not summary.exact:
        # between the middles of neighbouring centroids, as crick does it, but for all levels at once
        ends = np.cumsum(summary.weights)
        found = np.interp(np.array(levels) * ends[-1], ends - summary.weights / 2, summary.points)
        return np.clip(found, summary.low, summary.high)
    ends = np.cumsum(summary.weights) * rank_scale(summary.n, summary.weight, summary.whole)
    ranks = [level * max(ends[-1] - 1.0, 0.0) for level in levels]
    return np.array([window_mean(summary.points, ends, 0.0, rank) for rank in ranks])


def window_mean(points: Floats, ends: Floats, start: float, rank: float) -> float:
    """Mean of a step function over [rank, rank + 1]: it is ``points[i]`` up to ``ends[i]`` and begins at ``start``."""
    starts = np.concatenate(([start], ends[:-1]))
    first = min(int(np.searchsorted(ends, rank, side="right")), ends.size - 1)
    last = min(int(np.searchsorted(starts, rank + 1.0, side="left")), ends.size)
    share = np.minimum(ends[first:last], rank + 1.0) - np.maximum(starts[first:last], rank)
    anchor = points[first]
    return float(anchor + np.dot(share, points[first:last] - anchor) / share.sum())


def trimmed_mean(summary: ColumnSummary, low: float, high: float) -> float:
    """Weighted mean of an exact summary's values inside [low, high]; NaN where there are none."""
    inside = (summary.points >= low) & (summary.points <= high)
    weight = summary.weights[inside].sum()
    if weight == 0:
        return float("nan")
    anchor = summary.points[inside][0]
    return float(anchor + np.dot(summary.weights[inside], summary.points[inside] - anchor) / weight)


def rank_scale(n: int, weight: float, whole: bool) -> float:
    """Factor that turns weights into ranks: 1 for whole weights (repeated rows), else to a mean weight of 1.

    Whole weights beyond 2**50 in all are scaled too: ranks one apart could not be told from each other.
    """
    return 1.0 if (whole and weight < 2.0**50) or weight == 0 else n / weight


def _nothing(missing: int) -> ColumnSummary:
    empty = np.empty(0)
    return ColumnSummary(0, missing, 0.0, True, np.inf, -np.inf, 0.0, True, empty, empty)


def _sort(x: Floats) -> tuple[NDArray[np.floating], float | None, bool]:
    """Finite values in order; the offset they are distances from (None: nothing was rounded); whether few are distinct.

    Sorting is the largest cost of a run: 11 ns a value in float64, 6 in float32.
    """
    narrow, offset = _narrow(x)
    if narrow is not None:
        narrow.sort()
        inside = _finite(narrow)
        overflow = inside.start > 0 or (inside.stop < x.size and narrow[inside.stop] == np.inf)
        narrow = narrow[inside]
        few = _few_distinct(narrow)
        if offset is None or (narrow.size and not overflow and not few):
            return narrow, offset, few
    ordered = np.sort(x)
    ordered = ordered[_finite(ordered)]
    return ordered, None, _few_distinct(ordered)


def _narrow(x: Floats) -> tuple[NDArray[np.float32] | None, float | None]:
    """The values in float32 where sorting may work on that, and the offset they are distances from.

    Values that float32 holds exactly, such as small whole numbers, stay as they are. Where a sample says that hardly
    any value repeats, they become distances from its median: near the quartiles that rounds by a ten-millionth of the
    interquartile range, a thousandth of what a digest can tell apart. Other values that repeat must stay what they
    are, because a quartile may lie on one of them.
    """
    sample = np.sort(x[:: max(x.size // _SAMPLE, 1)])
    sample = sample[_finite(sample)]
    if x.size <= 2 * _SAMPLE or sample.size == 0:
        return None, None
    with np.errstate(all="ignore"):
        if np.array_equal(sample, sample.astype(np.float32)):
            narrow = x.astype(np.float32)
            same = np.array_equal(x, narrow) or np.array_equal(x, narrow, equal_nan=True)
            return (narrow if same else None), None
        if np.count_nonzero(np.diff(sample)) < 0.98 * sample.size:
            return None, None
        narrow, offset = np.empty(x.size, dtype=np.float32), float(sample[sample.size // 2])
        np.subtract(x, offset, out=narrow, casting="same_kind")
    return narrow, offset


def _finite(ordered: NDArray[np.floating]) -> slice:
    """Where the finite values stand in a sorted array (-inf comes first, inf and NaN last)."""
    if ordered.size == 0 or (np.isfinite(ordered[0]) and np.isfinite(ordered[-1])):
        return slice(0, ordered.size)
    infinity = ordered.dtype.type(np.inf)
    return slice(
        int(np.searchsorted(ordered, -infinity, side="right")), int(np.searchsorted(ordered, infinity, side="left"))
    )


def _few_distinct(ordered: NDArray[np.floating]) -> bool:
    sparse = ordered[::16]
    if np.count_nonzero(sparse[1:] != sparse[:-1]) >= EXACT_LIMIT:
        return False
    return bool(np.count_nonzero(ordered[1:] != ordered[:-1]) < EXACT_LIMIT)


def _outer_limits(ordered: NDArray[np.floating], offset: float | None) -> tuple[float, float]:
    """The smallest and the largest value, or a little outside where they were rounded."""
    if offset is None:
        return float(ordered[0]), float(ordered[-1])
    low, high = np.nextafter(ordered[0], np.float32(-np.inf)), np.nextafter(ordered[-1], np.float32(np.inf))
    return float(np.nextafter(float(low) + offset, -np.inf)), float(np.nextafter(float(high) + offset, np.inf))


def _equal_rank_bins(ordered: NDArray[np.floating], weights: Floats | None) -> tuple[Floats, Floats]:
    n = ordered.size
    bins = min(BINS, n)
    if weights is None:
        ends = (np.arange(bins + 1) * n) // bins
        return ordered[(ends[:-1] + ends[1:]) // 2].astype(np.float64), np.diff(ends).astype(np.float64)
    rank = np.cumsum(weights)
    starts = np.unique(np.searchsorted(rank, rank[-1] * np.arange(bins) / bins, side="left"))
    middles = rank[starts] - weights[starts] + np.add.reduceat(weights, starts) / 2
    middle = np.minimum(np.searchsorted(rank, middles, side="left"), n - 1)
    return ordered[middle], np.add.reduceat(weights, starts)


def _centroids(digest: TDigest) -> tuple[Floats, Floats]:
    centroids = digest.centroids()
    return np.ascontiguousarray(centroids["mean"]), np.ascontiguousarray(centroids["weight"])
