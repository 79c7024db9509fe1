"""From column summaries to centres, and from counts to a proof of how far off a centre can be.

A digest promises nothing about its error. So the values below a few thresholds around each approximate quantile are
counted, and the counts prove between which two thresholds the exact quantile lies, whatever the digest did.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from excir_dask.kernels.summaries import ColumnSummary, quantiles, rank_scale, trimmed_mean

Floats = NDArray[np.float64]

BRACKET = (-2e-3, -2e-4, 2e-4, 2e-3)
"""rank offsets of the thresholds around a quantile: most digests are within 2e-4, the outer pair is for the others"""


@dataclass(frozen=True)
class ColumnStats:
    """Statistics with one entry per column: a few hundred bytes per column are all that leaves the workers."""

    VERSION: ClassVar[int] = 1

    n: NDArray[np.int64]
    """rows with a value"""
    missing: NDArray[np.int64]
    """rows without one"""
    weight: Floats
    """sum of weights of the rows with a value"""
    scale: Floats
    """factor from weights to ranks"""
    low: Floats
    """no value is smaller"""
    high: Floats
    """no value is larger"""
    exact: NDArray[np.bool_]
    """quantiles are exact"""
    q25: Floats
    q50: Floats
    q75: Floats
    mean: Floats
    trimmed: Floats
    """mean of the values inside [q25, q75]; NaN where it takes a further scan"""
    thresholds: Floats
    """(columns, levels, len(BRACKET)): values below them are counted; NaN for exact columns"""
    jump: Floats
    """how far the centre moves with a few rows more or less, where that is far; 0 for most columns"""

    @property
    def constant(self) -> NDArray[np.bool_]:
        return np.equal(self.low, self.high)

    def subset(self, where: NDArray[np.bool_] | slice) -> ColumnStats:
        return ColumnStats(**{field.name: getattr(self, field.name)[where] for field in fields(self)})


@dataclass(frozen=True)
class Centers:
    """Where sums of some columns are taken."""

    VERSION: ClassVar[int] = 1

    center: Floats
    missing: NDArray[np.bool_]
    """the column has missing values, which must be left out"""
    thresholds: Floats
    """(columns, levels, len(BRACKET)) as in ColumnStats"""
    identity: str = ""
    """digest of all the centres that these are part of; made from these themselves where it is not given"""

    def __post_init__(self) -> None:
        if not self.identity:
            content = b"".join(each.tobytes() for each in (self.center, self.missing, self.thresholds))
            object.__setattr__(self, "identity", hashlib.sha256(content).hexdigest()[:16])

    def subset(self, where: slice) -> Centers:
        return Centers(self.center[where], self.missing[where], self.thresholds[where], self.identity)


def describe(summaries: Sequence[ColumnSummary], centering: str) -> ColumnStats:
    """Quantiles, mean and counting thresholds of merged summaries."""
    levels = CENTERINGS[centering].levels
    nearby = [min(max(level + offset, 0.0), 1.0) for level in levels for offset in BRACKET]
    thresholds = np.full((len(summaries), len(levels), len(BRACKET)), np.nan)
    quartiles = np.empty((len(summaries), 3))
    for i, summary in enumerate(summaries):
        found = quantiles(summary, (0.25, 0.5, 0.75) if summary.exact else (0.25, 0.5, 0.75, *nearby))
        quartiles[i] = found[:3]
        if not summary.exact:
            thresholds[i] = found[3:].reshape(len(levels), len(BRACKET))
    # values strictly below a threshold are counted: nudged up, an upper threshold on an atom includes it
    upper = np.array(BRACKET) > 0
    thresholds[..., upper] = np.nextafter(thresholds[..., upper], np.inf)
    weight = np.array([s.weight for s in summaries])
    return ColumnStats(
        n=np.array([s.n for s in summaries], dtype=np.int64),
        missing=np.array([s.missing for s in summaries], dtype=np.int64),
        weight=weight,
        scale=np.array([rank_scale(s.n, s.weight, s.whole) for s in summaries]),
        low=np.array([s.low for s in summaries]),
        high=np.array([s.high for s in summaries]),
        exact=np.array([s.exact for s in summaries], dtype=bool),
        q25=quartiles[:, 0],
        q50=quartiles[:, 1],
        q75=quartiles[:, 2],
        mean=np.array([s.total / s.weight if s.weight else np.nan for s in summaries]),
        trimmed=np.array(
            [trimmed_mean(s, q[0], q[2]) if s.exact else np.nan for s, q in zip(summaries, quartiles, strict=True)]
        ),
        thresholds=thresholds,
        jump=np.array([_jump(s, levels) for s in summaries]),
    )


def _jump(summary: ColumnSummary, levels: Sequence[float]) -> float:
    """Distance of the centres at ranks two standard errors up and down, if it is a noticeable part of the spread."""
    if summary.n < 2 or not levels or summary.low == summary.high:
        return 0.0
    reach = 2.0 * np.sqrt([level * (1.0 - level) / summary.n for level in levels])
    ends = [min(max(level + sign * r, 0.0), 1.0) for sign in (-1, 1) for level, r in zip(levels, reach, strict=True)]
    found = quantiles(summary, [*ends, 0.25, 0.75])
    down, up = found[: len(levels)], found[len(levels) : 2 * len(levels)]
    spread = found[-1] - found[-2]
    distance = float((up - down).mean())
    smooth = 8.0 * float(reach.max())  # of a normal column: what a smooth density gives, with room
    return distance if distance > max(smooth, 0.1) * spread else 0.0


def concatenate(parts: Sequence[ColumnStats]) -> ColumnStats:
    """Statistics of neighbouring column blocks as one."""
    return ColumnStats(
        **{f.name: np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(ColumnStats)}
    )


def centers(stats: ColumnStats, centering: str) -> Centers:
    """Centres by a centring; a constant column is centred on its value, exactly."""
    center = np.where(stats.constant, stats.low, CENTERINGS[centering].center(stats))
    return Centers(np.where(stats.n > 0, center, 0.0), stats.missing > 0, stats.thresholds)


def center_errors(stats: ColumnStats, centering: str, center: Floats, below: Floats) -> Floats:
    """Certified distance between the centres used and the exact ones; a fact, rounding apart.

    Parameters
    ----------
    stats : ColumnStats
    centering : str
    center : array of shape (columns,)
        The centres used.
    below : array of shape (columns, levels, len(BRACKET))
        Weight of the values strictly below each threshold.
    """
    rounding = 4 * np.finfo(float).eps * np.maximum(np.abs(center), stats.q75 - stats.q25)
    bound = np.where(np.isfinite(rounding), rounding, 0.0)
    kind = CENTERINGS[centering]
    if not kind.levels:
        return bound
    for i in map(int, np.flatnonzero(~stats.exact & ~stats.constant)):
        enclosures = [_enclose(stats, i, k, level, below[i, k]) for k, level in enumerate(kind.levels)]
        bound[i] += kind.error(stats, i, float(center[i]), dict(zip(kind.levels, enclosures, strict=True)))
    return bound


@dataclass(frozen=True)
class _Enclosure:
    """Two thresholds that the counts prove to enclose both a quantile and its estimate."""

    low: float
    high: float
    under: float
    """weight of the values below ``low``"""
    upto: float
    """weight of the values below ``high``"""


def _enclose(stats: ColumnStats, i: int, k: int, level: float, below: Floats) -> _Enclosure:
    """The nearest thresholds that do; the column's own limits where none does."""
    weight, scale = float(stats.weight[i]), float(stats.scale[i])
    slack = 0.0 if scale == 1.0 else 1e-9 * weight * scale
    rank = level * max(weight * scale - 1.0, 0.0)
    low, under, high, upto = float(stats.low[i]), 0.0, float(stats.high[i]), weight
    counted = list(zip(stats.thresholds[i, k], below, BRACKET, strict=True))
    for t, b, offset in reversed(counted):
        if offset < 0 and b * scale + slack <= rank:
            low, under = float(t), float(b)
            break
    for t, b, offset in counted:
        if offset > 0 and b * scale - slack >= rank + 1.0:
            high, upto = float(t), float(b)
            break
    if stats.q25[i] == stats.q75[i] and high == np.nextafter(low, np.inf):
        high = low  # most rows have one value, and the counts on both sides of it prove that the quantile is on it
    return _Enclosure(low, high, under, upto)


