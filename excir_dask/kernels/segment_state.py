"""States of segments side by side: all columns of the first segment, then those of the next.

One array per field for all segments: a state per segment would take a hundred times as long to merge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from excir_dask.kernels.array_records import arrays_of
from excir_dask.kernels.reference import BUCKETS
from excir_dask.kernels.state import ColumnState, State, merge_columns, merge_state

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Found = TypeVar("Found", bound=DataclassInstance)
else:
    Found = TypeVar("Found")

Rows = NDArray[np.int64]

_NOTHING = {"low": np.inf, "cell_low": np.inf, "high": -np.inf, "cell_high": -np.inf, "coarse_first": BUCKETS}
"""field -> what it holds where there are no rows; the others hold 0"""


@dataclass(frozen=True)
class SegmentColumns:
    """Some columns of the segments that have rows."""

    VERSION: ClassVar[int] = 1

    present: Annotated[Rows, "segments"]
    """these segments, ascending"""
    state: State


@dataclass(frozen=True)
class SegmentSpans:
    """The rows of the segments that have some."""

    VERSION: ClassVar[int] = 1

    present: Annotated[Rows, "segments"]
    """these segments, ascending"""
    counts: Annotated[Rows, "segments", "counts"]
    """how many rows each has, in the order of the fields of RowCounts"""
    units: Annotated[Rows, "segments"]
    """row groups with rows that count"""
    outputs: ColumnState
    indicators: State
    """of the 0/1 features of categories"""


def merge_segment_columns(parts: Sequence[SegmentColumns]) -> SegmentColumns:
    """The same columns over the rows of all parts."""
    present = _union(parts)
    return SegmentColumns(present, merge_state([_spread_state(part.state, part.present, present) for part in parts]))


def concatenate_segment_columns(parts: Sequence[SegmentColumns]) -> SegmentColumns:
    """Neighbouring columns over the same rows as one."""
    present = parts[0].present
    states = [part.state for part in parts]
    return SegmentColumns(present, State(
        joined([each.columns for each in states], present.size),
        joined([each.pairs for each in states], present.size, axis=1),
    ))  # fmt: skip


def merge_segment_spans(parts: Sequence[SegmentSpans]) -> SegmentSpans:
    """The rows of all parts."""
    present = _union(parts)
    counts, units = np.zeros((present.size, parts[0].counts.shape[1]), np.int64), np.zeros(present.size, np.int64)
    for part in parts:
        where = np.searchsorted(present, part.present)
        counts[where] += part.counts
        units[where] += part.units
    return SegmentSpans(
        present, counts, units,
        merge_columns([_spread(part.outputs, part.present, present) for part in parts]),
        merge_state([_spread_state(part.indicators, part.present, present) for part in parts]),
    )  # fmt: skip


def some_segments(record: Found, where: Rows, segments: int, axis: int = 0) -> Found:
    """All columns of some of the segments."""
    arrays: dict[str, Any] = {}
    for name, array in arrays_of(record).items():
        at = axis % array.ndim
        split = array.reshape(*array.shape[:at], segments, array.shape[at] // segments, *array.shape[at + 1 :])
        taken = split.take(where, axis=at)
        width = taken.shape[at] * taken.shape[at + 1]
        arrays[name] = taken.reshape(*array.shape[:at], width, *array.shape[at + 1 :])
    return replace(record, **arrays)


def joined(parts: Sequence[Found], segments: int, axis: int = 0) -> Found:
    """The columns of all parts as one, segment by segment."""
    arrays: dict[str, Any] = {}
    for name, first in arrays_of(parts[0]).items():
        at = axis % first.ndim
        shape = first.shape
        split = [
            each.reshape(*shape[:at], segments, each.shape[at] // max(segments, 1), *shape[at + 1 :])
            for each in (getattr(part, name) for part in parts)
        ]
        found = np.concatenate(split, axis=at + 1)
        arrays[name] = found.reshape(*shape[:at], segments * found.shape[at + 1], *shape[at + 1 :])
    return replace(parts[0], **arrays)


def _union(parts: Sequence[SegmentColumns] | Sequence[SegmentSpans]) -> Rows:
    first = parts[0].present
    if all(np.array_equal(first, part.present) for part in parts):
        return first
    return np.unique(np.concatenate([part.present for part in parts]))


def _spread_state(state: State, present: Rows, among: Rows) -> State:
    return State(_spread(state.columns, present, among), _spread(state.pairs, present, among, axis=1))


def _spread(record: Found, present: Rows, among: Rows, axis: int = 0) -> Found:
    """The same with columns without rows for segments that it lacks."""
    if present.size == among.size:
        return record
    where, arrays = np.searchsorted(among, present), dict[str, Any]()
    for name, array in arrays_of(record).items():
        width = array.shape[axis] // max(present.size, 1)
        shape = (*array.shape[:axis], among.size, width, *array.shape[axis + 1 :])
        found: NDArray[Any] = np.full(shape, _NOTHING.get(name, 0), dtype=array.dtype)
        found[(slice(None),) * axis + (where,)] = array.reshape(
            *array.shape[:axis], present.size, width, *array.shape[axis + 1 :]
        )
        arrays[name] = found.reshape(*array.shape[:axis], among.size * width, *array.shape[axis + 1 :])
    return replace(record, **arrays)
