"""How far a column has moved between two states of one reference.

Both states count the same cells: coarse ones everywhere, fine ones around the quartiles. So both cumulative
distributions are known at the cells' edges, exactly, and in between they are monotone. That gives each distance, and
limits between which the one of all rows lies.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from excir_dask.kernels.reference import BUCKETS, Reference
from excir_dask.kernels.settle import settle
from excir_dask.kernels.state import ColumnState

Floats = NDArray[np.float64]
Columns = Annotated[Floats, "columns"]


@dataclass(frozen=True)
class Drift:
    """Of some columns, an entry each; NaN where one of the states has no value."""

    psi: Columns
    """population stability index over the coarse cells"""
    psi_chance: Columns
    """about what chance alone gives with so many rows"""
    ks: Columns
    """largest known difference of the cumulative distributions: the Kolmogorov-Smirnov distance is not smaller"""
    ks_high: Columns
    """it is not larger"""
    ks_p: Columns
    """probability of a distance like ``ks`` if nothing changed and rows are independent; too large rather than small"""
    wasserstein: Columns
    """about the distance that values have moved on average, in spreads of the earlier state"""
    wasserstein_low: Columns
    """it is not smaller"""
    wasserstein_high: Columns
    """it is not larger"""
    spread: Columns
    """interquartile range of the earlier state; where that is 0 or not known, a mean distance from the centre"""
    q25_shift: Columns
    """in spreads; NaN where a quartile lies outside what the reference covers, and so for the next two"""
    center_shift: Columns
    q75_shift: Columns
    missing_before: Columns
    """share of the rows without a value"""
    missing_after: Columns


def drift(before: ColumnState, after: ColumnState, reference: Reference, centering: str) -> Drift:
    """Distances between two states of the same columns, seen from the same reference."""
    states = (before, after)
    stats = [settle(state, reference, centering) for state in states]
    psi, chance, ks, ks_high, ks_p, moved, moved_low, moved_high = np.full((8, reference.columns), np.nan)
    spread = _spread(before, after, stats[0].q75 - stats[0].q25)
    unit = np.where(spread > 0, spread, 1.0)
    for j in map(int, np.flatnonzero((before.n > 0) & (after.n > 0))):
        runs = _runs(states, reference, j)
        sizes = [float(state.weight[j] ** 2 / state.weight_squares[j]) for state in states]
        risen = float(after.total[j] / after.weight[j] - before.total[j] / before.weight[j])
        low, middle, high = _wasserstein(runs, risen)
        apart = before.high[j] < after.low[j] or after.high[j] < before.low[j]
        ks[j], ks_high[j] = (1.0, 1.0) if apart else _ks(runs)
        psi[j], chance[j] = _psi(before.coarse[j], after.coarse[j], sizes)
        ks_p[j] = _ks_p(float(ks[j]), *sizes)
        moved[j], moved_low[j], moved_high[j] = np.array([middle, low, high]) / unit[j]
    known = ~(stats[0].missed | stats[1].missed) & (before.n > 0) & (after.n > 0)

    def shift(one: Floats, two: Floats) -> Floats:
        return np.where(known, two - one, np.nan) / unit

    missing = [state.missing / np.maximum(state.n + state.missing, 1) for state in states]
    quartiles = shift(stats[0].q25, stats[1].q25), shift(stats[0].q75, stats[1].q75)
    center = shift(stats[0].center, stats[1].center)
    return Drift(
        psi, chance, ks, ks_high, ks_p, moved, moved_low, moved_high, spread, quartiles[0], center, quartiles[1],
        missing[0], missing[1],
    )  # fmt: skip


def _spread(before: ColumnState, after: ColumnState, iqr: Floats) -> Floats:
    found = np.where(np.isfinite(iqr), iqr, 0.0)
    for state in (before, after):
        distance = np.divide(state.absolute, state.weight, out=np.zeros(found.size), where=state.weight > 0)
        found = np.where(found > 0, found, distance)
    return found


@dataclass(frozen=True)
class _Runs:
    """A column as neighbouring runs of values, the same ones for both states; those without rows are left out."""

    before: Floats
    """share of the rows up to and with each"""
    after: Floats
    low: Floats
    """no value of either state is smaller"""
    high: Floats

    @property
    def starts(self) -> tuple[Floats, Floats]:
        """Shares before each run."""
        return np.concatenate(([0.0], self.before[:-1])), np.concatenate(([0.0], self.after[:-1]))


def _runs(states: tuple[ColumnState, ColumnState], reference: Reference, j: int) -> _Runs:
    """Fine cells in brackets, coarse cells between them."""
    slots, coarse = reference.slots[j], reference.coarse[j]
    cuts = np.flatnonzero(np.diff(coarse)) + 1
    origin, scale = float(reference.origin[j]), float(reference.scale[j])
    slack = 4.0 * np.finfo(float).eps * (abs(origin) + BUCKETS / scale)
    first = np.min([state.coarse_first[j] for state in states], axis=0).astype(np.int64)
    last = np.max([state.coarse_last[j] for state in states], axis=0).astype(np.int64)
    weights: list[list[Floats]] = [[], []]
    low, high = [], []
    for slot in range(int(slots[-1]) + 1):
        start, stop = np.searchsorted(slots, [slot, slot + 1]).tolist()
        if start == stop:
            continue
        if slot % 2:
            region = slot // 2
            begin, end = map(int, reference.first_edge[j, region, [0, -1]])
            cells = slice(begin + region, end + region + 1)
            for mine, state in zip(weights, states, strict=True):
                mine.append(state.cells[j, cells])
            low.append(np.minimum(*(state.cell_low[j, cells] for state in states)))
            high.append(np.maximum(*(state.cell_high[j, cells] for state in states)))
            continue
        inside = cuts[(cuts > start) & (cuts < stop)]
        for mine, state in zip(weights, states, strict=True):
            ends = np.cumsum(state.coarse[j])[coarse[inside - 1]]  # weight below each cut
            below = float(state.slots[j, :slot].sum())
            mine.append(np.maximum(np.diff([below, *ends, below + float(state.slots[j, slot])]), 0.0))
        here, bounds = coarse[[start, *inside]], np.array([start, *inside, stop])
        begins, stops = np.maximum(bounds[:-1], first[here]), np.minimum(bounds[1:], last[here] + 1)
        low.append(np.where(begins > 0, origin + begins / scale - slack, -np.inf))
        high.append(np.where(stops < BUCKETS, origin + stops / scale + slack, np.inf))
    one, two = (np.concatenate(mine) for mine in weights)
    held = (one > 0) | (two > 0)
    ends = [np.cumsum(mine[held]) / mine.sum() for mine in (one, two)]
    limits = min(float(state.low[j]) for state in states), max(float(state.high[j]) for state in states)
    return _Runs(*ends, *(np.clip(np.concatenate(side)[held], *limits) for side in (low, high)))


def _psi(before: Floats, after: Floats, sizes: list[float]) -> tuple[float, float]:
    """The index, and its expectation if nothing changed.

    Half a row more in every cell: an empty one is not infinitely far from one with a row.
    """
    held = (before > 0) | (after > 0)
    shares = [
        (size * weights[held] / weights.sum() + 0.5) / (size + 0.5 * held.sum())
        for weights, size in zip((before, after), sizes, strict=True)
    ]
    found = float(((shares[1] - shares[0]) * np.log(shares[1] / shares[0])).sum())
    return found, float(held.sum() - 1) * (1.0 / sizes[0] + 1.0 / sizes[1])


def _ks(runs: _Runs) -> tuple[float, float]:
    """The largest difference at the ends of runs, and the largest that can be inside one.

    A run of one value has no inside.
    """
    at_ends = float(np.abs(runs.before - runs.after).max())
    starts = runs.starts
    inside = np.maximum(runs.before - starts[1], runs.after - starts[0])
    return at_ends, max(at_ends, float(np.where(runs.low < runs.high, inside, 0.0).max()))


def _ks_p(distance: float, n: float, m: float) -> float:
    """Kolmogorov's distribution, with the correction of Stephens for few rows."""
    size = math.sqrt(n * m / (n + m))
    x = (size + 0.12 + 0.11 / size) * distance
    if x < 0.2:  # the series converges slowly, and the probability is 1 to 12 digits
        return 1.0
    terms = (2.0 * (-1.0) ** (k - 1) * math.exp(-2.0 * (k * x) ** 2) for k in range(1, 101))
    return min(max(sum(terms), 0.0), 1.0)


