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
from dataclasses import replace
from functools import cache
from itertools import groupby, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyarrow import fs

from excir_dask.errors import DataError
from excir_dask.lake.arrays import Coded
from excir_dask.lake.blocks import Block, Floats, Layout, ModelOutputs, RowRange, make_block, sample_mask
from excir_dask.lake.cache import CachedRows
from excir_dask.lake.parquet_reader import FragmentReader
from excir_dask.lake.plan import Slice

_READ_BYTES = 2**20
"""decoded bytes that one read of one file should bring at least, from a local disk"""

_MOST_READ_BYTES = 16 * 2**20
"""decoded bytes that are held at once, if a single column is not larger; object stores are asked for that much"""


def read_slice(
    piece: Slice,
    layout: Layout,
    frame: Any = None,
    wanted: NDArray[np.bool_] | None = None,
    scored: ModelOutputs | None = None,
) -> Iterator[Block]:
    """Blocks of a slice: one, or several where the slice is streamed in batches of rows.

    Each block's columns must be used before the next block is asked for, and its categories after its columns.
    ``wanted`` says which features of the layout to read; all by default. ``scored`` are the outputs where a model makes
    them.
    """
    names = [
        n for i, n in enumerate(layout.features) if piece.start <= i < piece.stop and (wanted is None or wanted[i])
    ]
    try:
        if isinstance(frame, CachedRows):
            yield frame.block(piece, layout, wanted, scored)
        elif frame is not None:
            yield _block_of_frame(piece, layout, names, frame, scored)
        elif piece.batch_rows is None:
            with ExitStack() as stack:
                yield _block_of_fragments(piece, layout, names, stack, scored)
        else:
            yield from _stream(piece, layout, names, scored)
    finally:
        release_memory()


def cache_slice(piece: Slice, layout: Layout) -> CachedRows:
    """Read what a slice has of the rows in the layout's sample."""
    features = (*layout.fixed, *layout.features[piece.start : piece.stop])
    # rows without an output are held as well: a smaller sample counts its own
    plain = replace(layout, features=features, outputs=(), weight=None)
    for block in read_slice(replace(piece, start=0, stop=len(features)), plain):
        columns = tuple(block.columns)
        held = CachedRows(
            columns[: len(layout.fixed)],
            columns[len(layout.fixed) :],
            tuple(block.categories) if piece.lead else (),
            block.draws(),
            tuple(
                RowRange(place.part, place.row_group, 0, rows)
                for place, rows in zip(row_ranges(piece, piece.rows), np.diff(block.edges).tolist(), strict=True)
            ),
            block.counts.read,
        )
    return held


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


def row_ranges(piece: Slice, rows: int) -> list[RowRange]:
    """Where the rows of a slice come from; ``rows`` is how many a frame has."""
    if not piece.fragments:
        return [RowRange(piece.part, 0, piece.first_row, rows)]
    return [
        RowRange(part.relative, group, 0, count, deleted)
        for part in piece.fragments
        for group, count, deleted in zip(part.row_groups, part.rows, part.deleted or repeat(None), strict=False)
    ]


def read_together(readers: Sequence[FragmentReader], names: Sequence[str]) -> list[Floats]:
    """Columns of several files one behind the other."""
    if len(readers) == 1:
        return readers[0].read(names)
    filled = np.empty((len(names), sum(reader.rows for reader in readers)))
    at = 0
    for reader in readers:
        for i, array in enumerate(reader.read(names)):
            filled[i, at : at + array.size] = array
        at += reader.rows
    return list(filled)


def numbers(series: Any, name: str, part: str) -> Floats:
    """A frame's column as float64."""
    try:
        found: Floats = series.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise DataError(f"column '{name}' of {part} does not hold numbers, as its type said: {error}") from error
    return found


