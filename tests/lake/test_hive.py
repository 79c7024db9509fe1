"""Hive partition keys are columns."""

from __future__ import annotations

import shutil

import numpy as np
import pyarrow as pa
import pytest
from lakes import cir, columns, numbers, snapshot, write

from excir_dask import explain
from excir_dask.errors import LakeError, SchemaError


def hive(folder, *values, key="k"):
    for seed, value in enumerate(values):
        write(folder / f"{key}={value}" / "part.parquet", numbers(seed=seed))
    return folder


def test_whole_number_keys_are_columns_that_are_scored(tmp_path):
    shot = snapshot(hive(tmp_path, 1, 2, 10))
    assert shot.key_types == {"k": pa.int32()}
    assert sorted(file.constants for file in shot.files) == [(("k", 1),), (("k", 2),), (("k", 10),)]
    expected = {}
    for seed, value in enumerate([1, 2, 10]):
        part = numbers(seed=seed).append_column("k", pa.array(np.full(40, float(value))))
        write(tmp_path / "flat" / f"{value}.parquet", part)
    expected = cir(tmp_path / "flat")
    shutil.rmtree(tmp_path / "flat")
    assert cir(tmp_path) == pytest.approx(expected, abs=1e-12)


def test_several_keys_are_several_columns(tmp_path):
    for year in (2024, 2025):
        hive(tmp_path / f"year={year}", 1, 2, key="month")
    found = columns(tmp_path)
    assert [name for name, column in found.items() if column.key] == ["year", "month"]
    assert set(cir(tmp_path)) == {"a", "b", "year", "month"}


@pytest.mark.parametrize("values", [("north", "south"), (1, "south"), ("0.5", "1.5")])
def test_keys_that_are_not_whole_numbers_are_text_and_left_out_with_a_reason(tmp_path, values):
    hive(tmp_path, *values)
    assert snapshot(tmp_path).key_types == {"k": pa.string()}
    left_out = explain(tmp_path, output="pred").facts.left_out
    assert "text or categories" in left_out["k"]
    with pytest.raises(SchemaError, match=r"column 'k' .features. is string"):
        cir(tmp_path, features=["k"])


def test_the_default_partition_is_a_missing_value(tmp_path):
    hive(tmp_path, 1, 2, "__HIVE_DEFAULT_PARTITION__")
    table = explain(tmp_path, output="pred").features.set_index("feature")
    assert table.loc["k", "n"] == 80
    assert table.loc["k", "missing"] == 40
    assert table.loc["a", "missing"] == 0


def test_escaped_key_values_are_unescaped(tmp_path):
    write(tmp_path / "k=a%20b" / "part.parquet")
    assert snapshot(tmp_path).files[0].constants == (("k", "a b"),)


def test_a_file_outside_the_partition_folders_is_named(tmp_path):
    hive(tmp_path, 1, 2)
    write(tmp_path / "stray.parquet")
    with pytest.raises(LakeError, match=r"stray\.parquet is in no folder 'k=\.\.\.'"):
        snapshot(tmp_path)


def test_a_key_that_is_also_a_column_is_a_conflict_that_names_both(tmp_path):
    hive(tmp_path, 1, 2, key="a")
    with pytest.raises(SchemaError, match=r"column 'a' is in a=1/part\.parquet and also in the names of folders"):
        cir(tmp_path)
    assert set(cir(tmp_path, features=["b"])) == {"b"}


def test_folders_above_the_lake_are_not_keys(tmp_path):
    lake = hive(tmp_path / "country=1", 1, 2)
    assert snapshot(lake).key_types == {"k": pa.int32()}
    assert snapshot(tmp_path).key_types == {"country": pa.int32(), "k": pa.int32()}
    assert snapshot(f"{tmp_path}/country=*/k=1/*.parquet").key_types == {"country": pa.int32(), "k": pa.int32()}
