"""The frame of reference of a pass: what is fixed about each column before its rows are read.

A pilot, which may have read a small part of the lake, gives each column a provisional centre, a bracket around each
quantile in which the exact one is looked for, and a few cells around the centre. None of it needs to be right: the pass
counts what lies where, so that it is known afterwards whether a quantile was inside its bracket, and where.

A column's values are first put into equal buckets, by arithmetic alone. Runs of buckets are slots: odd slots are the
ones that hold a bracket, and their rows are looked at more closely (2 to 7% of the rows).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from excir_dask.kernels.array_records import Where, arrays_of, concatenated, replaced, subset

Floats = NDArray[np.float64]

BUCKETS = 2048
"""equal buckets over a column's range: their counts stay in the first-level cache"""

THIN = 8
"""buckets of all rows that are one in references of segments: loops go through all buckets of every segment, and 2,048
take as long as 2,000 rows"""

COARSE = 16
"""coarse cells of a column, about equally full: what joint counts are made of"""

REGIONS = 4
"""odd slots of a column at most: around two or three quantiles and the centre"""

PARTS = 512
"""equal parts of an odd slot, about as many as it has edges: a value has to be compared with few of them"""

FEW_PARTS = 128
"""the same in references of segments, which have fewer edges"""

FLIP_EDGES = 32
"""edges of cells around a centre; rows between the provisional and the final centre change their sign"""

SPARE = 4
"""infinite edges behind the last one at least: loops compare a value with so many at once"""


@dataclass(frozen=True)
class Reference:
    """Of some columns; arrays have a row per column."""

    VERSION: ClassVar[int] = 1

    id: str
    """the same for equal references; a part of a reference has that of the whole"""
    center: Annotated[Floats, "columns"]
    """provisional centres"""
    origin: Annotated[Floats, "columns"]
    """where the first bucket begins"""
    scale: Annotated[Floats, "columns"]
    """buckets per unit"""
    slots: Annotated[NDArray[np.uint8], "columns", "buckets"]
    """slot of each bucket, ascending; odd ones are looked at more closely"""
    coarse: Annotated[NDArray[np.uint8], "columns", "buckets"]
    """coarse cell of each bucket, ascending"""
    edges: Annotated[Floats, "columns", "edges"]
    """of fine cells, ascending; inf where there are fewer"""
    steps: Annotated[Floats, "columns", "regions", "two"]
    """where the parts of each odd slot begin, and parts per unit"""
    first_edge: Annotated[NDArray[np.uint16], "columns", "regions", "parts"]
    """edges that lie below, for each part of each odd slot and behind the last"""
    flip_edges: Annotated[Floats, "columns", "flips"]
    """of the cells around the centre, ascending; inf where there are fewer"""

    @property
    def columns(self) -> int:
        return self.center.size

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in arrays_of(self).values())

    def subset(self, where: Where) -> Reference:
        """Some of the columns."""
        return subset(self, where)


def concatenate_references(parts: Sequence[Reference]) -> Reference:
    """References of neighbouring column blocks as one."""
    width = max(part.edges.shape[1] for part in parts)
    return identified(concatenated([_with_edges(part, width) for part in parts]))


def replaced_references(reference: Reference, where: Where, others: Reference) -> Reference:
    """A reference with some of its columns taken from another one, in order."""
    width = max(reference.edges.shape[1], others.edges.shape[1])
    return identified(replaced(_with_edges(reference, width), where, _with_edges(others, width)))


def _with_edges(reference: Reference, width: int) -> Reference:
    more = ((0, 0), (0, width - reference.edges.shape[1]))
    return replace(reference, edges=np.pad(reference.edges, more, constant_values=np.inf))


def identified(reference: Reference) -> Reference:
    """The same with the id that its arrays give it."""
    found = hashlib.sha256()
    for array in arrays_of(reference).values():
        found.update(np.ascontiguousarray(array).tobytes())
    return replace(reference, id=found.hexdigest()[:16])


