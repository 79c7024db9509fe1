"""Columns that have one value in the whole lake, proven without reading it: by the statistics in the footers."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow.parquet as pq

from excir_dask.lake.frames import is_pandas
from excir_dask.lake.snapshot import LakeFile, Snapshot

_THREADS = 16

_UNPROVEN = (0, 1)
"""two values that no statistics proved to be one"""


def still_columns(lake: Any, snapshot: Snapshot | None, columns: Sequence[str]) -> list[str]:
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
    with ThreadPoolExecutor(_THREADS) as pool:
        found = list(pool.map(lambda file: _values(snapshot, file, columns), snapshot.files))
    return [column for i, column in enumerate(columns) if len({v for file in found for v in file[i]}) <= 1]


def _values(snapshot: Snapshot, file: LakeFile, columns: Sequence[str]) -> list[set[Any]]:
    """For each column, the values that a file's statistics leave possible: none, one, or more."""
    keys = dict(file.keys)
    with snapshot.location.filesystem.open_input_file(file.path) as source:
        metadata = pq.ParquetFile(source).metadata
    places = {metadata.schema.column(i).path: i for i in range(metadata.num_columns)}
    return [{keys[column]} if column in keys else _chunk_values(metadata, places.get(column)) for column in columns]


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
