"""Exact quantiles where a digest cannot place them: where a column has a gap, neighbouring ranks are far apart.

If a quarter of the rows are near 0 and the others near 100, the first quartile is somewhere in between, and the
smallest error of its rank moves it from one side to the other. One more scan of such columns gathers the distinct
values around the quantile, with weights, which makes it exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from excir_dask.kernels.centers import BRACKET, CENTERINGS, ColumnStats
from excir_dask.kernels.summaries import window_mean

Floats = NDArray[np.float64]

_DOUBT = 0.1
"""share of the interquartile range: a quantile is doubtful if the outer thresholds around it are further apart (in a
normal column they are 0.01 apart, in a lognormal one with sigma 3 0.04)"""

_MOST_GATHERED = 2**24
"""values that may be gathered to make outputs exact: some 256 MB, from 4 billion rows of one output"""


@dataclass(frozen=True)
class Vicinity:
    """The values of a column between the outer thresholds around a quantile, and the nearest ones outside."""

    VERSION: ClassVar[int] = 1

    under: float
    """weight of the values below the thresholds"""
    points: Annotated[Floats, "points"]
    """distinct values between them, ascending"""
    weights: Annotated[Floats, "points"]
    nearest: tuple[float, float]
    """the largest value below the thresholds (-inf: none), the smallest one above (inf: none)"""
    nearest_weights: tuple[float, float]


@dataclass(frozen=True)
class Vicinities:
    """Those of some columns."""

    VERSION: ClassVar[int] = 1

    columns: tuple[tuple[Vicinity, ...], ...]
    """column -> level -> vicinity"""


def doubtful(stats: ColumnStats, centering: str) -> NDArray[np.bool_]:
    """Columns with a quantile that a small error of its rank moves far."""
    if not CENTERINGS[centering].levels:
        return np.zeros(stats.n.size, dtype=bool)
    upper = np.nextafter(stats.thresholds[..., -1], -np.inf)  # nudged up, it is never on an atom
    width = (upper - stats.thresholds[..., 0]).max(axis=-1)
    doubtful: NDArray[np.bool_] = ~stats.exact & ~stats.constant & (width > _DOUBT * (stats.q75 - stats.q25))
    return doubtful


def doubtful_outputs(stats: ColumnStats, centering: str) -> NDArray[np.bool_]:
    """The same for outputs: all that are not exact, if the centring needs that and they are not too many.

    The error of an output's centre goes into the score of every feature, and in full into those of features whose
    values lie on one side of their own centre: 1.8e-4 with medians of digests, 3e-6 with exact ones.
    """
    inexact = ~stats.exact & ~stats.constant
    gathered = 2 * BRACKET[-1] * float(stats.n[inexact].sum())
    if CENTERINGS[centering].exact_outputs and gathered <= _MOST_GATHERED:
        return inexact
    return doubtful(stats, centering)


def gather(columns: Iterable[Floats], thresholds: Floats, weights: Floats | None) -> Vicinities:
    """Values around each quantile in one block of rows; ``thresholds`` as in ColumnStats, of these columns."""
    return Vicinities(
        tuple(
            tuple(_gather(x, level[0], level[-1], weights) for level in levels)
            for x, levels in zip(columns, thresholds, strict=True)
        )
    )


def merge_vicinities(parts: Sequence[Vicinities]) -> Vicinities:
    """The same over the rows of all parts."""
    columns = zip(*(part.columns for part in parts), strict=True)
    return Vicinities(tuple(tuple(_merge(level) for level in zip(*levels, strict=True)) for levels in columns))


def concatenate_vicinities(parts: Sequence[Vicinities]) -> Vicinities:
    """Vicinities of neighbouring column blocks as one."""
    return Vicinities(tuple(column for part in parts for column in part.columns))


def refined(stats: ColumnStats, centering: str, where: NDArray[np.bool_], found: Vicinities) -> ColumnStats:
    """Statistics with exact quantiles in the columns ``where``, as far as the vicinities reach them."""
    values = {0.25: stats.q25.copy(), 0.5: stats.q50.copy(), 0.75: stats.q75.copy()}
    exact, thresholds = stats.exact.copy(), stats.thresholds.copy()
    for i, vicinities in zip(map(int, np.flatnonzero(where)), found.columns, strict=True):
        ranks = [level * max(stats.weight[i] * stats.scale[i] - 1.0, 0.0) for level in CENTERINGS[centering].levels]
        placed = [_value(v, rank, float(stats.scale[i])) for v, rank in zip(vicinities, ranks, strict=True)]
        if None in placed:
            continue
        for level, value in zip(CENTERINGS[centering].levels, placed, strict=True):
            values[level][i] = value
        exact[i], thresholds[i] = True, np.nan
    return replace(stats, q25=values[0.25], q50=values[0.5], q75=values[0.75], exact=exact, thresholds=thresholds)


def _gather(x: Floats, low: float, high: float, weights: Floats | None) -> Vicinity:
    finite = np.isfinite(x)
    x, w = x[finite], np.ones(np.count_nonzero(finite)) if weights is None else weights[finite]
    before, inside, above = x < low, (x >= low) & (x < high), x >= high
    nearest = float(x[before].max(initial=-np.inf)), float(x[above].min(initial=np.inf))
    return Vicinity(
        float(w[before].sum()),
        *_distinct(x[inside], w[inside]),
        nearest,
        (float(w[x == nearest[0]].sum()), float(w[x == nearest[1]].sum())),
    )


def _merge(parts: Sequence[Vicinity]) -> Vicinity:
    low, high = max(part.nearest[0] for part in parts), min(part.nearest[1] for part in parts)
    return Vicinity(
        sum(part.under for part in parts),
        *_distinct(np.concatenate([p.points for p in parts]), np.concatenate([p.weights for p in parts])),
        (low, high),
        (
            sum(part.nearest_weights[0] for part in parts if part.nearest[0] == low),
            sum(part.nearest_weights[1] for part in parts if part.nearest[1] == high),
        ),
    )


def _distinct(values: Floats, weights: Floats) -> tuple[Floats, Floats]:
    points, where = np.unique(values, return_inverse=True)
    return points, np.bincount(where, weights, minlength=points.size).astype(np.float64)


def _value(vicinity: Vicinity, rank: float, scale: float) -> float | None:
    """The quantile at a rank, if the vicinity reaches that far."""
    points = np.concatenate(([vicinity.nearest[0]], vicinity.points, [vicinity.nearest[1]]))
    weights = np.concatenate(([vicinity.nearest_weights[0]], vicinity.weights, [vicinity.nearest_weights[1]]))
    start = (vicinity.under - vicinity.nearest_weights[0]) * scale
    there = np.isfinite(points)
    points, ends = points[there], start + np.cumsum(weights[there]) * scale
    if ends.size == 0 or start > rank or ends[-1] < rank + 1.0:
        return None
    return window_mean(points, ends, start, rank)
