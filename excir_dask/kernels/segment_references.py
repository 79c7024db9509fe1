"""References of segments: each segment has quantiles of its own, so each column has a frame per segment.

There are many of them, so they are made from the pilot's rows as they are, without digests (0.2 ms in place of 3), and
have fewer cells. Buckets and coarse cells are those of all rows: joint counts of segments can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from excir_dask.kernels.array_records import arrays_of
from excir_dask.kernels.brackets import CERTAINTY, KNOWN_REACH, MOST_REACH, REACH
from excir_dask.kernels.centers import CENTERINGS
from excir_dask.kernels.reference import SPARE, ColumnFrame, Reference, identified, slots_of, stacked
from excir_dask.kernels.summaries import ColumnSummary, quantiles, rank_scale

Floats = NDArray[np.float64]

PICKS = 64
"""values of a bracket that get a cell of their own; as many cells lie between them"""

OUTPUT_PICKS = 256
"""the same of an output: there are few outputs, and all scores rest on their centres"""

_FLIP_PICKS = 11
"""the same around a centre"""

LEAST_ROWS = 8
"""rows of a pilot that say something about a segment"""

_SUPPORT = 64
"""rows that a segment counts as which the pilot has not seen: the rows of all segments say roughly what it is like"""


def segment_references(
    columns: Sequence[Floats],
    weights: Floats | None,
    starts: NDArray[np.int64],
    base: Reference,
    centering: str,
    complete: bool,
    picks: int = PICKS,
) -> Reference:
    """A reference with a frame per segment and column: all columns of the first segment come first.

    Parameters
    ----------
    columns : list of float64 arrays
        The pilot's rows, one segment after the other.
    weights : float64 array, optional
        Of these rows.
    starts : int64 array of shape (segments + 1,)
        Where the rows of each segment begin, and the last one ends.
    base : Reference
        Of all rows.
    centering : str
    complete : bool
        The pilot has read every row.
    picks : int
        Values of a bracket that get a cell of their own.
    """
    by_column = []
    for j, x in enumerate(columns):
        rule = _Rule(centering, complete, picks, base, j)
        every = None
        frames = []
        for start, stop in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            rows = slice(start, stop)
            found = _sorted(x[rows], None if weights is None else weights[rows])
            if found.n >= LEAST_ROWS or (complete and found.n):
                frames.append(rule.frame(found, found.n))
                continue
            if every is None:
                every = rule.guess(_sorted(x, weights))
            frames.append(every)
        by_column.append(frames)
    return stacked([frames[s] for s in range(starts.size - 1) for frames in by_column])


def concatenate_segment_references(parts: Sequence[Reference], segments: int) -> Reference:
    """References of neighbouring columns as one."""
    width = max(part.edges.shape[1] for part in parts)
    padded = [
        replace(part, edges=np.pad(part.edges, ((0, 0), (0, width - part.edges.shape[1])), constant_values=np.inf))
        for part in parts
    ]
    arrays: dict[str, Any] = {}
    for name in arrays_of(parts[0]):
        found = [getattr(part, name) for part in padded]
        joined = np.concatenate([array.reshape(segments, -1, *array.shape[1:]) for array in found], axis=1)
        arrays[name] = joined.reshape(-1, *joined.shape[2:])
    return identified(replace(parts[0], **arrays))


def segment_reference(references: Reference, segment: int, segments: int) -> Reference:
    """The part of one segment, as a reference of its own."""
    width = references.columns // segments
    found = references.subset(slice(segment * width, (segment + 1) * width))
    edges = int(np.isfinite(found.edges).sum(axis=1).max(initial=0)) + SPARE  # as many as it needs: its id tells
    return identified(replace(found, edges=np.ascontiguousarray(found.edges[:, :edges])))


def _sorted(x: Floats, w: Floats | None) -> ColumnSummary:
    """The finite values in order, each a point: what an exact summary is, up to equal points."""
    if w is None:
        values = np.sort(x)
        if values.size and not (np.isfinite(values[0]) and np.isfinite(values[-1])):
            values = values[np.isfinite(values)]
        masses = np.ones(values.size)
    else:
        order = np.argsort(x, kind="stable")
        order = order[np.isfinite(x[order])]
        values, masses = x[order], w[order]
    n = values.size
    low, high = (float(values[0]), float(values[-1])) if n else (np.inf, -np.inf)
    whole = w is None or bool(np.all(masses == np.rint(masses)))
    total = float((masses * values).sum())
    return ColumnSummary(n, x.size - n, float(masses.sum()), whole, low, high, total, True, values, masses)


class _Rule:
    """How the frames of a column are made."""

    def __init__(self, centering: str, complete: bool, picks: int, base: Reference, j: int):
        self.centering = CENTERINGS[centering]
        self.complete = complete
        self.levels = np.array(sorted({0.25, 0.75, *self.centering.levels}))
        self.places = {level: i for i, level in enumerate(self.levels.tolist())}
        self.grid = np.linspace(0.0, 1.0, picks)
        self.base = float(base.center[j]), float(base.origin[j]), float(base.scale[j]), base.coarse[j]

    def guess(self, found: ColumnSummary) -> ColumnFrame:
        """For a segment of which the pilot has no rows."""
        if found.n:
            return self.frame(found, min(found.n, _SUPPORT))
        center, origin, scale, coarse = self.base
        edges = np.array([center, np.nextafter(center, np.inf)])
        return ColumnFrame(center, origin, scale, slots_of([(center, center)], origin, scale), coarse, edges, edges)

    def frame(self, found: ColumnSummary, support: int) -> ColumnFrame:
        """From sorted values that say as much as ``support`` rows."""
        v, last = found.points, found.n - 1
        ends = np.cumsum(found.weights)
        effect = float((found.weights * found.weights).sum()) * found.n / found.weight**2
        error = np.sqrt(effect * self.levels * (1.0 - self.levels) / support)
        inner = np.maximum(KNOWN_REACH, np.maximum(2.2 * error, 2.0 / found.n)) if self.complete else CERTAINTY * error
        inner = inner if self.complete else np.maximum(REACH, inner)
        reach = (
            np.maximum(inner, np.minimum(CERTAINTY * math.sqrt(2.0) * error, MOST_REACH)) if self.complete else inner
        )
        fine, wide = (self._rows(ends, each, last) for each in (inner, reach))
        rows = [fine[0][:, None] + (fine[1] - fine[0])[:, None] * self.grid]
        if self.complete:
            rows.append(wide[0][:, None] + (wide[1] - wide[0])[:, None] * self.grid[::2])
        edges = v[np.concatenate([*(each.ravel().astype(np.int64) for each in rows), self._exact(found, ends)])]
        brackets = list(zip(v[wide[0]].tolist(), v[wide[1]].tolist(), strict=True))
        center, limits = self._center(found, ends, brackets, float(reach.max()))
        first, stop = np.searchsorted(v, limits[0]), max(int(np.searchsorted(v, limits[1], side="right")) - 1, 0)
        near = v[np.linspace(min(int(first), stop), stop, _FLIP_PICKS).astype(np.int64)]
        flips = np.concatenate([near, np.nextafter(near, np.inf), [limits[0], center, np.nextafter(limits[1], np.inf)]])
        _, origin, scale, coarse = self.base
        return ColumnFrame(
            center,
            origin,
            scale,
            slots_of([*brackets, limits], origin, scale),
            coarse,
            np.unique(np.concatenate([edges, np.nextafter(edges, np.inf)])),
            np.unique(flips[(flips >= limits[0]) & (flips <= np.nextafter(limits[1], np.inf))]),
        )

    def _rows(self, ends: Floats, reach: Floats, last: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """First and last row of each bracket."""
        low = np.searchsorted(ends, (self.levels - reach) * ends[-1]) - 1
        high = np.searchsorted(ends, (self.levels + reach) * ends[-1]) + 1
        return np.clip(low, 0, last), np.clip(high, 0, last)

    def _exact(self, found: ColumnSummary, ends: Floats) -> NDArray[np.int64]:
        """The rows that the quantiles of these values rest on."""
        ranked = ends * rank_scale(found.n, found.weight, found.whole)
        ranks = self.levels * max(float(ranked[-1]) - 1.0, 0.0)
        first = np.searchsorted(ranked, ranks, side="right")
        last = np.searchsorted(ranked, ranks + 1.0, side="left")
        return np.asarray(np.clip(np.concatenate([first, last]), 0, found.n - 1), dtype=np.int64)

    def _center(
        self, found: ColumnSummary, ends: Floats, brackets: Sequence[tuple[float, float]], reach: float
    ) -> tuple[float, tuple[float, float]]:
        """The provisional centre, and between what the final one will lie, all but surely."""
        if found.low == found.high:
            return found.low, (found.low, found.low)
        center = self.centering.provisional(found, *map(float, quantiles(found, [0.25, 0.5, 0.75])))
        if self.centering.levels and not self.centering.needs_totals:
            mine = [brackets[self.places[level]] for level in self.centering.levels]
            low, high = (float(np.mean([each[side] for each in mine])) for side in (0, 1))
        else:
            share = float(np.interp(center, found.points, ends / ends[-1]))
            ranks = np.array([share - reach, share + reach]) * ends[-1]
            low, high = found.points[np.clip(np.searchsorted(ends, ranks), 0, found.n - 1)].tolist()
        return center, (min(low, center), max(high, center))
