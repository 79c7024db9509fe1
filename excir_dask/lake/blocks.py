"""Blocks: rows in memory together, without those outside the sample or without an output or weight."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pyarrow import fs

from excir_dask.errors import DataError
from excir_dask.lake.arrays import CategoryCodes
from excir_dask.lake.filter import RowFilter
from excir_dask.lake.open_files import OpenFiles
from excir_dask.lake.sample import Sample
from excir_dask.lake.tables.table import DeletedRows

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

LEAST_WEIGHT = 2.0**-500
"""3e-151: squares of smaller weights are no numbers, so such rows count as rows without a weight"""


@dataclass(frozen=True)
class Layout:
    """What all slices share; sent to a worker once, not with each slice."""

    filesystem: fs.FileSystem | None
    """None for frames"""
    features: tuple[str, ...]
    outputs: tuple[str, ...]
    """columns of the outputs; empty if a model computes them"""
    weight: str | None
    sample: Sample
    categoricals: tuple[str, ...] = ()
    """columns whose categories are counted"""
    model_columns: tuple[str, ...] = ()
    """inputs of the model, in its order"""
    where: RowFilter | None = None
    """rows that do not match do not count"""
    by: tuple[str, ...] = ()
    """columns whose values are the segments"""
    open_files: OpenFiles = field(default_factory=OpenFiles, compare=False, repr=False)

    @property
    def file_store(self) -> fs.FileSystem:
        """The filesystem of a lake of files."""
        assert self.filesystem is not None, "a frame is not read from files"
        return self.filesystem

    def only_categories(self, columns: Sequence[str]) -> Layout:
        """A layout that reads every row of some categorical columns that matches, and nothing else."""
        files = OpenFiles(categoricals=columns)
        return Layout(self.filesystem, (), (), None, Sample(), tuple(columns), where=self.where, open_files=files)

    @property
    def fixed(self) -> list[str]:
        """Columns that every slice reads: outputs and weight."""
        return [*self.outputs, *([self.weight] if self.weight else [])]


@dataclass(frozen=True)
class RowCounts:
    """How many rows were read and used."""

    VERSION: ClassVar[int] = 2

    read: int = 0
    """rows in the slices"""
    filtered_out: int = 0
    """of those, dropped because they do not match the row filter"""
    sampled: int = 0
    """of the rest, in the sample"""
    without_output: int = 0
    """of those, dropped because an output is missing"""
    without_weight: int = 0
    """of the rest, dropped because the weight is missing or zero"""

    @property
    def matching(self) -> int:
        """Rows in the slices that match the row filter."""
        return self.read - self.filtered_out

    @property
    def used(self) -> int:
        return self.sampled - self.without_output - self.without_weight

    @property
    def in_order(self) -> tuple[int, ...]:
        """All fields, for arrays of counts."""
        return (self.read, self.filtered_out, self.sampled, self.without_output, self.without_weight)

    def __add__(self, other: RowCounts) -> RowCounts:
        return RowCounts(
            self.read + other.read,
            self.filtered_out + other.filtered_out,
            self.sampled + other.sampled,
            self.without_output + other.without_output,
            self.without_weight + other.without_weight,
        )


@dataclass(frozen=True)
class SegmentRows:
    """The same for each of some segments, which have no rows that do not match."""

    read: NDArray[np.int64]
    sampled: NDArray[np.int64]
    without_output: NDArray[np.int64]
    without_weight: NDArray[np.int64]

    def of(self, where: NDArray[np.bool_]) -> RowCounts:
        """Rows of some of them together."""
        return RowCounts(**{each.name: int(getattr(self, each.name)[where].sum()) for each in fields(self)})


@dataclass(frozen=True)
class SegmentCodes:
    """Which segment each row of a block is in."""

    codes: NDArray[np.int32]
    """(rows,) index into ``values``"""
    values: tuple[str, ...]
    """names of segments"""
    rows: Callable[[], SegmentRows]
    """how many rows each has"""


@dataclass(frozen=True)
class RowRange:
    """Consecutive rows of a row group. Their random draws depend on this alone."""

    part: str
    """path of the file below the lake's root"""
    row_group: int
    start: int
    """first row, in the row group"""
    rows: int
    deleted: DeletedRows | None = None
    """deleted rows of the row group"""

    def live_mask(self) -> Mask | None:
        """Rows that are not deleted; None if all are live."""
        return None if self.deleted is None else ~self.deleted.mask(self.start, self.rows)


