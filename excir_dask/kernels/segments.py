"""From a block of rows to a state per segment, while its columns pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from excir_dask.kernels.array_records import arrays_of, subset
from excir_dask.kernels.observe import OutputSide, Tallies
from excir_dask.kernels.reference import COARSE, Reference
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

    def __init__(self, side: OutputSide, codes: NDArray[np.integer[Any]], reference: Reference, segments: int):
        counts = np.bincount(codes, minlength=segments)
        self.side, self.reference, self.segments = side, reference, segments
        self.present: Rows = np.flatnonzero(counts)
        self.starts: Rows = np.concatenate(([0], np.cumsum(counts[self.present])))
        # 16 bits are sorted by counting, which is eight times as fast
        self.order = None if self.present.size <= 1 else np.argsort(codes.astype(np.uint16), kind="stable")
        self.outputs: Floats = self.sorted(side.outputs)

    def sorted(self, x: NDArray[Any]) -> NDArray[Any]:
        """The same rows, one segment after the other."""
        return x if self.order is None else x.take(self.order, axis=-1)

    @cached_property
    def sides(self) -> Sides:
        from excir_dask.kernels.segment_loops import Sides

        count, sizes = len(self.outputs), np.diff(self.starts)
        places = self.present[:, None] * count + np.arange(count)
        center = self.reference.center[places]
        moves = self.outputs - np.repeat(np.where(center == 0.0, -0.0, center), sizes, axis=0).T  # as in observe
        weights = self.sorted(self.side.weights) if self.side.weights.size else self.side.weights
        if weights.size:
            moves *= weights
        coarse = self.sorted(self.side.coarse) if self.side.coarse.size else self.side.coarse
        near = self._near(self.reference.flip_edges[places], sizes)
        return Sides(self.starts, weights, self._units(), self._flat(moves), self._flat(coarse), *near)

    def alone(self) -> Sides:
        """The same rows, paired with nothing."""
        return self.sides._replace(
            moves=np.empty(0), coarse=np.empty(0, np.uint8), near_starts=np.zeros_like(self.starts),
            near_ends=np.zeros((self.present.size, 0), dtype=np.int64), near_rows=np.empty(0, np.uint32),
            near_cells=np.empty(0, np.uint8),
        )  # fmt: skip

    def _units(self) -> Rows:
        """Where the units of all rows begin in each segment."""
        if self.order is None:
            return np.tile(self.side.units, (self.present.size, 1))
        rows = (self.order[a:b] for a, b in zip(self.starts[:-1], self.starts[1:], strict=True))
        return np.array([np.searchsorted(mine, self.side.units) for mine in rows])

    def _flat(self, values: NDArray[Any]) -> NDArray[Any]:
        """All outputs of the first segment, then those of the next."""
        if len(values) <= 1 or self.present.size <= 1:
            return values.ravel()
        return np.concatenate([values[:, a:b].ravel() for a, b in zip(self.starts[:-1], self.starts[1:], strict=True)])

    def _near(self, edges: Floats, sizes: Rows) -> tuple[Rows, Rows, NDArray[np.uint32], NDArray[np.uint8]]:
        """Rows around the outputs' centres, by segment and output; see ``Sides``."""
        count = len(self.outputs)
        owners = np.repeat(np.arange(sizes.size), sizes)
        low, high = edges[..., 0], np.where(np.isfinite(edges), edges, -np.inf).max(axis=-1)
        keys, rows, cells = [], [], []
        for k, y in enumerate(self.outputs):
            near = np.flatnonzero((y >= low[:, k][owners]) & (y < high[:, k][owners]))
            mine = owners[near]
            keys.append(mine * count + k)
            rows.append(near - self.starts[mine])
            cells.append((edges[mine, k] <= y[near, None]).sum(axis=1))
        key = np.concatenate([*keys, np.empty(0, np.int64)])
        order = np.argsort(key, kind="stable")
        ends = np.cumsum(np.bincount(key, minlength=sizes.size * count)).reshape(sizes.size, count)
        starts = np.concatenate(([0], ends[:, -1]))
        found = [np.concatenate(each)[order] for each in (rows, cells)]
        return starts, ends - starts[:-1, None], found[0].astype(np.uint32), found[1].astype(np.uint8)


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
        arrays = _thinned(reference)
        arrays["center"] = np.where(reference.center == 0.0, -0.0, reference.center)
        self.grids, self.thin = Grids(**arrays), reference.slots.shape[1] // arrays["slots"].shape[1]
        buckets, joint = arrays["slots"].shape[1], self.found.joint.size > 0
        self.memory = scratch(side.side.rows, self.outputs, buckets, COARSE, joint)
        self.passed = 0

    def watch(self, columns: Iterable[Floats]) -> Iterator[Floats]:
        """The same columns; each is added before it is passed on."""
        for x in columns:
            self.add(self.side.sorted(x))
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

    def states(self) -> tuple[State | None, ...]:
        """Of each segment; None where it has no rows."""
        columns = self.found.columns()
        if self.thin > 1:  # buckets are told as those of the reference
            first, last = columns.coarse_first, columns.coarse_last
            there = first <= last
            first[there], last[there] = first[there] * self.thin, last[there] * self.thin + self.thin - 1
        return self._by_segment(State(columns, self.found.pairs()))

    def _by_segment(self, state: State) -> tuple[State | None, ...]:
        found: list[State | None] = [None] * self.side.segments
        for i, segment in enumerate(self.side.present.tolist()):
            mine = slice(i * self.width, (i + 1) * self.width)
            found[segment] = State(subset(state.columns, mine), subset(state.pairs, mine, axis=1))
        return tuple(found)


def _thinned(reference: Reference) -> dict[str, NDArray[Any]]:
    """The same grids with an eighth of the buckets, where neighbours share slots and coarse cells.

    The loops go through all buckets of every segment, which takes as long as 2,000 rows do.
    """
    arrays, thin = arrays_of(reference), reference.thin
    if thin == 1:
        return arrays
    few = {name: np.ascontiguousarray(arrays[name][:, ::thin]) for name in ("slots", "coarse")}
    return {**arrays, **few, "scale": arrays["scale"] / thin}


def segment_outputs(side: SegmentSide) -> tuple[ColumnState | None, ...]:
    """What the outputs looked like in each segment; None where it has no rows."""
    count = len(side.outputs)
    found = SegmentTallies(side, side.reference, 0, count, paired=False)
    for y in side.outputs:
        found.add(y)
    return tuple(None if state is None else state.columns for state in found.states())
