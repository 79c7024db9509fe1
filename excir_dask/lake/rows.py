"""Read whole rows for a model: all its inputs, for the rows in the sample."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import NDArray

from excir_dask.lake.blocks import Floats, Layout, Mask, sample_mask
from excir_dask.lake.parquet_reader import FragmentReader
from excir_dask.lake.plan import Slice
from excir_dask.lake.read import column_batches, read_columns, release_memory, row_ranges, series_to_float64

BATCH_BYTES = 8 * 2**20
"""decoded bytes per batch of rows; larger batches are not scored faster"""

MATRIX_COLUMNS = 16
"""columns written to a matrix at once: as float32 they fill a cache line of each row"""

COLUMN_ROWS = 2**17
"""rows of a column decoded at once on the way to a temporary file"""


def read_rows(
    slice_: Slice, layout: Layout, input_type: str, budget: int, frame: Any = None, matching: Mask | None = None
) -> Iterator[Any]:
    """The sampled rows of a slice's span, in order, in batches.

    A matrix that fits into the budget is filled a few columns at a time, which is the fastest way to decode. A larger
    row group goes through a temporary file, written by columns and read by rows: decoding all columns in parallel
    takes 2 to 3 MB per column, and is done only for DataFrames, which keep the types of the lake.

    Parameters
    ----------
    slice_ : Slice
    layout : Layout
    input_type : {"float32", "float64", "frame"}
        Matrices of shape (rows, columns), or pandas DataFrames with the types of the lake.
    budget : int
        Decoded bytes to hold at once.
    frame : DataFrame, optional
        Read in place of files.
    matching : (rows,) bool, optional
        Rows that match the row filter; all by default.
    """
    rows = len(frame) if frame is not None else slice_.rows
    width = max(len(layout.model_columns), 1)
    batch = max(min(budget // 4, BATCH_BYTES) // (8 * width), 1)
    mask = sample_mask(layout, row_ranges(slice_, rows), matching)
    try:
        if matching is not None and not matching.any():
            return
        if frame is not None:
            yield _from_frame(slice_, layout, input_type, frame, mask)
        elif input_type == "frame":
            yield from _frames(slice_, layout, batch, mask)
        elif rows * (np.dtype(input_type).itemsize * width + 8 * min(MATRIX_COLUMNS, width)) > budget:
            yield from _transposed(slice_, layout, np.dtype(input_type), batch, mask)
        else:
            yield _matrix(slice_, layout, np.dtype(input_type), mask)
    finally:
        release_memory()


def _matrix(slice_: Slice, layout: Layout, dtype: np.dtype[Any], mask: Mask | None) -> NDArray[Any]:
    names = layout.model_columns
    indices = None if mask is None else np.flatnonzero(mask)
    matrix = np.empty((slice_.rows if indices is None else indices.size, len(names)), dtype)
    with ExitStack() as stack, np.errstate(over="ignore"):
        readers = [stack.enter_context(layout.open_files.borrow(each, layout.file_store)) for each in slice_.fragments]
        filled = 0
        for some in column_batches(names, layout, MATRIX_COLUMNS):
            columns = read_columns(readers, some)
            for start in range(0, len(columns), MATRIX_COLUMNS):
                block = columns[start : start + MATRIX_COLUMNS]
                taken = block if indices is None else [x.take(indices) for x in block]
                np.stack(taken, axis=1, out=matrix[:, filled : filled + len(block)], casting="same_kind")
                filled += len(block)
    return matrix


def _transposed(
    slice_: Slice, layout: Layout, dtype: np.dtype[Any], batch_rows: int, mask: Mask | None
) -> Iterator[NDArray[Any]]:
    """Matrices of ``batch_rows`` rows, through a temporary file that holds one column after another."""
    names, first = layout.model_columns, 0
    for fragment in slice_.fragments:
        rows = sum(fragment.rows)
        with tempfile.TemporaryFile() as file:
            with layout.open_files.borrow(fragment, layout.file_store) as reader, np.errstate(over="ignore"):
                for some in column_batches(names, layout, 1):
                    for x in _columns(reader, some):
                        x.astype(dtype).tofile(file)
            for start in range(0, rows, batch_rows):
                stop = min(start + batch_rows, rows)
                columns = np.empty((len(names), stop - start), dtype)
                for j in range(len(names)):
                    file.seek((j * rows + start) * dtype.itemsize)
                    columns[j] = np.fromfile(file, dtype, stop - start)
                matrix = np.ascontiguousarray(columns.T)
                yield matrix if mask is None else matrix[mask[first + start : first + stop]]
        first += rows


def _columns(reader: FragmentReader, names: Sequence[str]) -> Iterator[Floats]:
    """The elements of a vector, decoded together, or a single column in batches of rows."""
    if len(names) > 1:
        yield from reader.read(names)
    else:
        for _, (x,) in reader.batches(names, COLUMN_ROWS):
            yield x


def _frames(slice_: Slice, layout: Layout, batch_rows: int, mask: Mask | None) -> Iterator[Any]:
    start = 0
    for fragment in slice_.fragments:
        with layout.open_files.stream(fragment, layout.file_store) as reader:
            for frame in reader.frames(layout.model_columns, batch_rows):
                sampled = None if mask is None else mask[start : start + len(frame)]
                start += len(frame)
                yield frame if sampled is None else frame[sampled]


def _from_frame(slice_: Slice, layout: Layout, input_type: str, frame: Any, mask: Mask | None) -> Any:
    columns = list(layout.model_columns)
    frame = frame[columns] if mask is None else frame.loc[mask, columns]
    if input_type == "frame":
        return frame
    arrays = [series_to_float64(frame[name], name, slice_.part) for name in columns]
    with np.errstate(over="ignore"):
        return np.stack(arrays, axis=1).astype(input_type, order="C")
