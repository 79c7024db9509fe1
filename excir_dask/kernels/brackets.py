"""From what is known of a column to its part of a reference: brackets around its quantiles, cut into cells.

None of it needs to be right: :mod:`excir_dask.kernels.settle` finds out whether a quantile was inside its bracket.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from excir_dask.kernels.centers import CENTERINGS
from excir_dask.kernels.reference import (
    BUCKETS,
    COARSE,
    FLIP_EDGES,
    SPARE,
    ColumnFrame,
    Reference,
    places,
    slots_of,
    stacked,
)
from excir_dask.kernels.summaries import ColumnSummary, quantiles

Floats = NDArray[np.float64]

REACH = 0.005
"""rank on either side of a quantile that its bracket covers; more if the pilot was small"""

KNOWN_REACH = 0.002
"""the same where the pilot has read everything: digests are within 1e-4"""

CERTAINTY = 4.5
"""standard errors of a pilot's rank that a bracket covers"""

CELLS = 512
"""cells of a bracket, about equally full"""

MOST_REACH = 0.1
"""rank that brackets of a small table reach at most"""

_ATOMS = 4
"""heavy values that get a cell of their own among those around a centre"""

_BEYOND = 2
"""centroids of a digest that a bracket reaches over: one may be a mean of values on both sides of a gap"""

_WIDE = 3.0
"""interquartile ranges beyond the quartiles that buckets reach"""

_WIDER = 8.0
"""the same where more than a twentieth of the rows lies beyond those"""


def make_reference(
    summaries: Sequence[ColumnSummary],
    atoms: Sequence[Floats],
    centering: str,
    complete: bool,
    effect: float = 1.0,
    cells: int = CELLS,
) -> Reference:
    """A reference from a pilot's summaries.

    Parameters
    ----------
    summaries : list of ColumnSummary
    atoms : list of float64 arrays
        Values that a column has again and again; each gets a cell of its own where it lies in a bracket.
    centering : str
    complete : bool
        The pilot has read every row.
    effect : float
        Times that the pilot's rows say less than so many independent ones, because their weights differ.
    cells : int
        Of a bracket.
    """
    columns = [_column(s, heavy, centering, complete, effect, cells) for s, heavy in zip(summaries, atoms, strict=True)]
    return stacked(columns)


