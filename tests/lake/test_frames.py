"""A pandas or dask DataFrame in place of a lake."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from lakes import cir, write
from oracle import without_groups

from excir_dask import explain
from excir_dask.errors import DataError, LakeError, SchemaError, UsageError
from excir_dask.lake.frames import frame_columns, plan_pandas
from excir_dask.lake.select import select

ROWS = 60


def plain() -> pd.DataFrame:
    draw = np.random.default_rng(0)
    a, b, noise = draw.normal(size=(3, ROWS))
    frame = pd.DataFrame({"a": a, "b": b, "whole": draw.integers(0, 9, ROWS), "yes": b > 0, "pred": a + 0.5 * noise})
    frame.loc[::7, "b"] = np.nan
    return frame


def test_a_pandas_frame_scores_like_the_same_data_as_parquet(tmp_path):
    write(tmp_path / "0.parquet", pa.Table.from_pandas(plain(), preserve_index=False))
    here, there = explain(plain(), output="pred"), explain(tmp_path, output="pred")
    pd.testing.assert_frame_equal(without_groups(here), without_groups(there))
    assert here.facts == replace(there.facts, rows=replace(there.facts.rows, row_groups=0))


@pytest.mark.parametrize("npartitions", [1, 4])
def test_a_dask_frame_scores_like_the_same_data_as_parquet(tmp_path, npartitions):
    write(tmp_path / "0.parquet", pa.Table.from_pandas(plain(), preserve_index=False))
    frame = dd.from_pandas(plain(), npartitions=npartitions)
    assert cir(frame) == pytest.approx(cir(tmp_path), abs=1e-12)


def test_a_weighted_frame_scores_like_the_same_data_as_parquet(tmp_path):
    write(tmp_path / "0.parquet", pa.Table.from_pandas(plain(), preserve_index=False))
    expected = cir(tmp_path, weights="whole")
    assert "whole" not in expected
    assert cir(plain(), weights="whole") == pytest.approx(expected, abs=1e-12)
    assert cir(dd.from_pandas(plain(), npartitions=3), weights="whole") == pytest.approx(expected, abs=1e-12)


def test_scores_of_a_frame_do_not_depend_on_slicing():
    frame = plain()
    assert explain(frame, output="pred", budget=1000).provenance.slices == 4
    for fraction in (1.0, 0.5):
        whole = explain(frame, output="pred", fraction=fraction)
        cut = explain(frame, output="pred", fraction=fraction, budget=1000)
        assert cut.facts == whole.facts
        pd.testing.assert_frame_equal(cut.features, whole.features, rtol=1e-12)


NULLABLE = {
    "a": ["Float64", "double[pyarrow]"],
    "b": ["Float64", "double[pyarrow]"],
    "whole": ["Int8", "UInt32", "Int64", "int16[pyarrow]", "uint64[pyarrow]", "float32", "float16", "uint8"],
    "yes": ["boolean", "bool[pyarrow]", "int8", "Int64", "float64"],
    "pred": ["Float64", "double[pyarrow]"],
}


@pytest.mark.parametrize(("name", "dtype"), [(name, dtype) for name, kinds in NULLABLE.items() for dtype in kinds])
def test_a_frame_scores_the_same_whatever_dtype_holds_its_numbers(name, dtype):
    assert cir(plain().astype({name: dtype})) == cir(plain())


def test_decimals_and_sparse_columns_are_numbers():
    frame = plain()
    decimals = pd.Series([Decimal(int(value)) for value in frame["whole"]], dtype=pd.ArrowDtype(pa.decimal128(9, 2)))
    assert cir(frame.assign(whole=decimals)) == cir(frame)
    sparse = pd.arrays.SparseArray(frame["whole"].to_numpy(dtype=float), fill_value=0.0)
    assert cir(frame.assign(whole=sparse)) == cir(frame)


@pytest.mark.parametrize("dtype", ["Int64", "int64[pyarrow]", "Float64", "double[pyarrow]"])
def test_missing_values_are_missing_whatever_marks_them(dtype):
    frame = plain()
    frame["whole"] = frame["whole"].astype(dtype)
    frame.loc[::5, "whole"] = pd.NA
    table = explain(frame, output="pred").features.set_index("feature")
    assert (table.loc["whole", "n"], table.loc["whole", "missing"]) == (48, 12)
    expected = plain().astype({"whole": float})
    expected.loc[::5, "whole"] = np.nan
    assert cir(frame) == cir(expected)


@pytest.mark.parametrize("dtype", ["boolean", "bool[pyarrow]"])
def test_missing_booleans_are_missing(dtype):
    frame = plain()
    frame["yes"] = frame["yes"].astype(dtype)
    frame.loc[::5, "yes"] = pd.NA
    assert explain(frame, output="pred").features.set_index("feature").loc["yes", "missing"] == 12


def test_rows_without_an_output_are_dropped_and_counted():
    frame = plain().astype({"pred": "Float64"})
    frame.loc[:3, "pred"] = pd.NA
    assert explain(frame, output="pred").facts.rows.without_output == 4


def test_long_doubles_are_numbers():
    frame = plain()
    assert cir(frame.astype({"a": np.longdouble})) == cir(frame)


WHOLE = plain()["whole"]


TIMES = {
    "datetime": pd.date_range("2024", periods=ROWS),
    "zoned": pd.date_range("2024", periods=ROWS, tz="UTC"),
    "arrow time": pd.Series(pd.date_range("2024", periods=ROWS)).astype("timestamp[us][pyarrow]"),
    "arrow date": pd.Series(pd.date_range("2024", periods=ROWS)).astype(pd.ArrowDtype(pa.date32())),
    "timedelta": pd.to_timedelta(WHOLE, unit="s"),
    "arrow duration": pd.to_timedelta(WHOLE, unit="s").astype("duration[ns][pyarrow]"),
}


OTHER = {
    "text": (WHOLE.astype("string"), "text or categories"),
    "arrow text": (WHOLE.astype(str).astype("string[pyarrow]"), "text or categories"),
    "text as objects": (np.array([*("ab" * 29), None, "c"], dtype=object), "text or categories"),
    "categories": (pd.Categorical(WHOLE.astype(str)), "text or categories"),
    "whole categories": (pd.Categorical(WHOLE), "text or categories"),
    "bool categories": (pd.Categorical(WHOLE > 3), "text or categories"),
    "arrow list": (pd.Series([[1.0]] * ROWS, dtype=pd.ArrowDtype(pa.list_(pa.float64()))), "nested"),
    "objects": (WHOLE.astype(object), "of dtype object.*astype.float"),
    "complex": (WHOLE + 1j, "of dtype complex128"),
    "periods": (pd.period_range("2024", periods=ROWS, freq="D"), "of dtype period"),
}


@pytest.mark.parametrize("kind", TIMES)
def test_times_are_features_and_neither_outputs_nor_weights(kind):
    frame = plain().assign(x=TIMES[kind])
    whole = WHOLE if kind in ("timedelta", "arrow duration") else np.arange(ROWS)
    for lake in (frame, dd.from_pandas(frame, npartitions=2)):
        assert cir(lake) == pytest.approx(cir(plain().assign(x=whole)), abs=1e-9)
    assert ", in " in explain(frame, output="pred").facts.converted["x"]
    with pytest.raises(SchemaError, match=r"column 'x' \(output\).*a time"):
        cir(frame, output="x")
    with pytest.raises(SchemaError, match=r"column 'x' \(weights\).*a time"):
        cir(frame, weights="x")


def test_dates_and_times_that_are_objects_are_features():
    moments = pd.Series(pd.date_range("2024-01-01", periods=ROWS, freq="25h"))
    frame = plain().assign(day=moments.dt.date, clock=moments.dt.time)
    frame.loc[:2, "day"] = None
    found = explain(frame, output="pred")
    assert found.features.set_index("feature").loc["day", "missing"] == 3
    assert found.facts.converted["clock"] == "time64[us], in seconds since midnight"


@pytest.mark.parametrize("kind", OTHER)
def test_what_is_not_a_number_is_left_out_with_a_reason_and_refused_by_name(kind):
    values, reason = OTHER[kind]
    frame = plain().assign(x=values)
    result = explain(frame, output="pred")
    assert "x" in result.facts.left_out
    assert cir(frame) == cir(plain())
    with pytest.raises(SchemaError, match=rf"column 'x' \(features\).*{reason}"):
        cir(frame, features=["x"])
    with pytest.raises(SchemaError, match=rf"column 'x' \(output\).*{reason}"):
        cir(frame, output="x")


@pytest.mark.parametrize("make", [lambda frame: frame, lambda frame: dd.from_pandas(frame, npartitions=2)])
def test_columns_are_named_by_strings(make):
    with pytest.raises(UsageError, match=r"column 7 has a name that is not a string; rename it"):
        cir(make(plain().rename(columns={"a": 7})))


@pytest.mark.parametrize("make", [lambda frame: frame, lambda frame: dd.from_pandas(frame, npartitions=2)])
def test_no_two_columns_have_one_name(make):
    with pytest.raises(UsageError, match="two columns 'a'"):
        cir(make(plain().rename(columns={"b": "a"})))


def test_an_empty_frame_is_an_error():
    with pytest.raises(LakeError, match="the frame has no rows"):
        cir(plain().iloc[:0])
    with pytest.raises(DataError, match="no row is left to explain: 0 rows"):
        cir(dd.from_pandas(plain().iloc[:0], npartitions=1))


def test_empty_partitions_change_nothing():
    frame = dd.from_pandas(plain().sort_values("a", ignore_index=True), npartitions=4, sort=False)
    part = frame[frame["a"] > 0]
    assert (part.map_partitions(len).compute() == 0).any()
    expected = plain().sort_values("a", ignore_index=True)
    assert cir(part) == pytest.approx(cir(expected[expected["a"] > 0]), abs=1e-12)


def test_the_index_is_neither_read_nor_used_to_align_rows():
    frame = plain()
    shuffled = frame.set_axis(np.random.default_rng(1).permutation(ROWS), axis=0)
    repeated = frame.set_axis(np.zeros(ROWS, dtype=int), axis=0)
    assert cir(shuffled) == cir(frame)
    assert cir(repeated) == cir(frame)


def test_a_frame_is_not_changed_by_explaining_it():
    frame = plain()
    explain(frame, output="pred", weights="whole", fraction=0.5)
    pd.testing.assert_frame_equal(frame, plain())


def test_slices_of_a_frame_cover_every_row_once():
    frame = plain()
    plan, pieces = plan_pandas(frame, select(frame_columns(frame), ["pred"]), budget=1000)
    pd.testing.assert_frame_equal(pd.concat(pieces), frame)
    assert [part.first_row for part in plan.slices()] == list(np.cumsum([0, *(len(p) for p in pieces[:-1])]))
    assert all(part.lead for part in plan.slices())
    assert plan.slice_bytes <= 1000


def test_anything_else_is_not_a_lake():
    with pytest.raises(UsageError, match="not int"):
        explain(7, output="pred")


def test_vectors_in_a_frame_are_left_out_with_advice():
    cells = pa.array([[0.5, 1.5]] * 20, pa.list_(pa.float64(), 2))
    frame = pd.DataFrame({"v": pd.Series(cells, dtype=pd.ArrowDtype(cells.type)), "x": np.arange(20.0)})
    found = explain(frame.assign(pred=np.arange(20.0)), output="pred")
    assert "save it as Parquet" in found.facts.left_out["v"]
