"""Mergeable summaries of columns, from which quantiles follow.

While a column has few distinct values its summary is exact: every value with its count (or weight). Beyond that it is
a t-digest (Dunning, "Computing extremely accurate quantiles using t-digests", 2019), by crick. A digest takes 116 ns
per value, 25 times the cost of decoding it. So a slice is cut into bins of equal rank, and the digest gets the middle
value of each with the weight of the bin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from crick import TDigest
from numpy.typing import NDArray

from excir_dask.kernels.ranks import values_at

Floats = NDArray[np.float64]

EXACT_LIMIT = 2048
"""distinct values up to which a summary is exact (32 kB per column)"""

COMPRESSION = 500
"""of the digest; rank errors are 1e-4 on average, 3e-4 at most in the middle (1,000, where crick clips silently, halves
them)"""

BINS = 1000
"""equal-rank bins that a slice is cut into before the digest sees it"""

_SAMPLE = 4096
"""values that decide how a slice is sorted"""

_DISTINCT_SHARE = 0.98
"""of a sample's values: if fewer are distinct, values repeat so often that a quartile may well be one of them"""


@dataclass(frozen=True)
class ColumnSummary:
    """One column over some rows. Missing means null, NaN or infinite."""

    VERSION: ClassVar[int] = 1

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
    """weighted sum of the values; NaN where it was not requested"""
    exact: bool
    """points are the distinct values themselves, not centroids of a digest"""
    points: Annotated[Floats, "points"]
    """distinct values, or centroids, ascending"""
    weights: Annotated[Floats, "points"]
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
    if w is None:
        return _summarise_rows(x, with_total)
    order = np.argsort(x, kind="stable")
    inside = _finite(x[order])
    ordered, weights = x[order][inside], w[order][inside]
    missing = int(x.size - ordered.size)
    if not ordered.size:
        return _empty(missing)
    few = _few_distinct(ordered)
    points, masses = _distinct(ordered, weights) if few else _digested(*_equal_rank_bins(ordered, weights))
    return ColumnSummary(
        n=int(ordered.size),
        missing=missing,
        weight=float(weights.sum()),
        whole=bool(np.all(weights == np.rint(weights))),
        low=float(ordered[0]),
        high=float(ordered[-1]),
        total=float((weights * ordered).sum()) if with_total else np.nan,
        exact=few,
        points=points,
        weights=masses,
    )


def _summarise_rows(x: Floats, with_total: bool) -> ColumnSummary:
    """Summary of rows without weights."""
    rows = int(x.size)
    low, high = (float(x.min()), float(x.max())) if rows else (np.inf, -np.inf)
    if not (np.isfinite(low) and np.isfinite(high)):  # NaN spreads to both
        x = x.take(np.flatnonzero(np.isfinite(x)))  # a mask takes ten times as long as indices
        low, high = (float(x.min()), float(x.max())) if x.size else (np.inf, -np.inf)
    n = int(x.size)
    if n == 0:
        return _empty(rows)
    ends = (np.arange(BINS + 1) * n) // BINS
    middles = (ends[:-1] + ends[1:]) // 2
    few, values = False, _counted(x, middles, low, high)
    if values is None:
        ordered = _sort(x)
        few, values = _few_distinct(ordered), ordered[middles].astype(np.float64)
    if few:
        points, masses = _distinct(ordered, np.ones(n))
    else:
        points, masses = _digested(values, np.diff(ends).astype(np.float64))
    total = float(x.sum()) if with_total else np.nan
    return ColumnSummary(n, rows - n, float(n), True, low, high, total, few, points, masses)


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
            points, weights = _digested(points, weights)
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
        # between the middles of neighbouring centroids, as in crick, but for all levels at once
        ends = np.cumsum(summary.weights)
        found = np.interp(np.array(levels) * ends[-1], ends - summary.weights / 2, summary.points)
        clipped: Floats = np.clip(found, summary.low, summary.high)
        return clipped
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

    Whole weights beyond 2**50 in all are scaled too: floats could not tell neighbouring ranks apart.
    """
    return 1.0 if (whole and weight < 2.0**50) or weight == 0 else n / weight


def _empty(missing: int) -> ColumnSummary:
    empty = np.empty(0)
    return ColumnSummary(0, missing, 0.0, True, np.inf, -np.inf, 0.0, True, empty, empty)


def _counted(x: Floats, ranks: NDArray[np.int64], low: float, high: float) -> Floats | None:
    """Values at the ranks, by counting; None where the column is short or its values repeat."""
    if x.size <= 4 * _SAMPLE:
        return None
    sample = np.sort(x[:: x.size // _SAMPLE])
    if np.count_nonzero(np.diff(sample)) < _DISTINCT_SHARE * sample.size:
        return None
    return values_at(x, ranks, sample, low, high)


def _sort(x: Floats) -> NDArray[np.floating]:
    """The sorted values, in float32 where that represents them all: it sorts twice as fast."""
    with np.errstate(over="ignore", under="ignore"):
        if np.array_equal(x[:_SAMPLE], x[:_SAMPLE].astype(np.float32)):
            narrow = x.astype(np.float32)
            if np.array_equal(x, narrow):
                return np.sort(narrow)
    return np.sort(x)


def _finite(ordered: NDArray[np.floating]) -> slice:
    """Where the finite values are in a sorted array (-inf comes first, inf and NaN last)."""
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


def _distinct(ordered: NDArray[np.floating], weights: Floats) -> tuple[Floats, Floats]:
    starts = np.concatenate(([0], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1))
    return ordered[starts].astype(np.float64), np.add.reduceat(weights, starts)


def _equal_rank_bins(ordered: Floats, weights: Floats) -> tuple[Floats, Floats]:
    rank = np.cumsum(weights)
    starts = np.unique(np.searchsorted(rank, rank[-1] * np.arange(BINS) / BINS, side="left"))
    middles = rank[starts] - weights[starts] + np.add.reduceat(weights, starts) / 2
    middle = np.minimum(np.searchsorted(rank, middles, side="left"), ordered.size - 1)
    return ordered[middle], np.add.reduceat(weights, starts)


def _digested(points: Floats, weights: Floats) -> tuple[Floats, Floats]:
    digest = TDigest(COMPRESSION)
    digest.update(points, weights)
    return _centroids(digest)


def _centroids(digest: TDigest) -> tuple[Floats, Floats]:
    centroids = digest.centroids()
    return np.ascontiguousarray(centroids["mean"]), np.ascontiguousarray(centroids["weight"])