def columns_at_once(layout: Layout, readers: Sequence[FragmentReader]) -> int:
    """Columns that one read should bring."""
    least = _READ_BYTES if isinstance(layout.filesystem, fs.LocalFileSystem) else _MOST_READ_BYTES
    wanted = -(-least // (8 * min(reader.rows for reader in readers)))
    return max(min(wanted, _MOST_READ_BYTES // (8 * sum(reader.rows for reader in readers))), 1)


def read_batches(features: Sequence[str], layout: Layout, most: int) -> Iterator[list[str]]:
    """Features to read together: a few columns, or what a slice has of one vector, which is decoded as a whole."""
    for vector, names in groupby(features, layout.open_files.vector_of):
        run = list(names)
        size = most if vector is None else len(run)
        for first in range(0, len(run), size):
            yield run[first : first + size]


def _block_of_fragments(
    piece: Slice, layout: Layout, features: Sequence[str], stack: ExitStack, scored: ModelOutputs | None
) -> Block:
    readers = [stack.enter_context(layout.open_files.borrow(part, layout.place)) for part in piece.fragments]
    at_once = columns_at_once(layout, readers)

    def columns() -> Iterator[Floats]:
        for names in read_batches(features, layout, at_once):
            arrays = read_together(readers, names)
            arrays.reverse()
            while arrays:
                yield arrays.pop()

    categories = (_join([reader.codes(name) for reader in readers]) for name in layout.categoricals)
    places = row_ranges(piece, piece.rows)
    return _block(layout, places, read_together(readers, layout.fixed), columns(), categories, scored)


def _stream(piece: Slice, layout: Layout, features: Sequence[str], scored: ModelOutputs | None) -> Iterator[Block]:
    """A row group whose columns are too large to decode whole: batches of rows, all columns of the slice together."""
    (part,) = piece.fragments
    (group,) = part.row_groups
    batch_rows = piece.batch_rows or part.rows[0]
    names = list(dict.fromkeys([*layout.fixed, *features]))
    with ExitStack() as stack:
        reader = stack.enter_context(layout.open_files.borrow(part, layout.place))
        codes = []
        if piece.lead and layout.categoricals:
            coding = stack.enter_context(layout.open_files.borrow(part, layout.place))
            codes = [coding.code_batches(name, batch_rows) for name in layout.categoricals]
        start = sampled = 0
        for rows, table in reader.batches(names, batch_rows):
            arrays = dict(zip(names, table, strict=True))
            places = [RowRange(part.relative, group, start, rows, part.deleted[0] if part.deleted else None)]
            columns = (arrays[name] for name in features)
            fixed = [arrays[name] for name in layout.fixed]
            block = _block(layout, places, fixed, columns, (next(batches) for batches in codes), scored, sampled)
            yield block
            start += rows
            sampled += block.counts.sampled


def _block_of_frame(
    piece: Slice, layout: Layout, features: Sequence[str], frame: Any, scored: ModelOutputs | None
) -> Block:
    columns = (numbers(frame[name], name, piece.part) for name in features)
    fixed = [numbers(frame[name], name, piece.part) for name in layout.fixed]
    categories = (_codes_of_series(frame[name]) for name in layout.categoricals)
    return _block(layout, row_ranges(piece, len(frame)), fixed, columns, categories, scored)


def _block(
    layout: Layout,
    places: Sequence[RowRange],
    fixed: list[Floats],
    columns: Iterator[Floats],
    categories: Iterator[Coded],
    scored: ModelOutputs | None,
    start: int = 0,
) -> Block:
    keep = sample_mask(layout, places)
    rows = sum(place.rows for place in places)
    outputs = fixed[: len(layout.outputs)] if scored is None else scored.spread(keep, rows, start)
    weights = fixed[-1] if layout.weight else None
    return make_block(layout, places, keep, outputs, weights, columns, categories)


def _join(parts: Sequence[Coded]) -> Coded:
    """Categories of several files one behind the other."""
    if len(parts) == 1:
        return parts[0]
    values = {value: i for i, value in enumerate(dict.fromkeys(v for part in parts for v in part.values))}
    codes = [np.array([*(values[v] for v in part.values), -1], dtype=np.int32)[part.codes] for part in parts]
    return Coded(np.concatenate(codes), tuple(values))


def _codes_of_series(series: Any) -> Coded:
    codes, values = series.factorize(use_na_sentinel=True)
    return Coded(codes.astype(np.int32), tuple(str(value) for value in values))
