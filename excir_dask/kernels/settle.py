"""From the state of columns to their quartiles and centres, with limits that are facts.

The cells of a bracket say in which of them a quantile lies. Where that cell holds one value, or the quantile is its
first or last one, the value is exact; else it is interpolated, and the cell's smallest and largest value enclose it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from excir_dask.kernels.brackets import narrowed
from excir_dask.kernels.centers import CENTERINGS
from excir_dask.kernels.reference import Reference
from excir_dask.kernels.runs import Elements, enclosing, quantile
from excir_dask.kernels.state import ColumnState
from excir_dask.kernels.summaries import rank_scale

Floats = NDArray[np.float64]

_JUMP = 2.0
"""standard errors of a rank within which a centre's jump is looked for"""

_NOTICEABLE = 0.1
"""of the interquartile range: a smaller jump is none"""

_ROUNDING = 4.0 * np.finfo(float).eps
"""of a quantile, relative to the largest number behind it"""

_SUM_ROUNDING = 2.0**13 * np.finfo(float).eps
"""of a mean, relative to the mean distance: so many values are added up one by one"""


@dataclass(frozen=True)
class ColumnStats:
    """What is known of some columns once every row was looked at; an entry per column."""

    n: NDArray[np.int64]
    """rows with a value"""
    missing: NDArray[np.int64]
    """rows without one"""
    low: Floats
    """smallest value; inf where there is none"""
    high: Floats
    """largest value; -inf where there is none"""
    q25: Floats
    """NaN where it is not known"""
    q75: Floats
    center: Floats
    """the provisional one where a quantile that it rests on lies outside its bracket; 0 where there is no value"""
    error: Floats
    """the exact centre is no further away, rounding apart"""
    jump: Floats
    """how far the centre moves if a few rows more or less were drawn, where that is far; 0 for most columns"""
    missed: NDArray[np.bool_]
    """a quantile lies outside its bracket"""

    @property
    def constant(self) -> NDArray[np.bool_]:
        return np.equal(self.low, self.high)

    @property
    def varies(self) -> NDArray[np.bool_]:
        return (self.n > 0) & ~self.constant


def settle(state: ColumnState, reference: Reference, centering: str) -> ColumnStats:
    """Quartiles and final centres of all columns of a state."""
    count = reference.columns
    q25, q75, center = np.full(count, np.nan), np.full(count, np.nan), np.zeros(count)
    error, jump, missed = np.zeros(count), np.zeros(count), np.zeros(count, dtype=bool)
    for j in map(int, np.flatnonzero(state.n > 0)):
        if state.low[j] == state.high[j]:
            q25[j] = q75[j] = center[j] = state.low[j]
            continue
        runs = elements(state, reference, j)
        first, third = quantile(runs, 0.25), quantile(runs, 0.75)
        q25[j] = np.nan if first is None else first.value
        q75[j] = np.nan if third is None else third.value
        provisional = float(reference.center[j])
        mean = provisional + float(state.total[j] / state.weight[j])
        found = CENTERINGS[centering].final(runs, first, third, provisional, mean)
        missed[j] = found is None or first is None or third is None
        if found is None:
            center[j], error[j] = provisional, state.high[j] - state.low[j]
            continue
        spread = q75[j] - q25[j]
        jump[j] = _jump(runs, int(state.n[j]), CENTERINGS[centering].levels, spread)
        if CENTERINGS[centering].levels and first and third and first.low == third.high:
            center[j] = first.low  # half of the rows have this value, and no other centre
            continue
        rounding = _ROUNDING * max(abs(found.value), spread if np.isfinite(spread) else 0.0)
        if CENTERINGS[centering].summed:
            rounding += _SUM_ROUNDING * float(state.absolute[j] / state.weight[j])
        center[j] = provisional if abs(found.value - provisional) <= rounding else found.value
        error[j] = found.error + (rounding if np.isfinite(rounding) else 0.0)
    return ColumnStats(state.n, state.missing, state.low, state.high, q25, q75, center, error, jump, missed)


