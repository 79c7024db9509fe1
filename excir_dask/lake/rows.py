"""Whole rows for a model: all its columns of the rows that are in the sample, some rows at a time."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import NDArray

from excir_dask.lake.blocks import Floats, Layout, sample_mask
from excir_dask.lake.parquet_reader import FragmentReader
from excir_dask.lake.plan import Slice
from excir_dask.lake.read import numbers, read_batches, read_together, release_memory, row_ranges

BATCH_BYTES = 8 * 2**20
"""decoded bytes of a batch of rows; larger ones are not scored faster"""

TOGETHER = 16
"""columns that are put into a matrix at once: their float32 fill a cache line of each row"""

COLUMN_ROWS = 2**17
"""rows of a column that are decoded at once on the way to a temporary file"""


def read_rows(piece: Slice, layout: Layout, wants: str, budget: int, frame: Any = None) -> Iterator[Any]:
    """Rows of a slice's span that are in the sample, in order.

    A matrix that fits into the budget is filled a few columns at a time, which is the fastest way to decode. A larger
    row group goes through a temporary file, column by column in and rows by rows out: reading all columns side by side
    would take 2 to 3 MB a column. DataFrames, whose types are the lake's, are read so.

    Parameters
    ----------
    piece : Slice
    layout : Layout
    wants : {"float32", "float64", "frame"}
        Matrices of shape (rows, columns), or pandas DataFrames of the types that the lake has.
    budget : int
        Decoded bytes that may be held at once.
    frame : DataFrame, optional
        In place of files.
    """
    rows = len(frame) if frame is not None else piece.rows
    width = max(len(layout.model_columns), 1)
    batch = max(min(budget // 4, BATCH_BYTES) // (8 * width), 1)
    keep = sample_mask(layout, row_ranges(piece, rows))
    try:
        if frame is not None:
            yield from _of_frame(piece, layout, wants, frame, keep)
        elif wants == "frame":
            yield from _frames(piece, layout, batch, keep)
        elif rows * (np.dtype(wants).itemsize * width + 8 * min(TOGETHER, width)) > budget:
            yield from _turned(
                piece, layout, np.dtype(wants), max(min(budget // 4, BATCH_BYTES) // (8 * width), 1), keep
            )
        else:
            yield _whole(piece, layout, np.dtype(wants), keep)
    finally:
        release_memory()


def _whole(piece: Slice, layout: Layout, dtype: np.dtype[Any], keep: NDArray[np.bool_] | None) -> NDArray[Any]:
    names = layout.model_columns
    places = None if keep is None else np.flatnonzero(keep)
    found = np.empty((piece.rows if places is None else places.size, len(names)), dtype)
    with ExitStack() as stack, np.errstate(over="ignore"):
        readers = [stack.enter_context(layout.open_files.borrow(part, layout.place)) for part in piece.fragments]
        filled = 0
        for some in read_batches(names, layout, TOGETHER):
            columns = read_together(readers, some)
            for start in range(0, len(columns), TOGETHER):
                block = columns[start : start + TOGETHER]
                taken = block if places is None else [x.take(places) for x in block]
                np.stack(taken, axis=1, out=found[:, filled : filled + len(block)], casting="same_kind")
                filled += len(block)
    return found


def _turned(
    piece: Slice, layout: Layout, dtype: np.dtype[Any], rows_at_once: int, keep: NDArray[np.bool_] | None
) -> Iterator[NDArray[Any]]:
    """Matrices of some rows each, through a temporary file that holds one column behind the other."""
    names, at = layout.model_columns, 0
    for part in piece.fragments:
        rows = sum(part.rows)
        with tempfile.TemporaryFile() as file:
            with layout.open_files.borrow(part, layout.place) as reader, np.errstate(over="ignore"):
                for some in read_batches(names, layout, 1):
                    for x in _columns(reader, some):
                        x.astype(dtype).tofile(file)
            for start in range(0, rows, rows_at_once):
                stop = min(start + rows_at_once, rows)
                here = np.empty((len(names), stop - start), dtype)
                for j in range(len(names)):
                    file.seek((j * rows + start) * dtype.itemsize)
                    here[j] = np.fromfile(file, dtype, stop - start)
                matrix = np.ascontiguousarray(here.T)
                yield matrix if keep is None else matrix[keep[at + start : at + stop]]
        at += rows


def _columns(reader: FragmentReader, names: Sequence[str]) -> Iterator[Floats]:
    """Columns one behind the other, some rows at a time; what belongs to one vector is decoded together."""
    if len(names) > 1:
        yield from reader.read(names)
    else:
        for _, (x,) in reader.batches(names, COLUMN_ROWS):
            yield x


def _frames(piece: Slice, layout: Layout, rows_at_once: int, keep: NDArray[np.bool_] | None) -> Iterator[Any]:
    at = 0
    for part in piece.fragments:
        with layout.open_files.stream(part, layout.place) as reader:
            for frame in reader.frames(layout.model_columns, rows_at_once):
                here = None if keep is None else keep[at : at + len(frame)]
                at += len(frame)
                yield frame if here is None else frame[here]


def _of_frame(piece: Slice, layout: Layout, wants: str, frame: Any, keep: NDArray[np.bool_] | None) -> Iterator[Any]:
    frame = frame[list(layout.model_columns)] if keep is None else frame.loc[keep, list(layout.model_columns)]
    if wants == "frame":
        yield frame
    else:
        columns = [numbers(frame[name], name, piece.part) for name in layout.model_columns]
        with np.errstate(over="ignore"):
            yield np.stack(columns, axis=1).astype(wants, order="C")
