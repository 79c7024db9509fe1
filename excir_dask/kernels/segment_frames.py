"""The loops that make a frame of a column for every segment, from sorted values."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from excir_dask.kernels.compiled import compiled
from excir_dask.kernels.reference import REGIONS, SPARE

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


class Sorted(NamedTuple):
    """Values of a column in order, one segment after the other."""

    values: Floats
    ends: Floats
    """weight up to each value, within its segment"""
    starts: Rows
    """where the values of each segment begin"""
    counts: Rows
    """how many each has"""
    effect: Floats
    """times that the rows of each say less than so many rows of equal weight"""
    whole: NDArray[np.bool_]
    """all weights of each are whole numbers"""
    totals: Floats
    """weighted sum of each"""


class Rule(NamedTuple):
    """How frames are made."""

    levels: Floats
    """quantiles that get a bracket"""
    central: NDArray[np.bool_]
    """those that the centre is the mean of; none where it is not a mean of quantiles"""
    trimmed: bool
    """it is the mean of the values between the quartiles"""
    complete: bool
    """every row is known"""
    picks: int
    """values of a bracket that get a cell of their own"""
    reaches: tuple[float, float, float, float]
    """rank that a bracket covers at least, of a pilot and of all rows; standard errors that it covers; rank that it
    covers at most for other rows"""


class Frames(NamedTuple):
    """What is made, an entry per segment; edges are filled up with inf."""

    slots: NDArray[np.uint8]
    edges: Floats
    steps: Floats
    first_edge: NDArray[np.uint16]
    flip_edges: Floats


def sort_segments(x: Floats, w: Floats, starts: Rows) -> Sorted:
    """The finite values of every segment in order."""
    if not w.size:
        x = x.copy()
        for start, stop in pairwise(starts.tolist()):
            x[start:stop].sort()  # numpy's vector code takes a third of the time of a compiled sort
    found: Sorted = _sorted(x, w, starts)
    return found


@compiled
def _sorted(x: Floats, w: Floats, starts: Rows) -> Sorted:
    """The same where values without weights are in order already."""
    segments = starts.size - 1
    values, ends, counts = np.empty(x.size), np.empty(x.size), np.zeros(segments, np.int64)
    effect, whole, totals = np.ones(segments), np.ones(segments, np.bool_), np.zeros(segments)
    for s in range(segments):
        start, stop = starts[s], starts[s + 1]
        if w.size:
            some = x[start:stop]
            finite = np.flatnonzero(np.isfinite(some))
            counts[s] = finite.size
            some = some[finite]
            order = np.argsort(some, kind="mergesort")
            mass = squares = 0.0
            for i in range(finite.size):
                one = w[start + finite[order[i]]]
                mass += one
                squares += one * one
                ends[start + i] = mass
                values[start + i] = some[order[i]]
                totals[s] += one * some[order[i]]
                whole[s] &= one == np.rint(one)
            effect[s] = squares * finite.size / (mass * mass) if mass > 0.0 else 1.0
        else:
            first, last = start, stop
            while first < last and not np.isfinite(x[first]):
                first += 1
            while first < last and not np.isfinite(x[last - 1]):
                last -= 1
            counts[s] = last - first
            for i in range(last - first):
                values[start + i] = x[first + i]
                ends[start + i] = i + 1.0
                totals[s] += x[first + i]
    return Sorted(values, ends, starts[:-1].copy(), counts, effect, whole, totals)


@compiled
def _window(v: Floats, ends: Floats, scale: float, level: float) -> float:
    """A linear quantile: the mean of the values over the ranks [r, r + 1] with r = level (total - 1)."""
    total = ends[-1] * scale
    rank = level * max(total - 1.0, 0.0)
    i = min(int(np.searchsorted(ends, rank / scale, side="right")), v.size - 1)
    anchor, value, weight = v[i], 0.0, 0.0
    left = rank
    while i < v.size and left < rank + 1.0:
        right = min(ends[i] * scale, rank + 1.0)
        share = max(right - left, 0.0)
        value += share * (v[i] - anchor)
        weight += share
        left = max(right, left)
        i += 1
    return float(anchor + value / weight) if weight > 0.0 else float(anchor)


@compiled
def find_centers(column: Sorted, known: NDArray[np.bool_], rule: Rule, centers: Floats, scaled: Floats) -> None:
    """Provisional centres of the segments, and what turns their weights into ranks."""
    for s in range(known.size):
        if not known[s]:
            continue
        n = column.counts[s]
        rows = slice(column.starts[s], column.starts[s] + n)
        v, ends = column.values[rows], column.ends[rows]
        weight = ends[-1]
        scaled[s] = 1.0 if column.whole[s] and weight < 2.0**50 else n / weight  # as in rank_scale
        if v[0] == v[-1]:
            centers[s] = v[0]
        elif rule.trimmed:
            q25, q75 = _window(v, ends, scaled[s], 0.25), _window(v, ends, scaled[s], 0.75)
            total = inside = before = 0.0
            for i in range(n):
                if q25 <= v[i] <= q75:
                    inside += ends[i] - before
                    total += (ends[i] - before) * (v[i] - q25)
                before = ends[i]
            centers[s] = q25 + (total / inside if inside > 0.0 else (q75 - q25) / 2.0)
        elif rule.central.any():
            first, more, count = 0.0, 0.0, 0
            for i in range(rule.levels.size):
                if rule.central[i]:
                    value = _window(v, ends, scaled[s], rule.levels[i])
                    first = value if count == 0 else first
                    more += value - first
                    count += 1
            centers[s] = first + more / count
        else:
            centers[s] = column.totals[s] / weight


@compiled
def _row(ends: Floats, rank: float, more: int) -> int:
    return min(max(int(np.searchsorted(ends, rank)) + more, 0), ends.size - 1)


@compiled
def _spaced(place: int, count: int) -> float:
    """Which of so many points between 0 and 1: closer to each other in the middle, where a quantile most likely is."""
    t = 2.0 * place / (count - 1) - 1.0
    return 0.5 + 0.5 * math.copysign(abs(t) ** 1.7, t)


@compiled
def _unique(edges: Floats, count: int, found: Floats) -> int:
    """Write the edges in order, each once; returns how many there are."""
    some = np.sort(edges[:count])
    size = 0
    for i in range(count):
        if size == 0 or some[i] != found[size - 1]:
            found[size] = some[i]
            size += 1
    found[size:] = np.inf
    return size


@compiled
def _slots(brackets: Floats, origin: float, scale: float, slots: NDArray[np.uint8], runs: Rows) -> int:
    """Odd slots for the buckets that hold a bracket; writes where they begin and end, and returns their number."""
    top = slots.size - 1
    firsts, lasts = np.empty(len(brackets), np.int64), np.empty(len(brackets), np.int64)
    for i in range(len(brackets)):
        firsts[i] = np.int64(min(max((brackets[i, 0] - origin) * scale, 0.0), float(top)))
        lasts[i] = np.int64(min(max((brackets[i, 1] - origin) * scale, 0.0), float(top)))
    count = 0
    for i in np.argsort(firsts, kind="mergesort"):
        if count and firsts[i] <= runs[count - 1, 1] + 1:
            runs[count - 1, 1] = max(runs[count - 1, 1], lasts[i])
        else:
            runs[count, 0], runs[count, 1] = firsts[i], lasts[i]
            count += 1
    slots[:] = 0
    for r in range(count):
        slots[runs[r, 0] : runs[r, 1] + 1] = 2 * r + 1
        slots[runs[r, 1] + 1 :] = 2 * r + 2
    return count


@compiled
def _index(
    edges: Floats, size: int, place: tuple[float, float], slots: NDArray[np.uint8], runs: Rows, count: int,
    steps: Floats, first_edge: NDArray[np.uint16],
) -> None:  # fmt: skip
    """Where the parts of each odd slot begin, and how many edges lie below each of them."""
    origin, scale = place
    top, most = float(slots.size - 1), first_edge.shape[1] - 1
    parts = np.zeros((REGIONS, most + 1), np.int64)
    below = np.zeros(REGIONS, np.int64)
    for r in range(REGIONS):
        start, wide = (runs[r, 0], runs[r, 1] - runs[r, 0] + 1) if r < count else (slots.size, 1)
        steps[r, 0], steps[r, 1] = origin + start / scale, min(scale * most / wide, 1.7976931348623157e308)
    for e in range(size):
        slot = np.int64(slots[np.int64(min(max((edges[e] - origin) * scale, 0.0), top))])
        for r in range(REGIONS):
            below[r] += slot < 2 * r + 1
        if slot % 2 == 1:
            region = slot // 2
            part = np.int64(min(max((edges[e] - steps[region, 0]) * steps[region, 1], 0.0), most - 1.0))
            parts[region, part + 1] += 1
    for r in range(REGIONS):
        first_edge[r] = below[r] + np.cumsum(parts[r])


@compiled
def _frame(
    v: Floats, ends: Floats, figures: tuple[float, float, float, float], place: tuple[float, float], rule: Rule,
    found: Frames, g: int,
) -> None:  # fmt: skip
    """Make the frame of sorted values; ``figures`` are effect, factor to ranks, support and provisional centre."""
    effect, scaled, support, center = figures
    origin, scale = place
    slots, edges, flips = found.slots[g], found.edges[g], found.flip_edges[g]
    n, mass, levels = v.size, ends[-1], rule.levels
    picks, most = rule.picks, rule.reaches[3]
    buffer, size = np.empty(edges.size), 0
    brackets = np.empty((levels.size + 1, 2))
    low = high = widest = 0.0
    for i in range(levels.size):
        error = math.sqrt(effect * levels[i] * (1.0 - levels[i]) / support)
        inner = max(rule.reaches[0], rule.reaches[2] * error)
        reach = inner
        if rule.complete:
            inner = max(rule.reaches[1], 2.2 * error, 2.0 / n)
            reach = max(inner, min(rule.reaches[2] * math.sqrt(2.0) * error, most))
        widest = max(widest, reach)
        for wide, count in ((inner, picks), (reach, picks // 2 if rule.complete else 0)):
            first, last = _row(ends, (levels[i] - wide) * mass, -1), _row(ends, (levels[i] + wide) * mass, 1)
            for p in range(count):
                buffer[size] = v[first + int((last - first) * _spaced(p, count))]
                size += 1
            brackets[i, 0], brackets[i, 1] = v[first], v[last]
        rank = levels[i] * max(mass * scaled - 1.0, 0.0)  # the rows that the quantile of these values rests on
        buffer[size] = v[min(int(np.searchsorted(ends, rank / scaled, side="right")), n - 1)]
        buffer[size + 1] = v[_row(ends, (rank + 1.0) / scaled, 0)]
        size += 2
        if rule.central[i]:
            low += brackets[i, 0] / rule.central.sum()
            high += brackets[i, 1] / rule.central.sum()
    if not rule.central.any():
        rank = ends[min(int(np.searchsorted(v, center)), n - 1)]
        low, high = v[_row(ends, rank - widest * mass, -1)], v[_row(ends, rank + widest * mass, 1)]
    if v[0] == v[-1]:
        low = high = center
    low, high = min(low, center), max(high, center)
    for e in range(size):
        buffer[size + e] = np.nextafter(buffer[e], np.inf)
    size = _unique(buffer, 2 * size, edges)
    brackets[levels.size, 0], brackets[levels.size, 1] = low, high
    runs = np.zeros((REGIONS, 2), np.int64)
    count = _slots(brackets, origin, scale, slots, runs)
    _index(edges, size, place, slots, runs, count, found.steps[g], found.first_edge[g])
    near, some = np.empty(flips.size), 3
    near[0], near[1], near[2] = low, center, np.nextafter(high, np.inf)
    last = max(int(np.searchsorted(v, high, side="right")) - 1, 0)
    first = min(int(np.searchsorted(v, low)), last)
    around = (flips.size - SPARE - 3) // 2
    for p in range(around):
        value = v[first + int((last - first) * _spaced(p, around))]
        if low <= value <= high:
            near[some], near[some + 1] = value, np.nextafter(value, np.inf)
            some += 2
    _unique(near, some, flips)


@compiled
def make_frames(
    column: Sorted, scaled: Floats, support: Floats, centers: Floats, place: tuple[float, float], rule: Rule,
    found: Frames, where: Rows,
) -> None:  # fmt: skip
    """Make the frames of all segments that have support; that of segment ``s`` goes to ``where[s]``."""
    for s in range(where.size):
        if support[s] <= 0.0:
            continue
        rows = slice(column.starts[s], column.starts[s] + column.counts[s])
        figures = column.effect[s], scaled[s], support[s], centers[s]
        _frame(column.values[rows], column.ends[rows], figures, place, rule, found, where[s])
