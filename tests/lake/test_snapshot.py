"""What the footers say: files, rows, schemas, Hive keys and the fingerprint."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lakes import ALWAYS, cir, columns, faulty, numbers, snapshot, write

from excir_dask import explain
from excir_dask.errors import LakeChangedError, LakeError, SchemaError


def test_rows_and_row_groups_are_those_of_the_footers(lake):
    shot = snapshot(lake)
    assert shot.rows == 120
    assert [file.row_groups for file in shot.files] == [(25, 15)] * 3
    assert shot.size == sum(path.stat().st_size for path in lake.rglob("*.parquet"))


def test_files_of_one_schema_share_it_whatever_metadata_they_carry(tmp_path):
    write(tmp_path / "0.parquet", numbers())
    write(tmp_path / "1.parquet", numbers().replace_schema_metadata({"written by": "somebody else"}))
    write(tmp_path / "2.parquet", numbers().append_column("extra", pa.array(range(40))))
    write(tmp_path / "3.parquet", numbers())
    shot = snapshot(tmp_path)
    assert [file.schema for file in shot.files] == [0, 0, 1, 0]
    assert [schema.names for schema in shot.schemas] == [["a", "b", "pred"], ["a", "b", "pred", "extra"]]


def test_a_moved_lake_keeps_its_fingerprint(lake, tmp_path):
    before = snapshot(lake).fingerprint
    moved = shutil.move(lake, tmp_path / "elsewhere")
    assert snapshot(moved).fingerprint == before
    assert snapshot(f"file://{moved}").fingerprint == before


@pytest.mark.parametrize("change", ["touch", "rewrite", "add", "remove", "rename", "schema"])
def test_the_fingerprint_changes_with_every_change_of_the_lake(lake, change):
    before = snapshot(lake).fingerprint
    file = lake / "b.parquet"
    stat = file.stat()
    if change == "touch":
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1_000_000_000))
    elif change == "rewrite":
        write(file, numbers(seed=9))
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    elif change == "add":
        shutil.copy2(file, lake / "z.parquet")
    elif change == "remove":
        file.unlink()
    elif change == "rename":
        file.rename(lake / "bb.parquet")
    else:
        write(file, numbers().rename_columns(["A", "b", "pred"]), row_group_size=25)
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert snapshot(lake).fingerprint != before


def test_looking_twice_gives_one_fingerprint(lake):
    assert snapshot(lake).fingerprint == snapshot(lake).fingerprint


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


@pytest.mark.parametrize("call", ["open", "read"])
def test_a_footer_is_read_again_after_errors_that_pass(lake, pauses, call):
    with faulty({(call, "a.parquet"): ({1, 2, 3}, OSError)}) as calls:
        assert snapshot(f"faulty://{lake}").rows == 120
    assert calls.count(("open", "a.parquet")) == 4
    assert pauses == sorted(pauses)
    assert len(pauses) == 3


def test_a_footer_that_stays_unreadable_is_an_error_that_names_the_file(lake, pauses):
    with (
        faulty({("read", "a.parquet"): (ALWAYS, OSError)}),
        pytest.raises(LakeError, match=r"deep/a\.parquet .* cannot be read: injected.*4 tries"),
    ):
        snapshot(f"faulty://{lake}")


def test_a_column_name_that_is_not_utf8_is_an_error_that_names_the_file(tmp_path):
    file = write(tmp_path / "0.parquet", {"speed": [1.0, 2.0], "pred": [1.0, 2.0]}, store_schema=False)
    file.write_bytes(file.read_bytes().replace(b"speed", b"sp\xb4ed"))
    with pytest.raises(LakeError, match=r"0\.parquet .* cannot be read as Parquet"):
        snapshot(tmp_path)


def test_a_file_removed_after_the_listing_is_named(lake):
    with (
        faulty({("open", "a.parquet"): ({1}, FileNotFoundError)}),
        pytest.raises(LakeChangedError, match=r"deep/a\.parquet was removed"),
    ):
        snapshot(f"faulty://{lake}")


def test_a_file_rewritten_with_the_same_size_during_a_run_is_noticed(tmp_path, monkeypatch, synchronous):
    import importlib

    measure = importlib.import_module("excir_dask.graph.measure")
    rng = np.random.default_rng(0)

    def write() -> None:
        table = pa.table({"x": rng.standard_normal(50), "pred": rng.standard_normal(50)})
        pq.write_table(table, tmp_path / "a.parquet", compression="none", use_dictionary=False, write_statistics=False)

    write()
    size = (tmp_path / "a.parquet").stat().st_size
    between_scans = measure.centers
    rewritten = []

    def rewrite(*arguments):
        if not rewritten:
            rewritten.append(write())
        return between_scans(*arguments)

    monkeypatch.setattr(measure, "centers", rewrite)
    with pytest.raises(LakeChangedError, match=r"a\.parquet was changed"):
        explain(tmp_path, output="pred")
    assert (tmp_path / "a.parquet").stat().st_size == size