def stacked(columns: Sequence[ColumnFrame], parts: int = PARTS) -> Reference:
    """A reference of all columns."""
    count, width = len(columns), SPARE + max((column.edges.size for column in columns), default=0)
    buckets = columns[0].slots.size if columns else BUCKETS
    return identified(
        Reference(
            "",
            center=np.array([column.center for column in columns], dtype=np.float64),
            origin=np.array([column.origin for column in columns], dtype=np.float64),
            scale=np.array([column.scale for column in columns], dtype=np.float64),
            slots=np.array([column.slots for column in columns], dtype=np.uint8).reshape(count, buckets),
            coarse=np.array([column.coarse for column in columns], dtype=np.uint8).reshape(count, buckets),
            edges=np.array([_padded(column.edges, width) for column in columns]).reshape(count, width),
            steps=np.array([column.steps(parts) for column in columns]).reshape(count, REGIONS, 2),
            first_edge=np.array([column.first_edge(parts) for column in columns], dtype=np.uint16).reshape(
                count, REGIONS, parts + 1
            ),
            flip_edges=np.array([_padded(column.flip_edges, FLIP_EDGES) for column in columns]).reshape(
                count, FLIP_EDGES
            ),
        )
    )


@dataclass(frozen=True)
class ColumnFrame:
    """The part of a reference that is of one column."""

    center: float
    origin: float
    scale: float
    slots: NDArray[np.uint8]
    coarse: NDArray[np.uint8]
    edges: Floats
    flip_edges: Floats

    def steps(self, parts: int) -> Floats:
        """Where the parts of each odd slot begin, and parts per unit."""
        starts = np.searchsorted(self.slots, np.arange(1, 2 * REGIONS + 1))
        counts = np.diff(np.append(starts, self.slots.size))[::2]
        with np.errstate(over="ignore"):
            scale = np.minimum(self.scale * parts / np.maximum(counts, 1), np.finfo(float).max)
        return np.stack([self.origin + starts[::2] / self.scale, scale], axis=1)

    def first_edge(self, parts: int) -> NDArray[np.int64]:
        """Edges that lie below, for each part of each odd slot and behind the last."""
        slots = self.slots[places(self.edges, self.origin, self.scale, self.slots.size)].astype(np.int64)
        odd = slots % 2 == 1
        regions = slots[odd] // 2
        origin, scale = self.steps(parts)[regions].T
        inside = np.clip((self.edges[odd] - origin) * scale, 0.0, parts - 1.0).astype(np.int64)
        found = np.zeros((REGIONS, parts + 1), dtype=np.int64)
        np.cumsum(
            np.bincount(regions * parts + inside, minlength=REGIONS * parts).reshape(REGIONS, parts),
            axis=1,
            out=found[:, 1:],
        )
        return found + np.searchsorted(slots, 2 * np.arange(REGIONS) + 1)[:, None]


def places(values: Floats, origin: float, scale: float, count: int) -> NDArray[np.int64]:
    """Which of so many equal parts each value lies in, as the compiled loops compute it."""
    with np.errstate(over="ignore"):  # what is too far away for a float lies in the last part
        return np.clip((values - origin) * scale, 0.0, count - 1.0).astype(np.int64)


def slots_of(
    brackets: Iterable[tuple[float, float]], origin: float, scale: float, buckets: int = BUCKETS
) -> NDArray[np.uint8]:
    """Slots of all buckets; those that hold a bracket are odd."""
    return odd_slots(
        ((bucket(low, origin, scale, buckets), bucket(high, origin, scale, buckets)) for low, high in brackets), buckets
    )


def odd_slots(runs: Iterable[tuple[int, int]], buckets: int) -> NDArray[np.uint8]:
    """Slots of all buckets; those of the runs, first to last, are odd."""
    found = np.zeros(buckets, dtype=np.uint8)
    for number, (first, last) in enumerate(_joined(runs)):
        found[first : last + 1] = 2 * number + 1
        found[last + 1 :] = 2 * number + 2
    return found


def bucket(value: float, origin: float, scale: float, buckets: int = BUCKETS) -> int:
    """The bucket of a value, as the compiled loops compute it."""
    return int(min(max((value - origin) * scale, 0.0), buckets - 1.0))


def _joined(runs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Runs of buckets in order, neighbours and overlaps joined."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(runs):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return found


def _padded(edges: Floats, size: int) -> Floats:
    return np.pad(edges, (0, size - edges.size), constant_values=np.inf)
