"""The loops from the state of columns to their quantiles and centres: 2 microseconds per column.

Runs are plain arrays here; :mod:`excir_dask.kernels.runs` has the same for one column.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from excir_dask.kernels.compiled import compiled_exactly

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

_SLACK = 1e-9
"""rounding of ranks of fractional weights, relative to the last: millions of weights are added up one by one"""

_JUMP = 2.0
"""standard errors of a rank within which a centre's jump is looked for"""

_ROUNDING = 4.0 * float(np.finfo(float).eps)
"""of a quantile, relative to the largest number behind it"""

_SUM_ROUNDING = 2.0**13 * float(np.finfo(float).eps)
"""of a mean, relative to the mean distance: so many values are added up one by one"""


class Runs(NamedTuple):
    """A column as runs of values in order; see :class:`excir_dask.kernels.runs.Elements`."""

    ends: Floats
    low: Floats
    high: Floats
    weights: Floats
    totals: Floats
    whole: bool


class Figure(NamedTuple):
    """A quantile or a centre as far as it is known."""

    known: bool
    value: float
    low: float
    high: float
    first: float
    """the values behind it are not smaller"""
    last: float


class Counted(NamedTuple):
    """What was counted, and what it was seen from: a row per column."""

    n: Rows
    weight: Floats
    fractional: Rows
    low: Floats
    high: Floats
    total: Floats
    absolute: Floats
    slots: Floats
    cells: Floats
    cell_low: Floats
    cell_high: Floats
    slot_total: Floats
    cell_total: Floats
    center: Floats
    slot_of: NDArray[np.uint8]
    first_edge: NDArray[np.uint16]


class Rule(NamedTuple):
    """What columns are centred on."""

    levels: Floats
    """quantiles that the centre rests on; none for a mean of all values"""
    trimmed: bool
    """it is the mean of the values between the quartiles"""


@compiled_exactly
def runs_of(counted: Counted, j: int) -> Runs:
    """The runs of values of a column; empty ones are left out."""
    most = counted.slots.shape[1] + counted.cells.shape[1]
    ends, low, high, weights, totals = np.empty((5, most))
    size, sum_ = 0, 0.0
    summed = counted.slot_total.shape[1] > 0
    for slot in range(counted.slot_of[j, -1] + 1):
        region = slot // 2
        first, last = slot, slot
        if slot % 2 == 1:
            edges = counted.first_edge[j, region]
            first, last = int(edges[0]) + region, int(edges[-1]) + region
        for c in range(first, last + 1):
            mass = counted.cells[j, c] if slot % 2 == 1 else counted.slots[j, c]
            if not mass > 0.0:
                continue
            sum_ += mass
            ends[size], weights[size], totals[size] = sum_, mass, 0.0
            low[size] = high[size] = np.nan
            if slot % 2 == 1:
                low[size], high[size] = counted.cell_low[j, c], counted.cell_high[j, c]
            if summed:
                totals[size] = counted.cell_total[j, c] if slot % 2 == 1 else counted.slot_total[j, c]
            size += 1
    whole, weight = counted.fractional[j] == 0, counted.weight[j]
    scale = 1.0 if (whole and weight < 2.0**50) or weight == 0.0 else counted.n[j] / weight  # as in rank_scale
    ends[:size] *= scale
    return Runs(ends[:size], low[:size], high[:size], weights[:size], totals[:size], whole and scale == 1.0)


