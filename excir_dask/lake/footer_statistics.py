"""What footer statistics prove about columns before any data are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from excir_dask.errors import LakeChangedError, ReadError
from excir_dask.lake.frames import is_pandas
from excir_dask.lake.retry import with_retries
from excir_dask.lake.sample import Sample
from excir_dask.lake.snapshot import LakeFile, Snapshot
from excir_dask.lake.store_errors import redacted_message

T = TypeVar("T")

_THREADS = 16

_NOT_PROVEN = (0, 1)
"""two values, for columns that the statistics do not prove constant"""

FAR = 3.0
"""widths of the sample's range by which a row group outside the sample must exceed that range"""


def constant_columns(lake: Any, snapshot: Snapshot | None, columns: Sequence[str]) -> list[str]:
    """The columns that are constant or missing in all rows of the lake, not only in a sample.

    Parameters
    ----------
    lake : as the user gave it
    snapshot : Snapshot, optional
        None for a DataFrame; only a pandas DataFrame can be checked.
    columns : names
        Candidates.
    """
    if not columns:
        return []
    if snapshot is None:
        return [c for c in columns if is_pandas(lake) and c in lake.columns and lake[c].nunique(dropna=True) <= 1]
    files = map_footers(snapshot, lambda file, parquet: _possible_values(file, parquet.metadata, columns))
    return [column for i, column in enumerate(columns) if len({v for file in files for v in file[i]}) <= 1]


def out_of_range_columns(snapshot: Snapshot, sample: Sample, columns: Sequence[str]) -> list[str]:
    """The columns whose range outside a sample of row groups is far larger than inside.

    Neither such a sample nor its standard errors say anything about those values.
    """
    if not sample.whole_row_groups or sample.fraction == 1.0 or not columns:
        return []
    ranges = np.concatenate(map_footers(snapshot, lambda _, parquet: _ranges(parquet.metadata, columns)), axis=1)
    inside = np.concatenate(
        [
            np.isin(np.arange(len(file.row_groups)), list(chosen))
            for file, chosen in zip(snapshot.files, sample.row_groups(snapshot.files), strict=True)
        ]
    )
    if snapshot.excluded:  # no row of these is asked for
        gone = [
            np.isin(np.arange(len(file.row_groups)), list(groups))
            for file, groups in zip(snapshot.files, snapshot.excluded, strict=True)
        ]
        left = ~np.concatenate(gone)
        ranges, inside = ranges[:, left], inside[left]
    return [column for column, each in zip(columns, ranges, strict=True) if _exceeds_range(each, inside)]


def map_footers(
    snapshot: Snapshot, function: Callable[[LakeFile, pq.ParquetFile], T], files: Sequence[LakeFile] | None = None
) -> list[T]:
    """What a function finds in the footers of some files, of all by default."""

    def of_file(file: LakeFile) -> T:
        try:
            with snapshot.location.filesystem.open_input_file(file.path) as source:
                return function(file, pq.ParquetFile(source))
        except FileNotFoundError as error:
            raise LakeChangedError(f"{file.relative} was removed during the run; run again") from error
        except OSError as error:
            raise ReadError(f"{file.relative} cannot be read: {redacted_message(error)}") from error

    with ThreadPoolExecutor(_THREADS) as pool:
        chosen = snapshot.files if files is None else files
        return list(pool.map(lambda file: with_retries(lambda: of_file(file)), chosen))


def _possible_values(file: LakeFile, metadata: pq.FileMetaData, columns: Sequence[str]) -> list[set[Any]]:
    """Per column, the values that the statistics leave possible: none, one, or more."""
    constants, leaves = dict(file.constants), _leaves(metadata)
    return [
        {constants[column]} if column in constants else _chunk_values(metadata, leaves.get(column))
        for column in columns
    ]


def _leaves(metadata: pq.FileMetaData) -> dict[str, int]:
    return {metadata.schema.column(i).path: i for i in range(metadata.num_columns)}


def _chunk_values(metadata: pq.FileMetaData, leaf: int | None) -> set[Any]:
    if leaf is None:
        return set(_NOT_PROVEN)
    values: set[Any] = set()
    for group in range(metadata.num_row_groups):
        chunk = metadata.row_group(group).column(leaf)
        statistics = chunk.statistics
        if statistics is not None and statistics.has_null_count and statistics.null_count == chunk.num_values:
            continue
        has_range = statistics is not None and statistics.has_min_max
        values |= {statistics.min, statistics.max} if has_range else {*_NOT_PROVEN}
    return values


def _ranges(metadata: pq.FileMetaData, columns: Sequence[str]) -> NDArray[np.float64]:
    """(columns, row groups, 2) minimum and maximum; NaN if the footer has none."""
    leaves = _leaves(metadata)
    ranges = np.full((len(columns), metadata.num_row_groups, 2), np.nan)
    for i, column in enumerate(columns):
        for group in range(metadata.num_row_groups if column in leaves else 0):
            statistics = metadata.row_group(group).column(leaves[column]).statistics
            if statistics is not None and statistics.has_min_max and isinstance(statistics.min, int | float):
                ranges[i, group] = statistics.min, statistics.max
    return ranges


def _exceeds_range(ranges: NDArray[np.float64], inside: NDArray[np.bool_]) -> bool:
    known = ~np.isnan(ranges).any(axis=1)
    sampled, others = ranges[inside & known], ranges[~inside & known]
    if not len(sampled) or not len(others):
        return False
    low, high = sampled[:, 0].min(), sampled[:, 1].max()
    margin = FAR * (high - low)
    return bool(others[:, 0].min() < low - margin or others[:, 1].max() > high + margin)
