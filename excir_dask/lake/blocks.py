"""A block: rows that lie in memory together, without those that do not count."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pyarrow import fs

from excir_dask.errors import DataError
from excir_dask.lake.arrays import Coded
from excir_dask.lake.parquet_reader import OpenFiles
from excir_dask.lake.sample import Sample
from excir_dask.lake.tables.log import Deleted

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Layout:
    """What every slice has in common; travels once, not with every slice."""

    filesystem: fs.FileSystem | None
    """None for frames"""
    features: tuple[str, ...]
    outputs: tuple[str, ...]
    """columns of the outputs; none where a model makes them"""
    weight: str | None
    sample: Sample
    categoricals: tuple[str, ...] = ()
    """columns whose categories are counted"""
    model_columns: tuple[str, ...] = ()
    """what the model reads, in its order"""
    open_files: OpenFiles = field(default_factory=OpenFiles, compare=False, repr=False)

    @property
    def place(self) -> fs.FileSystem:
        assert self.filesystem is not None, "a frame is not read from files"
        return self.filesystem

    def only_categories(self, columns: Sequence[str]) -> Layout:
        """Every row of some columns of categories, and nothing else."""
        files = OpenFiles(categoricals=columns)
        return Layout(self.filesystem, (), (), None, Sample(), tuple(columns), (), files)

    @property
    def fixed(self) -> list[str]:
        """Columns that every slice reads."""
        return [*self.outputs, *([self.weight] if self.weight else [])]


@dataclass(frozen=True)
class RowCounts:
    """What became of the rows."""

    VERSION: ClassVar[int] = 1

    read: int = 0
    """rows in the slices"""
    sampled: int = 0
    """of those, in the sample"""
    without_output: int = 0
    """of those, dropped because an output is missing"""
    without_weight: int = 0
    """of the rest, dropped because the weight is missing or zero"""

    @property
    def used(self) -> int:
        return self.sampled - self.without_output - self.without_weight

    def __add__(self, other: RowCounts) -> RowCounts:
        return RowCounts(
            self.read + other.read,
            self.sampled + other.sampled,
            self.without_output + other.without_output,
            self.without_weight + other.without_weight,
        )


@dataclass(frozen=True)
class RowRange:
    """Where neighbouring rows come from: what their draws depend on."""

    part: str
    """path of the file below the lake's root"""
    row_group: int
    start: int
    """first row, in the row group"""
    rows: int
    deleted: Deleted | None = None
    """rows of the row group that do not count"""

    def live_mask(self) -> Mask | None:
        """Which of the rows count; None: all."""
        return None if self.deleted is None else ~self.deleted.mask(self.start, self.rows)


@dataclass(frozen=True)
class ModelOutputs:
    """What a model said of the rows of a span that are in the sample."""

    VERSION: ClassVar[int] = 1

    names: Annotated[tuple[str, ...], "outputs"]
    """of its outputs"""
    values: Annotated[NDArray[np.floating], "outputs", "rows"]
    """as the model gave them: float32 takes half of the memory"""
    fraction: float = 1.0
    """share of the rows that the sample takes"""

    def __sizeof__(self) -> int:
        return int(self.values.nbytes) + object.__sizeof__(self)  # dask decides by this what to spill

    def spread(self, keep: Mask | None, rows: int, start: int = 0) -> list[Floats]:
        """Each output over the rows from ``start`` on of the span, NaN in rows outside the sample."""
        if keep is None:
            return list(self.values[:, start : start + rows].astype(np.float64))
        found = np.full((len(self.names), rows), np.nan)
        found[:, keep] = self.values[:, start : start + int(np.count_nonzero(keep))]
        return list(found)

    def merged(self, more: ModelOutputs, new: Mask | None, both: Mask | None) -> ModelOutputs:
        """With further rows of the span in their places; ``new`` are those, ``both`` those and the ones here."""
        if not self.names:
            return more
        if not more.names:
            more = replace(more, names=self.names, values=np.empty((len(self.names), 0)))
        assert new is not None, "a larger sample has rows that this one lacks"
        fresh = new if both is None else new[both]
        values = np.empty((len(self.names), fresh.size), dtype=np.result_type(self.values, more.values))
        values[:, fresh] = more.values
        values[:, ~fresh] = self.values
        return ModelOutputs(self.names, values, more.fraction)


