"""Segments in the scans: which there are, what a pilot says about each, and their part of the pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from excir_dask.errors import DataError
from excir_dask.kernels.categories import MOST_VALUES, CategoryCounts
from excir_dask.kernels.reference import Reference
from excir_dask.kernels.segment_references import PICKS, segment_references
from excir_dask.kernels.segment_state import some_segments
from excir_dask.lake.blocks import Block
from excir_dask.lake.segments import OTHER

Floats = NDArray[np.float64]

PILOT_VALUES = 2**24
"""values of the pilot's rows that are kept for the references of segments, per column block (128 MB)"""


@dataclass(frozen=True)
class SegmentNames:
    """The segments of a run."""

    VERSION: ClassVar[int] = 1

    names: tuple[str, ...]
    """those with most rows first; the last may be all others together"""

    @property
    def count(self) -> int:
        return len(self.names)

    def codes(self, block: Block) -> NDArray[np.int32]:
        """The segment of each row of a block."""
        assert block.segments is not None, "the layout has no segments"
        return self.places(block)[block.segments.codes]

    def places(self, block: Block) -> NDArray[np.int32]:
        """Which segment each value of a block's segments is; an unknown one is among the others."""
        assert block.segments is not None, "the layout has no segments"
        index = {name: i for i, name in enumerate(self.names)}
        rest = index.get(OTHER, -1)
        return np.array([index.get(value, rest) for value in block.segments.values], dtype=np.int32)


def choose_segments(by: Sequence[str], counts: CategoryCounts, most: int) -> tuple[SegmentNames, int]:
    """The segments with most rows, ties in the order of their names, and how many are among the others."""
    if counts.too_many:
        raise DataError(
            f"{_columns(by)} (by) has more than {MOST_VALUES:,} different values, too many to be segments; "
            "name a column with fewer of them"
        )
    order = np.argsort(-counts.rows, kind="stable")
    names = [counts.values[i] for i in order]
    if len(names) <= most:
        return SegmentNames(tuple(names)), 0
    return SegmentNames((*names[: most - 1], OTHER)), len(names) - most + 1


def _columns(by: Sequence[str]) -> str:
    return f"column '{by[0]}'" if len(by) == 1 else f"columns '{by[0]}' and '{by[1]}' together"


@dataclass(frozen=True)
class SegmentReferences:
    """What the pass sees the segments from: all columns of the first segment, then those of the next."""

    VERSION: ClassVar[int] = 1

    names: SegmentNames
    features: Reference
    outputs: Reference
    indicators: Reference
    """of the 0/1 features of categories; all segments share it"""

    @property
    def nbytes(self) -> int:
        return self.features.nbytes + self.outputs.nbytes + self.indicators.nbytes

    def of(self, where: NDArray[np.int64]) -> SegmentReferences:
        """Some of the segments."""
        count = self.names.count
        return SegmentReferences(
            SegmentNames(tuple(self.names.names[i] for i in where.tolist())),
            some_segments(self.features, where, count), some_segments(self.outputs, where, count), self.indicators,
        )  # fmt: skip


@dataclass(frozen=True)
class PilotRows:
    """Some of the rows of a pilot's slice as they are."""

    VERSION: ClassVar[int] = 2

    codes: Annotated[NDArray[np.int32], "rows"]
    """the segment of each"""
    weights: Annotated[Floats, "weights"]
    """empty for ones"""
    values: tuple[Floats, ...]
    """of each column"""


def pilot_reference(
    parts: Sequence[PilotRows], segments: int, base: Reference, centering: str, complete: bool, picks: int = PICKS
) -> Reference:
    """Frames of all segments from the rows of all slices; ``base`` is the reference of all rows."""
    from excir_dask.kernels.segment_order import place_rows, reorder

    codes = np.concatenate([part.codes for part in parts])
    counts = np.bincount(codes, minlength=segments)
    places, starts = np.empty(codes.size, np.uint32), np.concatenate(([0], np.cumsum(counts)))
    place_rows(codes, starts[:-1], np.array([0, codes.size]), places, np.empty((segments, 2), np.int64))
    ends = np.cumsum([part.codes.size for part in parts])
    where = np.split(places, ends[:-1])
    weights = np.concatenate([part.weights for part in parts])
    ordered = np.empty(weights.size)
    if weights.size:
        reorder(weights, places, ordered)

    def columns() -> Iterator[Floats]:
        for column in zip(*(part.values for part in parts), strict=True):
            found = np.empty(codes.size)
            for x, mine in zip(column, where, strict=True):
                reorder(x, mine, found)
            yield found

    given = ordered if weights.size else None
    return segment_references(columns(), given, starts, base, centering, complete, picks)


class PilotPicker:
    """Keeps rows of a block while its columns pass: all, or evenly spaced ones."""

    def __init__(self, block: Block, names: SegmentNames, limit: int):
        codes = names.codes(block)
        self.rows = slice(None, None, max(-(-codes.size // max(limit, 1)), 1))
        self.codes = codes[self.rows]
        self.weights = np.empty(0) if block.weights is None else block.weights[self.rows]
        self.picked: list[Floats] = []

    def watch(self, columns: Iterable[Floats]) -> Iterator[Floats]:
        for x in columns:
            self.picked.append(x[self.rows].copy())
            yield x

    def result(self) -> PilotRows:
        return PilotRows(self.codes, self.weights, tuple(self.picked))


def concatenate_pilot_rows(parts: Sequence[tuple[PilotRows, ...]]) -> tuple[PilotRows, ...]:
    """All columns of slices with the same rows."""
    return tuple(
        replace(first, values=tuple(x for each in same for x in each.values))
        for same in zip(*parts, strict=True)
        for first in same[:1]
    )
