"""What the footers say: files, rows, schemas, Hive keys and the fingerprint."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lakes import ALWAYS, faulty, numbers, snapshot, write

from excir_dask import explain
from excir_dask.errors import LakeChangedError, LakeError


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
    from excir_dask.graph.scans import Scans

    rng = np.random.default_rng(0)

    def write() -> None:
        table = pa.table({"x": rng.standard_normal(50), "pred": rng.standard_normal(50)})
        pq.write_table(table, tmp_path / "a.parquet", compression="none", use_dictionary=False, write_statistics=False)

    write()
    size = (tmp_path / "a.parquet").stat().st_size
    between_scans = Scans.all_rows
    rewritten = []

    def rewrite(*arguments, **options):
        if not rewritten:
            rewritten.append(write())
        return between_scans(*arguments, **options)

    monkeypatch.setattr(Scans, "all_rows", rewrite)
    with pytest.raises(LakeChangedError, match=r"a\.parquet was changed"):
        explain(tmp_path, output="pred")
    assert (tmp_path / "a.parquet").stat().st_size == size