@dataclass(frozen=True)
class ModelOutputs:
    """A model's outputs for the sampled rows of a span that match the row filter."""

    VERSION: ClassVar[int] = 1

    names: Annotated[tuple[str, ...], "outputs"]
    """of the outputs"""
    values: Annotated[NDArray[np.floating], "outputs", "rows"]
    """in the model's own type: float32 takes half the memory"""
    fraction: float = 1.0
    """of the sample"""

    def __sizeof__(self) -> int:
        return int(self.values.nbytes) + object.__sizeof__(self)  # tells dask what to spill

    def expand(self, mask: Mask | None, rows: int, start: int = 0) -> list[Floats]:
        """Each output for ``rows`` rows, with NaN in rows outside the sample.

        ``start`` is the number of sampled rows of the span before these.
        """
        if mask is None:
            return list(self.values[:, start : start + rows].astype(np.float64))
        expanded = np.full((len(self.names), rows), np.nan)
        expanded[:, mask] = self.values[:, start : start + int(np.count_nonzero(mask))]
        return list(expanded)

    def merged(self, more: ModelOutputs, new: Mask | None, both: Mask | None) -> ModelOutputs:
        """With the outputs of more rows of the span; ``new`` masks those rows, ``both`` those and the rows here."""
        if not self.names:
            return more
        if not more.names:
            more = replace(more, names=self.names, values=np.empty((len(self.names), 0)))
        assert new is not None, "a larger sample has rows that this one lacks"
        is_new = new if both is None else new[both]
        values = np.empty((len(self.names), is_new.size), dtype=np.result_type(self.values, more.values))
        values[:, is_new] = more.values
        values[:, ~is_new] = self.values
        return ModelOutputs(self.names, values, more.fraction)


@dataclass(frozen=True)
class Block:
    """The rows that are used, with their outputs; feature columns follow one by one."""

    counts: RowCounts
    outputs: Floats
    """(outputs, rows)"""
    weights: Floats | None
    """(rows,)"""
    columns: Iterator[Floats]
    """an array of shape (rows,) per feature of the slice, in order"""
    categories: Iterator[CategoryCodes]
    """one per categorical column, in order"""
    draws: Callable[[], NDArray[np.uint64]]
    """(rows,) the random draw of each row"""
    edges: NDArray[np.int64]
    """index of the first row of each row group, and the number of rows"""
    segments: SegmentCodes | None = None
    """which segment each row is in; None if nobody asked"""


def sample_mask(layout: Layout, ranges: Sequence[RowRange], matching: Mask | None = None) -> Mask | None:
    """Rows in the sample that match the row filter, without deleted ones; None if that is all rows."""
    if not layout.sample.draws_rows and all(each.deleted is None for each in ranges):
        return matching
    parts = []
    for r in ranges:
        drawn, live = layout.sample.mask(r.part, r.row_group, r.rows, r.start), r.live_mask()
        parts.append(drawn if live is None else drawn & live)
    mask = np.concatenate(parts)
    return mask if matching is None else mask & matching


