"""References of segments: each segment has quantiles of its own, so each column has a frame per segment.

There are many of them, so they are made from the pilot's rows as they are, without digests, and
have fewer cells. Buckets and coarse cells are those of all rows: joint counts of segments can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from excir_dask.kernels.array_records import arrays_of
from excir_dask.kernels.brackets import CERTAINTY, KNOWN_REACH, MOST_REACH, REACH
from excir_dask.kernels.centers import CENTERINGS
from excir_dask.kernels.reference import BUCKETS, FLIP_EDGES, PARTS, REGIONS, SPARE, THIN, Reference, identified
from excir_dask.kernels.summaries import ColumnSummary, rank_scale, window_mean

if TYPE_CHECKING:
    from excir_dask.kernels.segment_frames import Rule, Sorted

Floats = NDArray[np.float64]

PICKS = 64
"""values of a bracket that get a cell of their own; as many cells lie between them"""

OUTPUT_PICKS = 256
"""the same of an output: there are few outputs, and all scores rest on their centres"""

LEAST_ROWS = 8
"""rows of a pilot that say something about a segment"""

_QUARTILES = (0.25, 0.5, 0.75)

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
    from excir_dask.kernels.segment_frames import Frames, make_frames, sort_segments

    segments, width = starts.size - 1, len(columns)
    rule = _rule(centering, complete, picks, THIN if picks == PICKS else 1)
    most = SPARE + 2 * rule.levels.size * (picks + (picks // 2 if complete else 0) + 2)
    found = Frames(
        np.zeros((segments * width, BUCKETS), np.uint8),
        np.full((segments * width, most), np.inf),
        np.zeros((segments * width, REGIONS, 2)),
        np.zeros((segments * width, REGIONS, PARTS + 1), np.uint16),
        np.full((segments * width, FLIP_EDGES), np.inf),
    )
    center, given = np.empty((segments, width)), np.empty(0) if weights is None else weights
    for j, x in enumerate(columns):
        place = float(base.origin[j]), float(base.scale[j])
        column = sort_segments(x, given, starts)
        known = (column.counts >= LEAST_ROWS) | (complete & (column.counts > 0))
        where = np.arange(segments) * width + j
        center[:, j], scaled = _centers(column, known, centering)
        support = np.where(known, column.counts, 0.0)
        make_frames(column, scaled, support, np.ascontiguousarray(center[:, j]), place, rule, found, where)
        if known.all():
            continue
        every = sort_segments(x, given, np.array([0, x.size]))
        if not every.counts[0]:
            every = sort_segments(base.center[j : j + 1], np.empty(0), np.array([0, 1]))
        guessed, scaled = _centers(every, np.ones(1, dtype=bool), centering)
        one = where[np.flatnonzero(~known)]
        support = np.minimum(every.counts, _SUPPORT).astype(np.float64)
        make_frames(every, scaled, support, guessed, place, rule, found, one[:1])
        center[~known, j] = guessed[0]
        for array in found:
            array[one[1:]] = array[one[0]]
    rows = np.tile(np.arange(width), segments)
    coarse = np.repeat(base.coarse[:, :: rule.thin], rule.thin, axis=1)
    reference = Reference(
        "", center.ravel(), base.origin[rows], base.scale[rows], found.slots, coarse[rows], found.edges, found.steps,
        found.first_edge, found.flip_edges,
    )  # fmt: skip
    return identified(reference)


def _rule(centering: str, complete: bool, picks: int, thin: int) -> Rule:
    from excir_dask.kernels.segment_frames import Rule

    rests_on = CENTERINGS[centering].levels
    levels = sorted({0.25, 0.75, *rests_on})
    by_levels = not CENTERINGS[centering].needs_totals
    central = np.array([by_levels and level in rests_on for level in levels])
    return Rule(np.array(levels), central, complete, picks, thin, (REACH, KNOWN_REACH, CERTAINTY, MOST_REACH))


def _centers(column: Sorted, known: NDArray[np.bool_], centering: str) -> tuple[Floats, Floats]:
    """Provisional centres of the segments, and what turns their weights into ranks."""
    centers, scaled = np.zeros(known.size), np.ones(known.size)
    for s in map(int, np.flatnonzero(known)):
        n, rows = int(column.counts[s]), slice(column.starts[s], column.starts[s] + column.counts[s])
        v, ends = column.values[rows], column.ends[rows]
        weight, whole = float(ends[-1]), bool(column.whole[s])
        scaled[s] = rank_scale(n, weight, whole)
        if v[0] == v[-1]:
            centers[s] = v[0]
            continue
        summary = ColumnSummary(
            n, 0, weight, whole, float(v[0]), float(v[-1]), float(column.totals[s]), True, v, np.diff(ends, prepend=0.0)
        )
        quartiles = (window_mean(v, ends * scaled[s], 0.0, q * max(weight * scaled[s] - 1.0, 0.0)) for q in _QUARTILES)
        centers[s] = CENTERINGS[centering].provisional(summary, *quartiles)
    return centers, scaled


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
