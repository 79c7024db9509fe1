"""What the statistics in footers prove before any data are read: columns that never vary, row groups that differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from excir_dask.lake.frames import is_pandas
from excir_dask.lake.sample import Sample
from excir_dask.lake.snapshot import LakeFile, Snapshot

T = TypeVar("T")

_THREADS = 16

_UNPROVEN = (0, 1)
"""two values that no statistics proved to be one"""

FAR = 3.0
"""times the width of what a sample has of a column, beyond which a row group outside it is unlike it"""


def constant_columns(lake: Any, snapshot: Snapshot | None, columns: Sequence[str]) -> list[str]:
    """Those of some columns that are constant, or missing, in every row; a sample alone cannot tell.

    Parameters
    ----------
    lake : as the user gave it
    snapshot : Snapshot, optional
        Of its files; None for a DataFrame, of which only one in memory can be looked through.
    columns : names
    """
    if not columns:
        return []
    if snapshot is None:
        return [c for c in columns if is_pandas(lake) and c in lake.columns and lake[c].nunique(dropna=True) <= 1]
    found = _of_files(snapshot, lambda file, metadata: _values(file, metadata, columns))
    return [column for i, column in enumerate(columns) if len({v for file in found for v in file[i]}) <= 1]


def out_of_range_columns(snapshot: Snapshot, sample: Sample, columns: Sequence[str]) -> list[str]:
    """Those of some columns of which row groups outside a sample reach far beyond all that are inside.

    A sample of row groups says nothing of those: not even its errors do.
    """
    if not sample.whole_row_groups or sample.fraction == 1.0 or not columns:
        return []
    found = np.concatenate(_of_files(snapshot, lambda file, metadata: _ranges(metadata, columns)), axis=1)
    inside = np.concatenate(
        [
            np.isin(np.arange(len(file.row_groups)), list(kept))
            for file, kept in zip(snapshot.files, sample.row_groups(snapshot.files), strict=True)
        ]
    )
    return [column for column, ranges in zip(columns, found, strict=True) if _reaches_beyond(ranges, inside)]


def _of_files(snapshot: Snapshot, look: Callable[[LakeFile, pq.FileMetaData], T]) -> list[T]:
    def of_file(file: LakeFile) -> T:
        with snapshot.location.filesystem.open_input_file(file.path) as source:
            return look(file, pq.ParquetFile(source).metadata)

    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(of_file, snapshot.files))


def _values(file: LakeFile, metadata: pq.FileMetaData, columns: Sequence[str]) -> list[set[Any]]:
    """For each column, the values that a file's statistics leave possible: none, one, or more."""
    keys, places = dict(file.keys), _places(metadata)
    return [{keys[column]} if column in keys else _chunk_values(metadata, places.get(column)) for column in columns]


def _places(metadata: pq.FileMetaData) -> dict[str, int]:
    return {metadata.schema.column(i).path: i for i in range(metadata.num_columns)}


def _chunk_values(metadata: pq.FileMetaData, place: int | None) -> set[Any]:
    if place is None:
        return set(_UNPROVEN)
    found: set[Any] = set()
    for group in range(metadata.num_row_groups):
        chunk = metadata.row_group(group).column(place)
        statistics = chunk.statistics
        if statistics is not None and statistics.has_null_count and statistics.null_count == chunk.num_values:
            continue
        found |= {statistics.min, statistics.max} if statistics is not None and statistics.has_min_max else {*_UNPROVEN}
    return found


def _ranges(metadata: pq.FileMetaData, columns: Sequence[str]) -> NDArray[np.float64]:
    """(columns, row groups, 2) lowest and highest value; NaN where the footer does not say."""
    places = _places(metadata)
    found = np.full((len(columns), metadata.num_row_groups, 2), np.nan)
    for i, column in enumerate(columns):
        for group in range(metadata.num_row_groups if column in places else 0):
            statistics = metadata.row_group(group).column(places[column]).statistics
            if statistics is not None and statistics.has_min_max and isinstance(statistics.min, int | float):
                found[i, group] = statistics.min, statistics.max
    return found


def _reaches_beyond(ranges: NDArray[np.float64], inside: NDArray[np.bool_]) -> bool:
    known = ~np.isnan(ranges).any(axis=1)
    mine, others = ranges[inside & known], ranges[~inside & known]
    if not len(mine) or not len(others):
        return False
    low, high = mine[:, 0].min(), mine[:, 1].max()
    reach = FAR * (high - low)
    return bool(others[:, 0].min() < low - reach or others[:, 1].max() > high + reach)
