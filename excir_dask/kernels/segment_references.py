"""References of segments: each segment has quantiles of its own, so each column has a frame per segment.

There are many of them, so they are made from the pilot's rows as they are, without digests, and
have fewer cells. Buckets and coarse cells are those of all rows: joint counts of segments can be compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from excir_dask.kernels.array_records import arrays_of, concatenated, replaced
from excir_dask.kernels.brackets import CERTAINTY, KNOWN_REACH, MOST_REACH, REACH
from excir_dask.kernels.centers import CENTERINGS
from excir_dask.kernels.reference import (
    BUCKETS,
    FEW_PARTS,
    FLIP_EDGES,
    PARTS,
    REGIONS,
    SPARE,
    THIN,
    ColumnFrame,
    Reference,
    odd_slots,
    stacked,
)
from excir_dask.kernels.segment_state import joined

if TYPE_CHECKING:
    from excir_dask.kernels.segment_frames import Rule

Floats = NDArray[np.float64]

PICKS = 48
"""values of a bracket that get a cell of their own; as many cells lie between them"""

OUTPUT_PICKS = 256
"""the same of an output: there are few outputs, and all scores rest on their centres"""

LEAST_ROWS = 8
"""rows of a pilot that say something about a segment"""

_SUPPORT = 64
"""rows that a segment counts as which the pilot has not seen: the rows of all segments say roughly what it is like"""


def segment_references(
    columns: Iterable[Floats],
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
    columns : iterable of float64 arrays, one per column of the base
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
    from excir_dask.kernels.segment_frames import Frames, find_centers, make_frames, sort_segments

    segments, width, thin = starts.size - 1, base.columns, THIN if picks == PICKS else 1
    rule = _rule(centering, complete, picks)
    most = SPARE + 2 * rule.levels.size * (picks + (picks // 2 if complete else 0) + 2)
    parts = FEW_PARTS if picks == PICKS else PARTS
    found = Frames(
        np.zeros((segments * width, BUCKETS // thin), np.uint8),
        np.full((segments * width, most), np.inf),
        np.zeros((segments * width, REGIONS, 2)),
        np.zeros((segments * width, REGIONS, parts + 1), np.uint16),
        np.full((segments * width, FLIP_EDGES), np.inf),
    )
    center, given = np.zeros((width, segments)), np.empty(0) if weights is None else weights
    for j, x in enumerate(columns):
        place = float(base.origin[j]), float(base.scale[j]) / thin
        column = sort_segments(x, given, starts)
        known = (column.counts >= LEAST_ROWS) | (complete & (column.counts > 0))
        where, scaled = np.arange(segments) * width + j, np.ones(segments)
        find_centers(column, known, rule, center[j], scaled)
        make_frames(column, scaled, np.where(known, column.counts, 0.0), center[j], place, rule, found, where)
        if known.all():
            continue
        every = sort_segments(x, given, np.array([0, x.size]))
        if not every.counts[0]:
            every = sort_segments(base.center[j : j + 1], np.empty(0), np.array([0, 1]))
        guessed, scaled = np.zeros(1), np.ones(1)
        find_centers(every, np.ones(1, dtype=bool), rule, guessed, scaled)
        one = where[np.flatnonzero(~known)]
        support = np.minimum(every.counts, _SUPPORT).astype(np.float64)
        make_frames(every, scaled, support, guessed, place, rule, found, one[:1])
        center[j, ~known] = guessed[0]
        for array in found:
            array[one[1:]] = array[one[0]]
    rows = np.tile(np.arange(width), segments)
    return _identified(Reference(
        "", center.T.ravel(), base.origin[rows], base.scale[rows] / thin, found.slots, base.coarse[rows, ::thin],
        found.edges, found.steps, found.first_edge, found.flip_edges,
    ))  # fmt: skip


def _identified(reference: Reference) -> Reference:
    """The same with an id that follows from its edges: all else does, but the buckets, which are those of all rows."""
    found = hashlib.sha256()
    for array in (reference.center, reference.edges, reference.flip_edges):
        found.update(np.ascontiguousarray(array).data)
    return replace(reference, id=found.hexdigest()[:16])


def _rule(centering: str, complete: bool, picks: int) -> Rule:
    from excir_dask.kernels.segment_frames import Rule

    rests_on, trimmed = CENTERINGS[centering].levels, CENTERINGS[centering].needs_totals
    levels = sorted({0.25, 0.75, *rests_on})
    central = np.array([not trimmed and level in rests_on for level in levels])
    return Rule(np.array(levels), central, trimmed, complete, picks, (REACH, KNOWN_REACH, CERTAINTY, MOST_REACH))


def concatenate_segment_references(parts: Sequence[Reference], segments: int) -> Reference:
    """References of neighbouring columns as one."""
    return _identified(joined(_alike(parts), segments))


def replaced_segments(reference: Reference, where: NDArray[np.bool_], others: Reference) -> Reference:
    """A reference with some of its columns taken from another one, in order."""
    first, second = _alike([reference, others])
    return _identified(replaced(first, where, second))


def stacked_segments(parts: Sequence[Reference]) -> Reference:
    """References of different segments as one."""
    return _identified(concatenated(_alike(parts)))


def same_frames(one: Reference, other: Reference) -> bool:
    """Whether two references are the same but for room for more edges."""
    first, second = (arrays_of(each) for each in _alike([one, other]))
    return all(np.array_equal(first[name], second[name]) for name in first)


def appended_segment(reference: Reference, all_rows: Reference) -> Reference:
    """One segment more, which is seen as all rows are; it has every second edge, or fewer, of theirs."""
    buckets, most = reference.slots.shape[1], reference.edges.shape[1] - SPARE
    frames = []
    for j in range(all_rows.columns):
        thin, slots = all_rows.slots.shape[1] // buckets, all_rows.slots[j].astype(np.int64)
        odd = [np.flatnonzero(slots == slot) // thin for slot in np.unique(slots) if slot % 2]
        edges, flips = (each[j][np.isfinite(each[j])] for each in (all_rows.edges, all_rows.flip_edges))
        edges = edges[np.unique(np.linspace(0, edges.size - 1, min(edges.size, most)).astype(int))]
        frames.append(
            ColumnFrame(
                float(all_rows.center[j]), float(all_rows.origin[j]), float(all_rows.scale[j]) / thin,
                odd_slots(((int(run[0]), int(run[-1])) for run in odd), buckets), all_rows.coarse[j, ::thin], edges,
                flips,
            )
        )  # fmt: skip
    return stacked_segments([reference, stacked(frames, reference.first_edge.shape[2] - 1)])


def _alike(parts: Sequence[Reference]) -> list[Reference]:
    """The same with equally many edges."""
    width = max(part.edges.shape[1] for part in parts)
    return [
        replace(part, edges=np.pad(part.edges, ((0, 0), (0, width - part.edges.shape[1])), constant_values=np.inf))
        for part in parts
    ]


def segment_reference(references: Reference, segment: int, segments: int) -> Reference:
    """The part of one segment as a reference of its own, with as many buckets and parts as those of all rows have."""
    width = references.columns // segments
    found = references.subset(slice(segment * width, (segment + 1) * width))
    thin = BUCKETS // found.slots.shape[1]
    return stacked([
        ColumnFrame(
            float(found.center[j]), float(found.origin[j]), float(found.scale[j]) * thin,
            found.slots[j].repeat(thin), found.coarse[j].repeat(thin),
            found.edges[j][np.isfinite(found.edges[j])], found.flip_edges[j][np.isfinite(found.flip_edges[j])],
        )
        for j in range(width)
    ])  # fmt: skip