def _column(
    summary: ColumnSummary, atoms: Floats, centering: str, complete: bool, effect: float, cells: int
) -> ColumnFrame:
    if summary.n == 0:
        summary = ColumnSummary(1, 0, 1.0, True, 0.0, 0.0, 0.0, True, np.zeros(1), np.ones(1))
    levels = sorted({0.25, 0.75, *CENTERINGS[centering].levels})
    inner = [_bracket(summary, level, _reach(summary, level, complete, effect)) for level in levels]
    outer = inner  # of a pilot: what covers its error covers other days too
    if complete:
        outer = [_bracket(summary, level, _reach_of_others(summary, level, effect)) for level in levels]
    brackets = [(min(a[0], b[0]), max(a[1], b[1])) for a, b in zip(inner, outer, strict=True)]
    around = dict(zip(levels, brackets, strict=True))
    center, reach = _center(summary, centering, around, effect)
    origin, scale = _buckets(summary)
    parts = [_cells(summary, atoms, *bracket, cells) for bracket in inner]
    parts += [
        _cells(summary, atoms, *each, cells // 2) for each, fine in zip(brackets, inner, strict=True) if each != fine
    ]
    edges = np.unique(np.concatenate(parts))
    flip_edges = _flip_edges(summary, atoms, center, *reach)
    slots = slots_of([*brackets, reach], origin, scale)
    return ColumnFrame(center, origin, scale, slots, _coarse(summary, origin, scale), edges, flip_edges)


def narrowed(
    reference: Reference,
    centers: Floats,
    brackets: Sequence[Sequence[tuple[float, float]]],
    reach: Floats,
    cells: int = CELLS,
) -> Reference:
    """A reference for another look at the same columns.

    Parameters
    ----------
    reference : Reference
        Of the first look.
    centers : array of shape (columns,)
        Provisional centres.
    brackets : for each column, a list of (low, high)
        Between which its quantiles lie.
    reach : array of shape (columns,)
        How far the final centres can be from these.
    cells : int
        Of a bracket.
    """
    columns, buckets = [], reference.slots.shape[1]
    for j in range(reference.columns):
        center, far = float(centers[j]), float(reach[j])
        origin, scale = float(reference.origin[j]), float(reference.scale[j])
        limits = (center - far, center + far)
        ends = np.array([end for bracket in brackets[j] for end in bracket])  # either may be an atom
        grids = [np.linspace(low, high, cells) for low, high in brackets[j]]
        edges = np.unique(np.concatenate([*grids, ends, np.nextafter(ends, np.inf)]))
        flips = np.linspace(limits[0], np.nextafter(limits[1], np.inf), FLIP_EDGES - SPARE - 1)
        slots = slots_of([*brackets[j], limits], origin, scale, buckets)
        columns.append(
            ColumnFrame(center, origin, scale, slots, reference.coarse[j], edges, np.unique(np.append(flips, center)))
        )
    return stacked(columns, reference.first_edge.shape[2] - 1)


def _reach(summary: ColumnSummary, level: float, complete: bool, effect: float) -> float:
    """Rank on either side within which a quantile of all rows will lie, all but surely."""
    error = _rank_error(summary, level, effect)
    # of all rows the error of a rank is no matter, but how far a centre jumps within it is asked later on
    return max(KNOWN_REACH, 2.2 * error, 2.0 / summary.n) if complete else max(REACH, CERTAINTY * error)


def _reach_of_others(summary: ColumnSummary, level: float, effect: float) -> float:
    """The same for as many rows of another day, which may be seen from this reference."""
    return min(CERTAINTY * math.sqrt(2.0) * _rank_error(summary, level, effect), MOST_REACH)


def _rank_error(summary: ColumnSummary, level: float, effect: float) -> float:
    return math.sqrt(effect * level * (1.0 - level) / summary.n)


def _bracket(summary: ColumnSummary, level: float, reach: float) -> tuple[float, float]:
    """Values at ranks on either side of a quantile."""
    low, high = map(float, quantiles(summary, [max(level - reach, 0.0), min(level + reach, 1.0)]))
    if summary.exact:
        return low, high
    # in a gap a digest interpolates between centroids where there are no values: reach beyond the neighbours
    first = int(np.searchsorted(summary.points, low, side="right")) - _BEYOND
    last = int(np.searchsorted(summary.points, high, side="left")) + _BEYOND - 1
    return (
        float(summary.points[first]) if first >= 0 else summary.low,
        float(summary.points[last]) if last < summary.points.size else summary.high,
    )


def _center(
    summary: ColumnSummary, centering: str, around: dict[float, tuple[float, float]], effect: float
) -> tuple[float, tuple[float, float]]:
    """The provisional centre, and the values between which the final one will lie, all but surely."""
    if summary.low == summary.high:
        return summary.low, (summary.low, summary.low)
    center = CENTERINGS[centering].provisional(summary, *map(float, quantiles(summary, [0.25, 0.5, 0.75])))
    levels = CENTERINGS[centering].levels
    if levels and not CENTERINGS[centering].needs_totals:  # a mean of quantiles lies between the means of their limits
        low, high = (float(np.mean([around[level][side] for level in levels])) for side in (0, 1))
    else:
        share = _shares(summary, center, center)[0]
        reach = max(KNOWN_REACH, _reach_of_others(summary, 0.5, effect))
        low, high = map(float, rough_quantiles(summary, np.array([share - reach, share + reach])))
    return center, (min(low, center), max(high, center))


def _buckets(summary: ColumnSummary) -> tuple[float, float]:
    """Origin and scale of equal buckets over the part of the range that matters."""
    q25, q75 = map(float, quantiles(summary, [0.25, 0.75]))
    q01, q05, q95, q99 = map(float, rough_quantiles(summary, np.array([0.01, 0.05, 0.95, 0.99])))
    wide, wider = _WIDE * (q75 - q25), _WIDER * (q75 - q25)
    low = max(summary.low, min(q25 - wide, max(q05, q25 - wider)))
    high = min(summary.high, max(q75 + wide, min(q95, q75 + wider)))
    if not low < high:
        low, high = q01, q99
    if not low < high:
        low, high = summary.low, summary.high
    width = (high - low) / (BUCKETS - 2) if low < high else max(abs(low), 1.0) * 2.0**-30
    if not (np.isfinite(width) and width > 0.0 and np.isfinite(1.0 / width)):
        width = max(abs(high), abs(low), np.finfo(float).tiny * BUCKETS) / (BUCKETS / 4)
    origin = low - width if low < high else low - BUCKETS / 2 * width
    return origin, 1.0 / width


def _cells(summary: ColumnSummary, atoms: Floats, low: float, high: float, count: int) -> Floats:
    """Edges inside a bracket that cut it into about equally full cells, and atoms off from their neighbours."""
    heavy = atoms[(atoms >= low) & (atoms <= high)]
    if summary.exact:
        heavy = summary.points[(summary.points >= low) & (summary.points <= high)]
        heavy = heavy[:: -(-heavy.size // count)] if heavy.size else heavy
    grid = _grid(summary, low, high, count)
    edges = np.concatenate([grid, [low, high], heavy])
    return np.unique(np.concatenate([edges, np.nextafter(np.append(heavy, high), np.inf)]))


def _flip_edges(summary: ColumnSummary, atoms: Floats, center: float, low: float, high: float) -> Floats:
    """Edges of cells around a centre, the centre among them."""
    heavy = atoms[(atoms >= low) & (atoms <= high)]
    if summary.exact:
        inside = (summary.points >= low) & (summary.points <= high)
        heavy = summary.points[inside][np.argsort(-summary.weights[inside], kind="stable")]
    heavy = heavy[:_ATOMS]
    fixed = np.concatenate([[low, center, np.nextafter(high, np.inf)], heavy, np.nextafter(heavy, np.inf)])
    return np.unique(np.concatenate([fixed, _grid(summary, low, high, FLIP_EDGES - SPARE - fixed.size)]))


def _grid(summary: ColumnSummary, low: float, high: float, count: int) -> Floats:
    """Values that cut the rows between two values into about equal parts."""
    first, last = _shares(summary, low, high)
    grid = rough_quantiles(summary, np.linspace(first, last, count))
    return grid[(grid > low) & (grid < high)]


def rough_quantiles(summary: ColumnSummary, levels: Floats) -> Floats:
    """Values at some levels, by interpolation between the middles of neighbouring points."""
    ends = np.cumsum(summary.weights)
    return np.asarray(np.interp(levels * ends[-1], ends - summary.weights / 2, summary.points))


def _shares(summary: ColumnSummary, low: float, high: float) -> tuple[float, float]:
    """About which share of the rows lies below each of two values."""
    ends = np.cumsum(summary.weights)
    first, last = np.interp([low, high], summary.points, (ends - summary.weights / 2) / ends[-1])
    return float(first), float(last)


def _coarse(summary: ColumnSummary, origin: float, scale: float) -> NDArray[np.uint8]:
    """Coarse cell of each bucket: about equally full, but a bucket with as much as a cell is one by itself."""
    found = np.bincount(places(summary.points, origin, scale, BUCKETS), summary.weights, minlength=BUCKETS)
    cuts: list[int] = []
    inside, left, before = 0.0, float(found.sum()), -1
    masses = found.tolist()  # a loop over numpy's numbers takes five times as long
    for bucket in np.flatnonzero(found).tolist():
        room = COARSE - len(cuts)
        full = left / room
        if room > 1 and inside > 0 and (inside + masses[bucket] / 2 > full or masses[bucket] >= full):
            cuts.append(before + 1 if masses[before] >= full else bucket)
            left -= inside
            inside = 0.0
        inside += masses[bucket]
        before = bucket
    heavy = np.flatnonzero(found * COARSE >= found.sum())
    for bucket in heavy[np.argsort(-found[heavy], kind="stable")].tolist():  # cells to spare: fence heavy values in
        fence = [cut for cut in (bucket, bucket + 1) if cut not in cuts and 0 < cut < BUCKETS]
        cuts += fence[: COARSE - 1 - len(cuts)]
    return np.searchsorted(sorted(cuts), np.arange(BUCKETS), side="right").astype(np.uint8)
