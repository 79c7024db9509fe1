"""A table format is one entry of the registry and one function."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from lakes import cir, found, numbers, write

from excir_dask.errors import LakeError, UsageError
from excir_dask.lake.locate import locate
from excir_dask.lake.tables.formats import FORMATS, TableFormat, format_of_file, format_of_folder
from excir_dask.lake.tables.table import Table, TableColumn, TableFile


def read_listing(name, filesystem, root, *, version, metadata):
    """A format whose log is a JSON list of files per version."""
    versions = json.loads(filesystem.open_input_file(metadata or f"{root}/_list/current.list").read())
    version = len(versions) - 1 if version is None else version
    columns = tuple(TableColumn(column, pa.float64(), None, (column,)) for column in ("a", "b", "pred"))
    return Table("Listing", version, columns, {}, {f"{root}/{file}": TableFile() for file in versions[version]})


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.setitem(FORMATS, "Listing", TableFormat("_list", read_listing, ".list"))
    for seed in range(3):
        write(tmp_path / "t" / f"{seed}.parquet", numbers(seed=seed))
    (tmp_path / "t" / "_list").mkdir()
    (tmp_path / "t" / "_list" / "current.list").write_text(json.dumps([["0.parquet"], ["1.parquet", "2.parquet"]]))
    return tmp_path / "t"


def test_a_table_format_is_added_by_one_entry(table):
    assert found(table) == ["1.parquet", "2.parquet"]
    assert found(table, table_version=0) == ["0.parquet"]
    assert cir(table) == cir([table / "1.parquet", table / "2.parquet"])
    assert locate(table).table.source == {"table": "Listing", "version": 1}


def test_a_metadata_file_stands_for_its_table(table):
    assert format_of_file(str(table / "_list" / "current.list")) == "Listing"
    assert found(table / "_list" / "current.list") == ["1.parquet", "2.parquet"]


def test_a_folder_of_that_name_without_metadata_is_not_a_table(table):
    (table / "_list" / "current.list").unlink()
    assert found(table) == ["0.parquet", "1.parquet", "2.parquet"]


def test_messages_name_every_format(table, lake):
    with pytest.raises(UsageError, match=r"is not a table \(Delta Lake or Iceberg or Listing\)"):
        locate(lake, table_version=3)
    (table / "deep").mkdir()
    with pytest.raises(LakeError, match="in the folder of the Listing table"):
        locate(table / "deep")


def test_each_format_is_recognised_by_its_own_log(tmp_path):
    local = locate(write(tmp_path / "x.parquet")).filesystem
    for name, each in FORMATS.items():
        log = tmp_path / name / each.folder
        log.mkdir(parents=True)
        if each.metadata_suffix:
            assert format_of_folder(local, str(tmp_path / name)) is None
            (log / f"v1{each.metadata_suffix}").touch()
        assert format_of_folder(local, str(tmp_path / name)) == name
