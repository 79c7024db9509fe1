"""The only reader of bytes on a worker: from a slice to blocks of float64 columns.

Columns are decoded a megabyte or more at a time and handed on one by one, so a slice never lies in memory as a whole.
Reading a column at a time through a small buffer is also the fastest way: 4.6 ns a value, where whole row groups take 8
to 11 because their memory is new each time.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyarrow import fs

from excir_dask.errors import DataError
from excir_dask.lake.pieces import OpenFiles
from excir_dask.lake.plan import Slice
from excir_dask.lake.sample import Sample

Floats = NDArray[np.float64]

_READ_BYTES = 2**20
"""decoded bytes that one read of one file should bring at least, from a local disk"""

_MOST_READ_BYTES = 16 * 2**20
"""decoded bytes that are held at once, if a single column is not larger; object stores are asked for that much"""


@dataclass(frozen=True)
class Layout:
    """What every slice has in common; travels once, not with every slice."""

    filesystem: fs.FileSystem | None
    """None for frames"""
    features: tuple[str, ...]
    outputs: tuple[str, ...]
    weight: str | None
    sample: Sample
    open_files: OpenFiles = field(default_factory=OpenFiles, compare=False, repr=False)

    @property
    def place(self) -> fs.FileSystem:
        assert self.filesystem is not None, "a frame is not read from files"
        return self.filesystem


@dataclass(frozen=True)
class RowCounts:
    """What became of the rows."""

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
class Block:
    """Rows that count, with their outputs; the feature columns follow one by one."""

    counts: RowCounts
    outputs: Floats
    """(outputs, rows)"""
    weights: Floats | None
    """(rows,)"""
    columns: Iterator[Floats]
    """arrays of shape (rows,), one a feature of the slice, in order"""


def read_slice(
    piece: Slice, layout: Layout, frame: Any = None, wanted: NDArray[np.bool_] | None = None
) -> Iterator[Block]:
    """Blocks of a slice: one, or several where the slice is streamed in batches of rows.

    Each block's columns must be used before the next block is asked for. ``wanted`` says which features of the layout
    to read; all by default.
    """
    names = [
        n for i, n in enumerate(layout.features) if piece.start <= i < piece.stop and (wanted is None or wanted[i])
    ]
    try:
        if frame is not None:
            yield _block_of_frame(piece, layout, names, frame)
        elif piece.batch_rows is None:
            with ExitStack() as stack:
                yield _block_of_pieces(piece, layout, names, stack)
        else:
            yield from _stream(piece, layout, names)
    finally:
        release_memory()


def release_memory() -> None:
    """Give freed memory back to the system: a dask worker that seems full is paused, and may never resume."""
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    if not sys.platform.startswith("linux"):
        return None
    return getattr(ctypes.CDLL(ctypes.util.find_library("c")), "malloc_trim", None)


def _block_of_pieces(piece: Slice, layout: Layout, features: Sequence[str], stack: ExitStack) -> Block:
    readers = [stack.enter_context(layout.open_files.borrow(part, layout.place)) for part in piece.pieces]

    def read(names: Sequence[str]) -> list[Floats]:
        if len(readers) == 1:
            return readers[0].read(names)
        filled = np.empty((len(names), piece.rows))
        at = 0
        for reader in readers:
            for i, array in enumerate(reader.read(names)):
                filled[i, at : at + array.size] = array
            at += reader.rows
        return list(filled)

    keep = None
    if not layout.sample.everything:
        draws = [
            layout.sample.keep(part.relative, group, rows)
            for part in piece.pieces
            for group, rows in zip(part.row_groups, part.rows, strict=True)
        ]
        keep = np.concatenate(draws)
    least = _READ_BYTES if isinstance(layout.filesystem, fs.LocalFileSystem) else _MOST_READ_BYTES
    wanted = -(-least // (8 * min(reader.rows for reader in readers)))
    at_once = max(min(wanted, _MOST_READ_BYTES // (8 * piece.rows)), 1)

    def columns() -> Iterator[Floats]:
        for first in range(0, len(features), at_once):
            arrays = read(features[first : first + at_once])
            arrays.reverse()
            while arrays:
                yield arrays.pop()

    parts = [(part.relative, sum(part.rows)) for part in piece.pieces]
    return _block(layout, piece.rows, keep, read(_fixed(layout)), columns(), parts)


def _stream(piece: Slice, layout: Layout, features: Sequence[str]) -> Iterator[Block]:
    """A row group whose columns are too large to decode whole: batches of rows, all columns of the slice together."""
    (part,) = piece.pieces
    (group,) = part.row_groups
    names = list(dict.fromkeys([*_fixed(layout), *features]))
    with layout.open_files.borrow(part, layout.place) as reader:
        start = 0
        for table in reader.batches(names, piece.batch_rows or part.rows[0]):
            rows = table[0].size
            arrays = dict(zip(names, table, strict=True))
            keep = None if layout.sample.everything else layout.sample.keep(part.relative, group, rows, start)
            fixed = [arrays[name] for name in _fixed(layout)]
            yield _block(layout, rows, keep, fixed, (arrays[name] for name in features), [(part.relative, rows)])
            start += rows


def _block_of_frame(piece: Slice, layout: Layout, features: Sequence[str], frame: Any) -> Block:
    rows = len(frame)

    def read(names: Sequence[str]) -> list[Floats]:
        return [_numbers(frame[name], name, piece.part) for name in names]

    keep = None if layout.sample.everything else layout.sample.keep(piece.part, 0, rows, piece.first_row)
    columns = (read([name])[0] for name in features)
    return _block(layout, rows, keep, read(_fixed(layout)), columns, [(piece.part, rows)])


def _numbers(series: Any, name: str, part: str) -> Floats:
    try:
        found: Floats = series.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise DataError(f"column '{name}' of {part} does not hold numbers, as its type said: {error}") from error
    return found


def _fixed(layout: Layout) -> list[str]:
    return [*layout.outputs, *([layout.weight] if layout.weight else [])]


def _block(
    layout: Layout,
    rows: int,
    keep: NDArray[np.bool_] | None,
    fixed: list[Floats],
    columns: Iterator[Floats],
    parts: Sequence[tuple[str, int]],
) -> Block:
    """Leave out the rows that do not count: outside the sample, without an output, without a weight."""
    outputs = fixed[: len(layout.outputs)]
    weights = fixed[-1] if layout.weight else None
    sampled = np.ones(rows, dtype=bool) if keep is None else keep
    complete = sampled.copy()
    for y in outputs:
        complete &= np.isfinite(y)
    used = complete
    if weights is not None:
        negative = complete & (weights < 0)
        if negative.any():
            where = parts[int(np.searchsorted(np.cumsum([n for _, n in parts]), negative.argmax(), side="right"))][0]
            raise DataError(f"column '{layout.weight}' (weights) has negative values, for instance in {where}")
        used = complete & np.isfinite(weights) & (weights > 0)
    counts = RowCounts(
        read=rows,
        sampled=int(np.count_nonzero(sampled)),
        without_output=int(np.count_nonzero(sampled) - np.count_nonzero(complete)),
        without_weight=int(np.count_nonzero(complete) - np.count_nonzero(used)),
    )
    if counts.used == rows:
        return Block(counts, outputs[0][None] if len(outputs) == 1 else np.stack(outputs), weights, columns)
    return Block(
        counts,
        np.stack([y[used] for y in outputs]),
        None if weights is None else weights[used],
        (x[used] for x in columns),
    )