def _wasserstein(runs: _Runs, risen: float) -> tuple[float, float, float]:
    """Area between the cumulative distributions: not smaller than, about, not larger than.

    Between runs it is known. Inside one, the distributions are about straight lines, and lie between their ends. By how
    much the mean has risen is the area with its sign, and known: what straight lines miss of it is in the widest run.
    """
    starts = runs.starts
    gaps = np.maximum(runs.low[1:] - runs.high[:-1], 0.0)
    between = gaps * (runs.before - runs.after)[:-1]
    known = float(np.abs(between).sum())
    wide = runs.high - runs.low
    left, right = starts[0] - starts[1], runs.before - runs.after
    most = np.maximum(runs.before - starts[1], runs.after - starts[0])
    least = np.maximum(np.maximum(starts[0] - runs.after, starts[1] - runs.before), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        crossed = (left * left + right * right) / (2.0 * (np.abs(left) + np.abs(right)))
    straight = np.where(left * right < 0, crossed, (np.abs(left) + np.abs(right)) / 2.0)
    areas, signed = wide * straight, wide * (left + right) / 2.0
    widest = int(np.argmax(wide * most))
    areas[widest] = abs(signed[widest] + risen - float(between.sum()) - float(signed.sum()))
    low = max(known + float((wide * least).sum()), abs(risen))
    high = max(known + float((wide * most).sum()), low)
    return low, min(max(known + float(areas.sum()), low), high), high
