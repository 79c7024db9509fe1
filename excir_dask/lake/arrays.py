"""Convert Arrow columns to the arrays that scans work on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}

_MS_PER_DAY = 86_400_000.0


@dataclass(frozen=True)
class CategoryCodes:
    """A categorical column."""

    codes: NDArray[np.int32]
    """(rows,) index into ``values``; -1 for missing"""
    values: tuple[str, ...]


def as_float64(column: pa.ChunkedArray) -> Floats:
    if pt.is_null(column.type):
        return np.full(len(column), np.nan)
    if pt.is_temporal(column.type):
        return _time_to_float64(column)
    if not pt.is_float64(column.type):
        column = column.cast(pa.float64(), safe=False)
    if column.num_chunks == 1 and column.null_count == 0:
        column = column.chunk(0)
    values: NDArray[np.float64] = column.to_numpy()
    return values


def _time_to_float64(column: pa.ChunkedArray) -> Floats:
    """Days since 1970-01-01 of dates; seconds of everything else."""
    kind = column.type
    whole = column.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    per = _MS_PER_DAY if pt.is_date64(kind) else 1.0 if pt.is_date32(kind) else _PER_SECOND[kind.unit]
    return as_float64(whole) / per


def series_values(series: Any) -> Floats:
    """A pandas column as float64, with times as in :func:`as_float64`."""
    kind = getattr(series.dtype, "pyarrow_dtype", None)
    if series.dtype.kind in "mM" or (kind is not None and pt.is_temporal(kind)) or object_times(series):
        found = pa.array(series, from_pandas=True)
        return as_float64(found if isinstance(found, pa.ChunkedArray) else pa.chunked_array([found]))
    values: Floats = series.to_numpy(dtype=np.float64, na_value=np.nan)
    return values


def object_times(series: Any) -> pa.DataType | None:
    """The type of a pandas column of dates or times of day, which are Python objects; None for other columns."""
    from pandas.api.types import infer_dtype

    kinds = {"date": pa.date32(), "time": pa.time64("us")}
    return kinds.get(infer_dtype(series, skipna=True)) if series.dtype == object else None


def as_matrix(column: pa.ChunkedArray) -> Floats:
    """A vector column as (elements, rows), with NaN in rows without a vector."""
    size = column.type.list_size
    parts = []
    for chunk in column.chunks:
        # flatten() would drop the values behind a null and shift the rows that follow
        values = chunk.values.slice(chunk.offset * size, len(chunk) * size)
        part = as_float64(pa.chunked_array([values])).reshape(len(chunk), size)
        if chunk.null_count:
            part = np.where(chunk.is_null().to_numpy(zero_copy_only=False)[:, None], np.nan, part)
        parts.append(part.T)
    return np.ascontiguousarray(np.concatenate(parts, axis=1)) if parts else np.empty((size, 0))


def decimals_to_float64(table: pa.Table) -> pa.Table:
    """The table with float64 in place of decimals, which pandas would hold as Python objects."""
    for i, field in enumerate(table.schema):
        if pt.is_decimal(field.type):
            table = table.set_column(i, field.name, table.column(i).cast(pa.float64(), safe=False))
    return table


def as_codes(column: pa.ChunkedArray) -> CategoryCodes:
    if not pt.is_dictionary(column.type):
        column = column.dictionary_encode()
    joined = column.unify_dictionaries().combine_chunks()
    chunk = joined if isinstance(joined, pa.DictionaryArray) else joined.chunk(0)
    codes = chunk.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
    values = chunk.dictionary.to_pylist()
    if None in values:  # a dictionary may contain a null
        is_null = np.array([value is None for value in values])
        codes = np.where(is_null[codes] & (codes >= 0), -1, codes).astype(np.int32)
    return CategoryCodes(codes, tuple(str(value) for value in values))


def concat_codes(parts: Sequence[CategoryCodes]) -> CategoryCodes:
    """The categories of several files, concatenated."""
    if len(parts) == 1:
        return parts[0]
    values = {value: i for i, value in enumerate(dict.fromkeys(v for part in parts for v in part.values))}
    codes = [np.array([*(values[v] for v in part.values), -1], dtype=np.int32)[part.codes] for part in parts]
    return CategoryCodes(np.concatenate(codes), tuple(values))