@compiled_exactly
def quantile_of(runs: Runs, level: float) -> Figure:
    """A linear quantile, the mean of the values over the ranks [r, r + 1] with r = level (total - 1)."""
    total = runs.ends[-1]
    rank = level * max(total - 1.0, 0.0)
    stop = min(rank + 1.0, total)
    slack = 0.0 if runs.whole else _SLACK * total
    top = runs.ends.size - 1
    first = min(int(np.searchsorted(runs.ends, rank - slack, side="right")), top)
    last = min(int(np.searchsorted(runs.ends, stop + slack, side="left")), top)
    value = weight = low = high = 0.0
    around, behind = np.inf, -np.inf
    start = runs.ends[first - 1] if first else 0.0
    for i in range(first, last + 1):
        a, b, end = runs.low[i], runs.high[i], runs.ends[i]
        if math.isnan(a):
            return Figure(False, np.nan, np.nan, np.nan, np.nan, np.nan)
        left, right = max(rank, start), min(stop, end)
        part, size = max(right - left, 0.0), end - start
        if runs.whole and right - start <= 1.0:
            b = a
        elif runs.whole and end - left <= 1.0:
            a = b
        at = (left + right) / 2.0 - 0.5 - start
        start = end
        guess = a + (b - a) * (min(max(at / (size - 1.0), 0.0), 1.0) if size > 1.0 else 0.5)
        value, weight = value + part * guess, weight + part
        low, high = low + part * a, high + part * b
        around, behind = min(around, a), max(behind, b)
    if weight == 0.0:
        return Figure(False, np.nan, np.nan, np.nan, np.nan, np.nan)
    if slack > 0.0:  # as much as the ranks may be off, the mean may be over the neighbours
        around, behind = runs.low[first], runs.high[last]
        moved = min(slack, 1.0) * (behind - around)
        low, high = max(low - moved, weight * around), min(high + moved, weight * behind)
    return Figure(True, value / weight, low / weight, high / weight, around, behind)


@compiled_exactly
def _trimmed(runs: Runs, q25: Figure, q75: Figure, provisional: float) -> Figure:
    """Mean of the values between the quartiles, both included; the midhinge where there are none."""
    count = runs.ends.size
    # between brackets limits are unknown, but all of such a run is on one side of each quartile
    first, last = 0, count
    for i in range(count):
        if runs.high[i] < q25.value:
            first = i + 1
    for i in range(count - 1, -1, -1):
        if runs.low[i] > q75.value:
            last = i
    inside = np.zeros(count)
    for i in range(first, last):
        low, high = runs.low[i], runs.high[i]
        inside[i] = 1.0
        if low < q25.value <= high:
            inside[i] = (high - q25.value) / (high - low)
        elif low <= q75.value < high:
            inside[i] = (q75.value - low) / (high - low)
    while first < last and np.isnan(runs.low[first]):  # lies below the bracket of the first quartile
        inside[first] = 0.0
        first += 1
    while first < last and np.isnan(runs.low[last - 1]):  # lies above the bracket of the third one
        inside[last - 1] = 0.0
        last -= 1
    weight, total, moved = (inside * runs.weights).sum(), (inside * runs.totals).sum(), 0.0
    if weight == 0.0:
        return Figure(True, q25.value + (q75.value - q25.value) / 2, q25.low, q75.high, q25.first, q75.last)
    center = provisional + total / weight
    for i in range(count):
        low, high = runs.low[i], runs.high[i]
        unsure = 0.0 < inside[i] < 1.0
        unsure |= (low < q25.high) & (high >= q25.low)
        unsure |= (low <= q75.high) & (high > q75.low)
        moved += runs.weights[i] if unsure else 0.0
    if moved >= weight:
        return Figure(True, center, q25.low, q75.high, q25.first, q75.last)
    reach = moved / (weight - moved) * max(center - q25.low, q75.high - center)
    return Figure(True, center, max(center - reach, q25.low), min(center + reach, q75.high), q25.first, q75.last)


