"""From a slice to blocks of float64 columns, and what happens when files fail or change under a run."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from lakes import cir, numbers, only_slice, prepared, read_all, write

from excir_dask import explain
from excir_dask.errors import DataError
from excir_dask.graph.measure import Request, measure
from excir_dask.graph.run import LocalRunner
from excir_dask.lake.sample import Sample
from excir_dask.results.metadata import RowCounts

ROWS = 50


def every_type(nulls: bool) -> pa.Table:
    """A column of each type that becomes a number, with a null in every seventh row."""
    draw = np.random.default_rng(1)
    whole = draw.integers(0, 100, ROWS)
    real = draw.normal(size=ROWS)
    mask = np.arange(ROWS) % 7 == 0 if nulls else None
    found = {
        str(kind): pa.array(whole.astype(kind.to_pandas_dtype()), kind, mask=mask)
        for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
    }
    for kind in (pa.float16(), pa.float32(), pa.float64()):
        found[str(kind)] = pa.array(real.astype(kind.to_pandas_dtype()), kind, mask=mask)
    cents = np.array([Decimal(int(value)) / 4 for value in whole], dtype=object)
    for kind in (pa.decimal128(12, 2), pa.decimal256(40, 2)):
        found[str(kind)] = pa.array(cents, kind, mask=mask)
    found["bool"] = pa.array(whole > 50, mask=mask)
    found["big"] = pa.array(whole.astype("i8") + 2**60, mask=mask)
    found["nan and inf"] = pa.array(np.where(whole > 50, np.inf, np.where(whole > 30, np.nan, real)), mask=mask)
    found["pred"] = pa.array(real)
    return pa.table(found)


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("batch_rows", [None, 1, 7, ROWS])
def test_blocks_equal_what_pandas_reads_for_every_type(tmp_path, nulls, batch_rows):
    file = write(tmp_path / "0.parquet", every_type(nulls), row_group_size=ROWS)
    plan, layout = prepared(tmp_path)
    found, counts = read_all(replace(only_slice(plan), batch_rows=batch_rows), layout)
    frame = pd.read_parquet(file)
    assert list(found.columns) == list(frame.columns)
    for name in frame.columns:
        expected = frame[name].astype(object).where(frame[name].notna(), np.nan).to_numpy(dtype=np.float64)
        np.testing.assert_array_equal(found[name].to_numpy(), expected, err_msg=name)
        assert found[name].dtype == np.float64
    assert (counts.read, counts.used) == (ROWS, ROWS)


def test_row_groups_and_files_of_a_slice_follow_each_other(lake):
    plan, layout = prepared(lake)
    found, counts = read_all(only_slice(plan), layout)
    expected = pd.concat([pd.read_parquet(path) for path in sorted(lake.rglob("*.parquet"))], ignore_index=True)
    pd.testing.assert_frame_equal(found, expected[found.columns])
    assert counts.used == 120


def test_a_slice_holds_only_its_own_columns(lake):
    plan, layout = prepared(lake)
    found, _ = read_all(replace(only_slice(plan), start=1, stop=2, lead=False), layout)
    assert list(found.columns) == ["b", "pred"]


def test_partition_keys_stand_beside_the_columns(tmp_path):
    for value in (1, 2):
        write(tmp_path / f"k={value}" / "0.parquet", numbers(3, seed=value))
    plan, layout = prepared(tmp_path)
    found, _ = read_all(only_slice(plan), layout)
    assert found["k"].tolist() == [1.0, 1.0, 1.0, 2.0, 2.0, 2.0]
    plan, layout = prepared(tmp_path, outputs=["k"], features=["a"])
    assert read_all(only_slice(plan), layout)[0]["k"].tolist() == [1.0, 1.0, 1.0, 2.0, 2.0, 2.0]


def test_a_lake_may_be_explained_by_its_partition_keys_alone(tmp_path):
    for value in (1, 2, 3):
        write(tmp_path / f"k={value}" / "0.parquet", numbers(5, seed=value))
    assert set(cir(tmp_path, features=["k"])) == {"k"}
    plan, layout = prepared(tmp_path / "k=1", features=["a"])
    piece = only_slice(plan)
    keyed = replace(
        piece, batch_rows=2, fragments=(replace(piece.fragments[0], constants=(("a", 8.0), ("pred", 9.0))),)
    )
    found, _ = read_all(keyed, layout)
    assert found.to_numpy().tolist() == [[8.0, 9.0]] * 5


@pytest.mark.parametrize("batch_rows", [None, 3])
def test_rows_without_an_output_or_a_weight_are_dropped_and_counted(tmp_path, batch_rows):
    nan, inf = float("nan"), float("inf")
    write(
        tmp_path / "0.parquet",
        {
            "x": pa.array([0.0, 1.0, 2.0, None, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]),
            "y": pa.array([1.0, None, nan, 1.0, inf, 1.0, 1.0, 1.0, 1.0, 1.0]),
            "z": pa.array([1.0, 1.0, 1.0, 1.0, 1.0, -inf, 1.0, 1.0, 1.0, 1.0]),
            "w": pa.array([1.0, 1.0, 1.0, 2.0, -1.0, 1.0, 0.0, None, nan, inf]),
        },
    )
    plan, layout = prepared(tmp_path, outputs=["y", "z"], weight="w")
    found, counts = read_all(replace(only_slice(plan), batch_rows=batch_rows), layout)
    np.testing.assert_array_equal(found["x"], [0.0, nan])
    assert found["w"].tolist() == [1.0, 2.0]
    assert (counts.read, counts.sampled, counts.without_output, counts.without_weight, counts.used) == (10, 10, 4, 4, 2)


def test_counts_of_a_run_are_those_of_its_rows(tmp_path):
    table = numbers(30)
    pred = table["pred"].to_pylist()
    pred[3] = None
    table = table.set_column(2, "pred", pa.array(pred)).append_column("w", pa.array([0.0] * 2 + [1.0] * 28))
    write(tmp_path / "0.parquet", table, row_group_size=10)
    assert explain(tmp_path, output="pred", weights="w").facts.rows == RowCounts(
        lake=30, sampled=30, without_output=1, without_weight=2, used=27, row_groups=3
    )


def test_a_negative_weight_is_an_error_that_names_column_and_file(lake):
    for i, path in enumerate(sorted(lake.rglob("*.parquet"))):
        weights = np.ones(40)
        weights[0 if i == 1 else 7] = -0.5 if i == 1 else 0.5
        write(path, numbers(seed=i).append_column("w", pa.array(weights)), row_group_size=25)
    with pytest.raises(DataError, match=r"column 'w' \(weights\) has negative values.*deep/a\.parquet"):
        explain(lake, output="pred", weights="w")


@pytest.mark.parametrize("batch_rows", [None, 9])
def test_a_sample_is_the_rows_that_were_drawn(lake, batch_rows):
    plan, layout = prepared(lake / "b.parquet", sample=Sample(0.4, seed=2))
    (piece,) = plan.slices()
    found, counts = [], 0
    for group, rows in ((0, 25), (1, 15)):
        part = replace(piece.fragments[0], row_groups=(group,), rows=(rows,))
        data, got = read_all(replace(piece, rows=rows, fragments=(part,), batch_rows=batch_rows), layout)
        found.append(data)
        counts += got.sampled
    keep = np.concatenate([Sample(0.4, seed=2).mask("b.parquet", g, n) for g, n in ((0, 25), (1, 15))])
    assert 5 < keep.sum() < 30
    np.testing.assert_array_equal(pd.concat(found)["a"], numbers()["a"].to_numpy()[keep])
    assert counts == keep.sum()


@pytest.mark.parametrize("fraction", [1.0, 0.3])
def test_states_of_a_streamed_slice_equal_those_of_a_whole_one(tmp_path, fraction):
    draw = np.random.default_rng(4)
    data = {name: np.round(draw.normal(size=2000), 2) for name in ("a", "b", "c", "pred")}
    data["b"][::3] = np.nan
    data["pred"][::11] = np.nan
    write(tmp_path / "0.parquet", {**data, "w": draw.integers(0, 4, 2000)}, row_group_size=2000)
    plan, layout = prepared(tmp_path, weight="w", sample=Sample(fraction))
    streamed = replace(plan, blocks=(((replace(only_slice(plan), batch_rows=77),),),))
    whole, found = (measure(each, layout, Request("midhinge"), LocalRunner(False)) for each in (plan, streamed))
    assert found.rows == whole.rows
    assert found.row_groups == whole.row_groups == 1, "batches of a row group are one unit"
    assert whole.rows.without_output > 0
    for field in ("n", "missing", "q25", "q75", "constant", "missed"):
        np.testing.assert_array_equal(getattr(found.features.stats, field), getattr(whole.features.stats, field))
    for field in ("numerator", "denominator", "squares", "signed_squares", "abs_y", "abs_x", "weight"):
        np.testing.assert_allclose(getattr(found.sums, field), getattr(whole.sums, field), rtol=1e-12)
