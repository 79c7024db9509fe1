"""Whole rows for a model: all its columns of the rows that are in the sample, some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import NDArray

from excir_dask.lake.blocks import Layout, kept
from excir_dask.lake.plan import Slice
from excir_dask.lake.read import columns_at_once, numbers, places_of, read_batches, read_together, release_memory


def read_rows(piece: Slice, layout: Layout, wants: str, budget: int, frame: Any = None) -> Iterator[Any]:
    """Rows of a slice's span that are in the sample, in order.

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
    most = max(budget // (8 * max(len(layout.model_columns), 1)), 1)
    keep = kept(layout, places_of(piece, rows))
    try:
        if frame is not None:
            yield from _of_frame(piece, layout, wants, frame, keep)
        elif wants == "frame" or rows > most:
            yield from _in_batches(piece, layout, wants, most, keep)
        else:
            yield _whole(piece, layout, np.dtype(wants), keep)
    finally:
        release_memory()


def _whole(piece: Slice, layout: Layout, dtype: np.dtype[Any], keep: NDArray[np.bool_] | None) -> NDArray[Any]:
    """A matrix filled a column at a time, the fastest way to decode."""
    places = None if keep is None else np.flatnonzero(keep)
    found = np.empty((len(layout.model_columns), piece.rows if places is None else places.size), dtype)
    with ExitStack() as stack, np.errstate(over="ignore"):
        readers = [stack.enter_context(layout.open_files.borrow(part, layout.place)) for part in piece.pieces]
        at_once = columns_at_once(layout, readers)
        filled = 0
        for names in read_batches(layout.model_columns, layout, at_once):
            for x in read_together(readers, names):
                found[filled] = x if places is None else x.take(places)
                filled += 1
    return np.ascontiguousarray(found.T)


def _in_batches(piece: Slice, layout: Layout, wants: str, most: int, keep: NDArray[np.bool_] | None) -> Iterator[Any]:
    at = 0
    for part in piece.pieces:
        with layout.open_files.borrow(part, layout.place) as reader:
            tables = (
                ((len(frame), frame) for frame in reader.frames(layout.model_columns, most))
                if wants == "frame"
                else reader.batches(layout.model_columns, most)
            )
            for rows, table in tables:
                here = None if keep is None else keep[at : at + rows]
                at += rows
                if wants == "frame":
                    yield table if here is None else table[here]
                else:
                    with np.errstate(over="ignore"):
                        matrix = np.stack(table, axis=1).astype(wants, order="C")
                    yield matrix if here is None else matrix[here]


def _of_frame(piece: Slice, layout: Layout, wants: str, frame: Any, keep: NDArray[np.bool_] | None) -> Iterator[Any]:
    frame = frame[list(layout.model_columns)] if keep is None else frame.loc[keep, list(layout.model_columns)]
    if wants == "frame":
        yield frame
    else:
        columns = [numbers(frame[name], name, piece.part) for name in layout.model_columns]
        with np.errstate(over="ignore"):
            yield np.stack(columns, axis=1).astype(wants, order="C")
