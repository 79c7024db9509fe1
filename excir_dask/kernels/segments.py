"""From a block of rows to a state per segment, while its columns pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from excir_dask.kernels.array_records import arrays_of
from excir_dask.kernels.observe import OutputSide, Tallies
from excir_dask.kernels.reference import BUCKETS, COARSE, Reference
from excir_dask.kernels.state import ColumnState, State
from excir_dask.kernels.tally import scratch

if TYPE_CHECKING:
    from excir_dask.kernels.segment_loops import Sides

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


class SegmentSide:
    """The outputs' half of every product over a block of rows, segment by segment.

    Parameters
    ----------
    side : OutputSide
        Of all rows.
    codes : int array of shape (rows,)
        The segment of each row.
    reference : Reference
        Of the outputs: all outputs of the first segment, then those of the next.
    segments : int
        How many there are; a block may have rows of few of them.
    """

    def __init__(self, side: OutputSide, codes: NDArray[np.int32], reference: Reference, segments: int):
        counts = np.bincount(codes, minlength=segments)
        self.side, self.reference, self.segments = side, reference, segments
        self.present: Rows = np.flatnonzero(counts)
        self.starts: Rows = np.concatenate(([0], np.cumsum(counts[self.present])))
        self.places: NDArray[np.uint32] = np.empty(0 if self.present.size <= 1 else codes.size, np.uint32)
        self.units: Rows = np.tile(side.units, (self.present.size, 1))
        if self.places.size:
            from excir_dask.kernels.segment_order import place_rows

            starts, begin = np.cumsum(counts) - counts, np.empty((segments, side.units.size), np.int64)
            place_rows(codes, starts, side.units, self.places, begin)
            self.units = begin[self.present]
        self.outputs: Floats = self.sorted(side.outputs)

    def sorted(self, x: NDArray[Any]) -> NDArray[Any]:
        """The same rows along the last axis, one segment after the other."""
        if not self.places.size:
            return x
        found = np.empty_like(x)
        for one, other in zip(np.atleast_2d(x), np.atleast_2d(found), strict=True):
            self.sort(one, other)
        return found

    def sort(self, x: NDArray[Any], found: NDArray[Any]) -> None:
        """Write the same rows, one segment after the other."""
        from excir_dask.kernels.segment_order import reorder

        reorder(x, self.places, found)

    @cached_property
    def sides(self) -> Sides:
        from excir_dask.kernels.segment_loops import Sides, output_sums

        count, sizes = len(self.outputs), np.diff(self.starts)
        places = self.present[:, None] * count + np.arange(count)
        center = self.reference.center[places]
        moves = self.outputs - np.repeat(np.where(center == 0.0, -0.0, center), sizes, axis=0).T  # as in observe
        weights = self.sorted(self.side.weights) if self.side.weights.size else self.side.weights
        if weights.size:
            moves *= weights
        coarse = self.sorted(self.side.coarse) if self.side.coarse.size else self.side.coarse
        near = self._near(self.reference.flip_edges[places])
        return Sides(
            self.starts, weights, self.units, self._flat(moves), self._flat(coarse), *near,
            output_sums(self.starts, moves, weights),
        )  # fmt: skip

    def alone(self) -> Sides:
        """The same rows, paired with nothing."""
        return self.sides._replace(
            moves=np.empty(0), coarse=np.empty(0, np.uint8), near_starts=np.zeros_like(self.starts),
            near_ends=np.zeros((self.present.size, 0), dtype=np.int64), near_rows=np.empty(0, np.uint32),
            near_cells=np.empty(0, np.uint8), sums=np.zeros((self.present.size, 0, 3)),
        )  # fmt: skip

    def _flat(self, values: NDArray[Any]) -> NDArray[Any]:
        """All outputs of the first segment, then those of the next."""
        if len(values) <= 1 or self.present.size <= 1:
            return values.ravel()
        return np.concatenate([values[:, a:b].ravel() for a, b in zip(self.starts[:-1], self.starts[1:], strict=True)])

    def _near(self, edges: Floats) -> tuple[Rows, Rows, NDArray[np.uint32], NDArray[np.uint8]]:
        """Rows around the outputs' centres, by segment and output; see ``Sides``."""
        from excir_dask.kernels.segment_order import near_rows

        rows, cells = np.empty(self.outputs.size + 1, np.uint32), np.empty(self.outputs.size, np.uint8)
        ends = np.empty((self.present.size, len(self.outputs)), np.int64)
        count = near_rows(self.outputs, self.starts, edges, rows, cells, ends)
        starts = np.concatenate(([0], ends[:, -1]))
        return starts, ends - starts[:-1, None], rows[:count].copy(), cells[:count].copy()


class SegmentTallies:
    """States of the segments of a block in the making.

    Parameters
    ----------
    side : SegmentSide
    reference : Reference
        All columns of the first segment, then those of the next; or (``shared``) columns that look alike in all.
    first, width : int
        Which of the columns pass.
    paired : bool
        Compare columns with the outputs.
    shared : bool
    """

    def __init__(
        self, side: SegmentSide, reference: Reference, first: int, width: int, paired: bool = True, shared: bool = False
    ):
        from excir_dask.kernels.segment_loops import Grids

        self.side, self.first, self.width = side, first, width
        self.stride = 0 if shared else reference.columns // side.segments
        self.outputs = len(side.outputs) if paired else 0
        self.found = Tallies(reference, side.side, self.outputs, side.present.size * width)
        arrays = arrays_of(reference)
        arrays["center"] = np.where(reference.center == 0.0, -0.0, reference.center)
        self.grids, buckets = Grids(**arrays), reference.slots.shape[1]
        self.memory = scratch(side.side.rows, self.outputs, buckets, COARSE, self.found.joint.size > 0)
        self.ordered = np.empty(self.side.places.size)
        self.passed = 0

    def watch(self, columns: Iterable[Floats]) -> Iterator[Floats]:
        """The same columns; each is added before it is passed on."""
        for x in columns:
            if self.side.places.size:
                self.side.sort(x, self.ordered)
            self.add(self.ordered if self.side.places.size else x)
            yield x

    def add(self, x: Floats) -> None:
        """Add the next column, one segment after the other."""
        from excir_dask.kernels.segment_loops import segments_pass

        sides = self.side.sides if self.outputs else self.side.alone()
        place, self.passed = self.passed, self.passed + 1
        if self.side.present.size:
            segments_pass(
                np.ascontiguousarray(x),
                self.side.present * self.stride + self.first + place,
                np.arange(self.side.present.size) * self.width + place,
                self.grids,
                sides,
                self.outputs,
                self.found.arrays(),
                self.memory,
            )

    def state(self) -> State:
        """Of the segments that have rows, one after the other."""
        columns, thin = self.found.columns(), BUCKETS // self.grids.slots.shape[1]
        if thin > 1:  # buckets are told as those of all rows
            first, last = columns.coarse_first, columns.coarse_last
            there = first <= last
            first[there], last[there] = first[there] * thin, last[there] * thin + thin - 1
        identity = f"{columns.reference}-{self.side.reference.id}"
        return State(columns, replace(self.found.pairs(), reference=identity))


def segment_outputs(side: SegmentSide) -> ColumnState:
    """What the outputs looked like in each segment that has rows."""
    found = SegmentTallies(side, side.reference, 0, len(side.outputs), paired=False)
    for y in side.outputs:
        found.add(y)
    return found.state().columns
