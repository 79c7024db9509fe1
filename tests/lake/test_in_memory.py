"""Tables in memory in place of a lake."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from excir_dask import explain, sweep
from excir_dask.errors import UsageError
from excir_dask.lake.in_memory import as_lake

ROWS = 60


def table() -> pa.Table:
    draw = np.random.default_rng(0)
    a, b, noise = draw.normal(size=(3, ROWS))
    return pa.table(
        {
            "a": a,
            "b": pa.array(b, mask=np.arange(ROWS) % 7 == 0),
            "whole": pa.array(draw.integers(0, 9, ROWS), mask=np.arange(ROWS) == 3),
            "price": pa.array([Decimal(i) / 4 for i in range(ROWS)], pa.decimal128(9, 2)),
            "town": pa.array(["Oslo", "Rome"] * (ROWS // 2)).dictionary_encode(),
            "pred": a + 0.5 * noise,
        }
    )


class Stream:
    """Knows nothing but Arrow's stream interface."""

    def __init__(self, content: pa.Table):
        self.content = content

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.content.__arrow_c_stream__(requested_schema)


def polars_frame(content: pa.Table) -> Any:
    return pytest.importorskip("polars").from_arrow(content)


KINDS = {
    "table": lambda content: content,
    "reader": lambda content: content.to_reader(max_chunksize=7),
    "batch": lambda content: content.combine_chunks().to_batches()[0],
    "stream": Stream,
    "dataset": lambda content: ds.dataset(content),
    "polars": polars_frame,
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_scores_like_the_same_data_as_parquet(tmp_path, kind):
    pq.write_table(table(), tmp_path / "0.parquet")
    expected = explain(tmp_path, output="pred", categoricals="indicators")
    found = explain(KINDS[kind](table()), output="pred", categoricals="indicators")
    pd.testing.assert_frame_equal(found.features, expected.features)


def test_categories_with_unsigned_codes_are_taken():
    codes = pa.DictionaryArray.from_arrays(pa.array([0, 1, None] * 20, pa.uint32()), pa.array(["Oslo", "Rome"]))
    frame = as_lake(pa.table({"town": codes}))
    assert frame["town"].tolist()[:2] == ["Oslo", "Rome"]
    assert frame["town"].isna().sum() == 20


def test_a_reader_that_can_be_read_once_is_enough_for_a_sweep():
    found = sweep(table().to_reader(), output="pred", fractions=[0.5], seeds=2, k=2)
    assert len(found.runs["fraction"].unique()) == 2


def test_a_dataset_of_local_files_is_read_from_them(tmp_path):
    for i in range(2):
        pq.write_table(table(), tmp_path / f"{i}.parquet")
    dataset = ds.dataset(tmp_path)
    assert as_lake(dataset) == [f"{tmp_path}/{i}.parquet" for i in range(2)]
    assert explain(dataset, output="pred").to_json() == explain(tmp_path, output="pred").to_json()


def test_filters_keys_and_schemas_of_a_dataset_hold(tmp_path):
    (tmp_path / "k=1").mkdir()
    pq.write_table(table(), tmp_path / "k=1" / "0.parquet")
    plain = ds.dataset(tmp_path)
    assert len(as_lake(plain.filter(ds.field("a") > 0))) == plain.count_rows(filter=ds.field("a") > 0)
    assert "k" in as_lake(ds.dataset(tmp_path, partitioning="hive")).columns
    assert list(as_lake(plain.replace_schema(pa.schema([("a", pa.float64())]))).columns) == ["a"]


def test_a_structured_array_has_columns_and_a_plain_one_needs_names():
    frame = table().select(["a", "price", "pred"]).to_pandas().astype(float)
    found = explain(frame.to_records(index=False), output="pred")
    assert found.to_json() == explain(frame, output="pred").to_json()
    with pytest.raises(UsageError, match=r"\(60 x 3\) has no column names; pass pandas.DataFrame"):
        explain(frame.to_numpy(), output="pred")


def test_a_model_in_the_place_of_the_data_gets_a_hint():
    frame = table().select(["a", "pred"]).to_pandas()
    with pytest.raises(UsageError, match=r"2 values have no name; write explain\(data, model=model\)"):
        explain(len, frame)
    with pytest.raises(UsageError, match=r"not builtin_function_or_method; a model goes to model="):
        explain(len, output="pred")