def _midhinge(stats: ColumnStats) -> Floats:
    return stats.q25 + (stats.q75 - stats.q25) / 2


def _trimmed(stats: ColumnStats) -> Floats:
    """The midhinge where no value lies between the quartiles, as with two rows."""
    return np.where(np.isnan(stats.trimmed), _midhinge(stats), stats.trimmed)


def _quantile_error(stats: ColumnStats, i: int, center: float, enclosures: Mapping[float, _Enclosure]) -> float:
    """Largest change of a mean of quantiles when each moves inside its enclosure."""
    estimates = {0.25: stats.q25[i], 0.5: stats.q50[i], 0.75: stats.q75[i]}
    gaps = [max(estimates[level] - e.low, e.high - estimates[level]) for level, e in enclosures.items()]
    return float(sum(gaps) / len(gaps))


def _trimmed_error(stats: ColumnStats, i: int, center: float, enclosures: Mapping[float, _Enclosure]) -> float:
    """Largest change of a trimmed mean when values inside the two enclosures move in or out of it."""
    first, third = enclosures[0.25], enclosures[0.75]
    if first.low == first.high and third.low == third.high:  # both are known exactly
        return 0.0
    moved = (first.upto - first.under) + (third.upto - third.under)
    surely_inside = third.under - first.upto
    if surely_inside <= 0:
        return float(stats.high[i] - stats.low[i])
    return moved * max(abs(center - first.low), abs(third.high - center)) / surely_inside


@dataclass(frozen=True)
class Centering:
    """A way to centre columns. A new one is a new entry of ``CENTERINGS``."""

    center: Callable[[ColumnStats], Floats]
    """centres of all columns"""
    levels: tuple[float, ...] = ()
    """quantile levels that the centre depends on, of 0.25, 0.5 and 0.75; values around them are counted"""
    error: Callable[[ColumnStats, int, float, Mapping[float, _Enclosure]], float] = _quantile_error
    """certified error of the centre of column i, from the enclosure of each level"""
    needs_totals: bool = False
    """the values are summed"""
    needs_trimmed: bool = False
    """one more scan sums the values between the quartiles"""
    exact_outputs: bool = False
    """one more scan of the outputs makes their quantiles exact"""


CENTERINGS: dict[str, Centering] = {
    "midhinge": Centering(_midhinge, levels=(0.25, 0.75)),
    # a digest is least accurate in the middle, where no second quantile evens its error out
    "median": Centering(lambda stats: stats.q50, levels=(0.5,), exact_outputs=True),
    "mean": Centering(lambda stats: stats.mean, needs_totals=True),
    "trimmed": Centering(_trimmed, levels=(0.25, 0.75), error=_trimmed_error, needs_trimmed=True),
}