def make_block(
    layout: Layout,
    ranges: Sequence[RowRange],
    mask: Mask | None,
    *,
    outputs: list[Floats],
    weights: Floats | None,
    columns: Iterator[Floats],
    categories: Iterator[CategoryCodes],
    draws: NDArray[np.uint64] | None = None,
    matching: Mask | None = None,
    segments: CategoryCodes | None = None,
) -> Block:
    """Drop the rows that are outside the sample, do not match the row filter, or lack an output or a weight.

    Parameters
    ----------
    layout : Layout
    ranges : sequence of RowRange
        Where the rows come from.
    mask : (rows,) bool, optional
        Rows in the sample that match; None for all.
    outputs : list of (rows,) arrays
    weights : (rows,) array, optional
    columns : iterator of (rows,) arrays
    categories : iterator of CategoryCodes
    draws : (rows,) array, optional
        Random draws of the rows; computed from the ranges by default.
    matching : (rows,) bool, optional
        Rows that match, whether they are in the sample or not; None for all.
    segments : CategoryCodes, optional
        Which segment each row is in.
    """
    rows = sum(each.rows for each in ranges)
    sampled = np.ones(rows, dtype=bool) if mask is None else mask
    complete = sampled.copy()
    for y in outputs:
        complete &= np.isfinite(y)
    used = complete
    if weights is not None:
        negative = complete & (weights < 0)
        if negative.any():
            ends = np.cumsum([each.rows for each in ranges])
            part = ranges[int(np.searchsorted(ends, negative.argmax(), side="right"))].part
            raise DataError(
                f"column '{layout.weight}' (weights) has negative values, for instance "
                f"{weights[negative.argmax()]:g} in {part}; weights must be 0 or more"
            )
        used = complete & np.isfinite(weights) & (weights >= LEAST_WEIGHT)
    read, filtered_out = _live_rows(ranges, matching)
    counts = RowCounts(
        read=read,
        filtered_out=filtered_out,
        sampled=int(np.count_nonzero(sampled)),
        without_output=int(np.count_nonzero(sampled) - np.count_nonzero(complete)),
        without_weight=int(np.count_nonzero(complete) - np.count_nonzero(used)),
    )

    edges = np.cumsum([0, *(each.rows for each in ranges)])
    if counts.used < rows:
        edges = np.cumsum(np.concatenate(([0], used)))[edges]

    def used_draws() -> NDArray[np.uint64]:
        if draws is not None:
            return draws[used]
        return np.concatenate([layout.sample.draws(r.part, r.row_group, r.rows, r.start) for r in ranges])[used]

    def segment_rows() -> SegmentRows:
        assert segments is not None, "there are no segments"
        codes, size = segments.codes, len(segments.values)
        live = np.concatenate([np.ones(r.rows, dtype=bool) if (m := r.live_mask()) is None else m for r in ranges])
        if matching is not None:
            live &= matching
        read, of_sample, of_complete, of_used = (
            np.bincount(codes[mask], minlength=size) for mask in (live, sampled, complete, used)
        )
        return SegmentRows(read, of_sample, of_sample - of_complete, of_complete - of_used)

    if counts.used == rows:
        by = None if segments is None else SegmentCodes(segments.codes, segments.values, segment_rows)
        stacked = outputs[0][None] if len(outputs) == 1 else np.reshape(outputs, (len(outputs), rows))
        return Block(counts, stacked, weights, columns, categories, used_draws, edges, by)
    indices = np.flatnonzero(used)  # take() is ten times as fast with indices as with a mask
    by = None if segments is None else SegmentCodes(segments.codes.take(indices), segments.values, segment_rows)
    return Block(
        counts,
        np.reshape([y.take(indices) for y in outputs], (len(outputs), counts.used)),
        None if weights is None else weights.take(indices),
        (x.take(indices) for x in columns),
        (CategoryCodes(each.codes.take(indices), each.values) for each in categories),
        used_draws,
        edges,
        by,
    )


def _live_rows(ranges: Sequence[RowRange], matching: Mask | None) -> tuple[int, int]:
    """Rows that are not deleted, and how many of those do not match."""
    read = matches = start = 0
    for each in ranges:
        live = each.live_mask()
        read += each.rows if live is None else int(np.count_nonzero(live))
        if matching is not None:
            part = matching[start : start + each.rows]
            matches += int(np.count_nonzero(part if live is None else part & live))
        start += each.rows
    return read, 0 if matching is None else read - matches
