"""Open files: what they work out once, and what they count as read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from lakes import only_slice, prepared, read_all, write

from excir_dask.lake.open_files import OpenFiles


class CountingReader:
    """pyarrow's reader of a file, which counts how often the paths of all its columns are listed."""

    def __init__(self, reader: Any):
        self.reader, self.listings = reader, 0

    @property
    def column_paths(self) -> Any:
        self.listings += 1
        return self.reader.column_paths

    def __getattr__(self, name: str) -> Any:
        return getattr(self.reader, name)


def test_columns_of_a_file_are_listed_once_however_often_it_is_read(lake):
    plan, layout = prepared(lake)
    part = only_slice(plan).fragments[0]
    with layout.open_files.borrow(part, layout.file_store) as reader:
        counting = CountingReader(reader.file.reader)
        reader.file.reader = counting
    for _ in range(3):
        with layout.open_files.borrow(part, layout.file_store) as reader:
            assert reader.file.reader is counting
            for name in ("a", "b", "pred"):
                reader.read([name])
    assert counting.listings <= 1


def test_bytes_read_are_those_of_every_leaf_of_the_columns(tmp_path):
    nested = pa.array([{"x": float(i), "y": float(-i)} for i in range(50)])
    path = write(
        tmp_path / "0.parquet",
        pa.table({"nested": nested, "a": np.arange(50.0), "b": np.arange(50.0) ** 2, "pred": np.arange(50.0)}),
        row_group_size=20,
    )
    plan, layout = prepared(tmp_path)
    chunks = [pq.read_metadata(path).row_group(g).column(i) for g in range(3) for i in range(5)]
    with layout.open_files.borrow(only_slice(plan).fragments[0], layout.file_store) as reader:
        reader.column("nested")
        reader.read(["b"])
    wanted = ("nested.x", "nested.y", "b")
    assert layout.open_files.bytes_read == sum(c.total_compressed_size for c in chunks if c.path_in_schema in wanted)


def test_a_vector_is_read_once_per_scan_although_it_has_more_elements_than_a_block(tmp_path):
    matrix = np.random.default_rng(0).standard_normal((40, 600))
    vectors = pa.FixedSizeListArray.from_arrays(matrix.ravel(), 600)
    path = write(tmp_path / "0.parquet", pa.table({"v": vectors, "pred": matrix[:, 0]}), row_group_size=20)
    plan, layout = prepared(tmp_path)
    layout = replace(layout, open_files=OpenFiles(plan.selection.vectors))
    columns = [column for part in plan.slices() for column in read_all(part, layout)[0].iloc[:, :-1]]
    assert columns == [f"v[{i}]" for i in range(600)]
    footer = pq.read_metadata(path)
    size = sum(footer.row_group(g).column(i).total_compressed_size for g in range(2) for i in range(2))
    assert layout.open_files.bytes_read == size