@compiled_exactly
def center_of(runs: Runs, q25: Figure, q75: Figure, rule: Rule, provisional: float, mean: float) -> Figure:
    """The centre, from what it rests on."""
    if rule.trimmed and q25.known and q75.known:
        found: Figure = _trimmed(runs, q25, q75, provisional)
        return found
    if rule.trimmed:
        return Figure(False, np.nan, np.nan, np.nan, np.nan, np.nan)
    if not rule.levels.size:
        return Figure(True, mean, mean, mean, mean, mean)
    value = low = high = 0.0
    base = Figure(True, 0.0, 0.0, 0.0, 0.0, 0.0)
    for i in range(rule.levels.size):
        level = rule.levels[i]
        one = q25 if level == 0.25 else q75 if level == 0.75 else quantile_of(runs, level)
        if not one.known:
            return Figure(False, np.nan, np.nan, np.nan, np.nan, np.nan)
        base = one if i == 0 else base
        value += one.value - base.value
        low += one.low - base.low
        high += one.high - base.high
    if rule.levels.size == 1:
        return base
    count = float(rule.levels.size)  # from the first on, so that sums of huge values do not overflow
    return Figure(True, base.value + value / count, base.low + low / count, base.high + high / count, np.nan, np.nan)


@compiled_exactly
def jump_of(runs: Runs, n: int, levels: Floats, spread: float) -> float:
    """Distance of the centres at ranks two standard errors up and down, if it is more than a smooth density gives."""
    if n < 2 or not levels.size:
        return 0.0
    lowest, highest = np.inf, -np.inf
    for i in range(runs.ends.size):
        lowest = runs.low[i] if runs.low[i] < lowest else lowest
        highest = runs.high[i] if runs.high[i] > highest else highest
    distance = most = 0.0
    for i in range(levels.size):
        reach = _JUMP * (levels[i] * (1.0 - levels[i]) / n) ** 0.5
        down, up = quantile_of(runs, max(levels[i] - reach, 0.0)), quantile_of(runs, min(levels[i] + reach, 1.0))
        distance += (up.value if up.known else highest) - (down.value if down.known else lowest)
        most = max(most, reach)
    distance /= levels.size
    smooth = 8.0 * most  # of a normal column: what a smooth density gives, with room
    return distance if distance > smooth * spread else 0.0


@compiled_exactly
def settle_all(counted: Counted, rule: Rule, found: Floats, missed: NDArray[np.bool_]) -> None:
    """Quartiles, centre, its error and its jump of every column, which ``found`` has rows for; see ``ColumnStats``."""
    summed = rule.trimmed or not rule.levels.size
    for j in range(counted.n.size):
        if counted.n[j] == 0:
            found[0, j] = found[1, j] = np.nan
            continue
        if counted.low[j] == counted.high[j]:
            found[0, j] = found[1, j] = found[2, j] = counted.low[j]
            continue
        runs = runs_of(counted, j)
        q25, q75 = quantile_of(runs, 0.25), quantile_of(runs, 0.75)
        found[0, j], found[1, j] = q25.value, q75.value
        provisional = counted.center[j]
        center = center_of(runs, q25, q75, rule, provisional, provisional + counted.total[j] / counted.weight[j])
        missed[j] = not (center.known and q25.known and q75.known)
        if not center.known:
            found[2, j], found[3, j] = provisional, counted.high[j] - counted.low[j]
            continue
        spread = q75.value - q25.value
        found[4, j] = jump_of(runs, counted.n[j], rule.levels, spread)
        if rule.levels.size and q25.known and q75.known and q25.low == q75.high:
            found[2, j] = q25.low  # half of the rows have this value, and no other centre
            continue
        if rule.levels.size == 1 and center.first == center.last:
            found[2, j] = center.first  # a value of the column: nothing is rounded
            continue
        rounding = _ROUNDING * max(abs(center.value), spread if np.isfinite(spread) else 0.0)
        if summed:
            rounding += _SUM_ROUNDING * (counted.absolute[j] / counted.weight[j])
        found[2, j] = provisional if abs(center.value - provisional) <= rounding else center.value
        error = max(center.value - center.low, center.high - center.value)
        found[3, j] = error + (rounding if np.isfinite(rounding) else 0.0)