@dataclass(frozen=True)
class Block:
    """Rows that count, with their outputs; the feature columns follow one by one."""

    counts: RowCounts
    outputs: Floats
    """(outputs, rows)"""
    weights: Floats | None
    """(rows,)"""
    columns: Iterator[Floats]
    """arrays of shape (rows,), one a feature of the slice, in order"""
    categories: Iterator[Coded]
    """one a column of categories, in order"""
    draws: Callable[[], NDArray[np.uint64]]
    """(rows,) the draw of each row"""
    edges: NDArray[np.int64]
    """where the rows of each row group begin, and the last one ends"""


def sample_mask(layout: Layout, places: Sequence[RowRange]) -> Mask | None:
    """Which rows are in the sample; None: all. Rows that their table has deleted never are."""
    if layout.sample.everything and all(place.deleted is None for place in places):
        return None
    parts = []
    for p in places:
        part, live = layout.sample.mask(p.part, p.row_group, p.rows, p.start), p.live_mask()
        parts.append(part if live is None else part & live)
    return np.concatenate(parts)


def make_block(
    layout: Layout,
    places: Sequence[RowRange],
    keep: Mask | None,
    outputs: list[Floats],
    weights: Floats | None,
    columns: Iterator[Floats],
    categories: Iterator[Coded],
    draws: NDArray[np.uint64] | None = None,
) -> Block:
    """Leave out the rows that do not count: outside the sample, without an output, without a weight.

    ``draws`` are those of the rows; by default they follow from the places.
    """
    rows = sum(place.rows for place in places)
    sampled = np.ones(rows, dtype=bool) if keep is None else keep
    complete = sampled.copy()
    for y in outputs:
        complete &= np.isfinite(y)
    used = complete
    if weights is not None:
        negative = complete & (weights < 0)
        if negative.any():
            ends = np.cumsum([place.rows for place in places])
            where = places[int(np.searchsorted(ends, negative.argmax(), side="right"))].part
            raise DataError(f"column '{layout.weight}' (weights) has negative values, for instance in {where}")
        used = complete & np.isfinite(weights) & (weights > 0)
    counts = RowCounts(
        read=rows - sum(int(np.count_nonzero(~live)) for p in places if (live := p.live_mask()) is not None),
        sampled=int(np.count_nonzero(sampled)),
        without_output=int(np.count_nonzero(sampled) - np.count_nonzero(complete)),
        without_weight=int(np.count_nonzero(complete) - np.count_nonzero(used)),
    )

    edges = np.cumsum([0, *(place.rows for place in places)])
    if counts.used < rows:
        edges = np.cumsum(np.concatenate(([0], used)))[edges]

    def draws_used() -> NDArray[np.uint64]:
        if draws is not None:
            return draws[used]
        found = np.concatenate([layout.sample.draws(p.part, p.row_group, p.rows, p.start) for p in places])
        return found[used]

    if counts.used == rows:
        stacked = outputs[0][None] if len(outputs) == 1 else np.reshape(outputs, (len(outputs), rows))
        return Block(counts, stacked, weights, columns, categories, draws_used, edges)
    rows_used = np.flatnonzero(used)  # taking places is ten times as fast as a mask
    return Block(
        counts,
        np.reshape([y.take(rows_used) for y in outputs], (len(outputs), counts.used)),
        None if weights is None else weights.take(rows_used),
        (x.take(rows_used) for x in columns),
        (Coded(coded.codes.take(rows_used), coded.values) for coded in categories),
        draws_used,
        edges,
    )
