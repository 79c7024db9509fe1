"""Tables that people hold in memory: polars frames, Arrow tables and datasets, numpy arrays with names."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from excir_dask.errors import UsageError
from excir_dask.lake.arrays import decimals_to_float64
from excir_dask.lake.frames import is_dask, is_pandas


def as_lake(lake: Any) -> Any:
    """The lake as files, or as a pandas or dask DataFrame; whatever is one of these stays as it is.

    An Arrow dataset of local Parquet files stands for its files, which are read slice by slice. Everything else is in
    memory already, or is read into it: other datasets, structured numpy arrays, and whatever has
    ``__arrow_c_stream__`` (polars, pyarrow, DuckDB).
    """
    if is_pandas(lake) or is_dask(lake):
        return lake
    if isinstance(lake, np.ndarray):
        return _of_array(lake)
    datasets = sys.modules.get("pyarrow.dataset")
    if datasets is not None and isinstance(lake, datasets.Dataset):
        return _files(lake) or _of_arrow(lake.to_table())
    if hasattr(lake, "__arrow_c_stream__"):
        import pyarrow as pa

        return _of_arrow(pa.table(lake))
    if hasattr(lake, "__arrow_c_array__"):  # a single batch
        import pyarrow as pa

        return _of_arrow(pa.table(pa.record_batch(lake)))
    if hasattr(lake, "collect") and hasattr(lake, "collect_schema"):
        raise UsageError(f"a {type(lake).__name__} has no rows yet; pass lake.collect(), or the files that it scans")
    return lake


def _of_array(array: np.ndarray[Any, Any]) -> Any:
    import pandas as pd

    if array.dtype.names is None:
        shape = " x ".join(map(str, array.shape))
        raise UsageError(
            f"a numpy array ({shape}) has no column names; pass pandas.DataFrame(array, columns=[...]), or a "
            "structured array"
        )
    return pd.DataFrame({name: array[name] for name in array.dtype.names})


def _of_arrow(table: Any) -> Any:
    """A pandas DataFrame with the types that the same columns of a Parquet file would have."""
    import pyarrow.types as pt

    for place, field in enumerate(table.schema):
        if pt.is_dictionary(field.type) and pt.is_unsigned_integer(field.type.index_type):
            table = table.set_column(place, field.name, _signed(table.column(place)))
    return decimals_to_float64(table).to_pandas()


def _signed(column: Any) -> Any:
    """Categories with signed codes: polars has unsigned ones, which pyarrow 18 does not convert."""
    import pyarrow as pa

    def values(dictionary: Any) -> Any:
        return dictionary.cast(pa.string()) if dictionary.type == pa.string_view() else dictionary

    chunks = [
        pa.DictionaryArray.from_arrays(chunk.indices.cast(pa.int32()), values(chunk.dictionary))
        for chunk in column.chunks
    ]
    kind = pa.dictionary(pa.int32(), values(pa.array([], column.type.value_type)).type)
    return pa.chunked_array(chunks, kind)


def _files(dataset: Any) -> list[str] | None:
    """The files of a dataset, if they say everything that it does: local Parquet, no filter, no keys, all columns."""
    import pyarrow.dataset as ds
    from pyarrow import fs

    if not isinstance(dataset, ds.FileSystemDataset) or not isinstance(dataset.format, ds.ParquetFileFormat):
        return None
    if not isinstance(dataset.filesystem, fs.LocalFileSystem) or getattr(dataset, "_scan_options", None):
        return None
    fragments = list(dataset.get_fragments())
    if not fragments or any(ds.get_partition_keys(each.partition_expression) for each in fragments):
        return None
    if set(fragments[0].physical_schema.names) != set(dataset.schema.names):
        return None
    return [each.path for each in fragments]