def elements(state: ColumnState, reference: Reference, j: int) -> Elements:
    """The runs of values of a column; empty ones are left out."""
    unknown = np.full(1, np.nan)
    weights, low, high, totals = [], [], [], []
    for slot in range(int(reference.slots[j, -1]) + 1):
        if slot % 2 == 0:
            weights.append(state.slots[j, slot : slot + 1])
            totals.append(state.slot_total[j, slot : slot + 1])
            low.append(unknown)
            high.append(unknown)
            continue
        region = slot // 2
        edges = reference.first_edge[j, region]
        cells = slice(int(edges[0]) + region, int(edges[-1]) + region + 1)
        weights.append(state.cells[j, cells])
        totals.append(state.cell_total[j, cells])
        low.append(state.cell_low[j, cells])
        high.append(state.cell_high[j, cells])
    mass = np.concatenate(weights)
    there = mass > 0
    mass = mass[there]
    total = np.concatenate(totals)
    whole = bool(state.fractional[j] == 0)
    scale = rank_scale(int(state.n[j]), float(state.weight[j]), whole)
    return Elements(
        np.cumsum(mass) * scale,
        np.concatenate(low)[there],
        np.concatenate(high)[there],
        mass,
        total[there] if total.size else np.zeros(mass.size),
        whole and scale == 1.0,
    )


def _jump(runs: Elements, n: int, levels: Sequence[float], spread: float) -> float:
    """Distance of the centres at ranks two standard errors up and down, if it is a noticeable part of the spread."""
    if n < 2 or not levels:
        return 0.0
    reach = [_JUMP * (level * (1.0 - level) / n) ** 0.5 for level in levels]
    ends = [
        [quantile(runs, min(max(level + sign * r, 0.0), 1.0)) for level, r in zip(levels, reach, strict=True)]
        for sign in (-1, 1)
    ]
    distance = sum(
        (up.value if up else high) - (down.value if down else low)
        for down, up, (low, high) in zip(*ends, [_known(runs)] * len(levels), strict=True)
    ) / len(levels)
    smooth = 8.0 * max(reach)  # of a normal column: what a smooth density gives, with room
    return float(distance) if distance > max(smooth, _NOTICEABLE) * spread else 0.0


def _known(runs: Elements) -> tuple[float, float]:
    return float(np.nanmin(runs.low)), float(np.nanmax(runs.high))


def opened(state: ColumnState, reference: Reference, stats: ColumnStats, centering: str) -> Reference:
    """The same as :func:`sharpened` for columns whose quantiles may lie outside the brackets.

    What was counted says which brackets such a quantile lies between.
    """
    brackets, centers, reach = [], stats.center.copy(), stats.error.copy()
    for j in range(reference.columns):
        runs = elements(state, reference, j)
        limits = float(state.low[j]), float(state.high[j])
        levels = sorted({0.25, 0.75, *CENTERINGS[centering].levels})
        found = [enclosing(runs, level, *limits) for level in levels]
        brackets.append(found)
        if stats.missed[j]:
            ends = [found[levels.index(level)] for level in CENTERINGS[centering].levels] or [limits]
            low, high = (float(np.mean([each[side] for each in ends])) for side in (0, 1))
            centers[j], reach[j] = low + (high - low) / 2, (high - low) / 2
    return narrowed(reference, centers, brackets, reach)


def sharpened(state: ColumnState, reference: Reference, stats: ColumnStats, centering: str) -> Reference:
    """A reference for another look at columns whose quantiles lie in known cells: those are cut as brackets were."""
    brackets = []
    for j in range(reference.columns):
        runs = elements(state, reference, j)
        found = [quantile(runs, level) for level in sorted({0.25, 0.75, *CENTERINGS[centering].levels})]
        brackets.append([each.around for each in found if each is not None])
    return narrowed(reference, stats.center, brackets, stats.error)
