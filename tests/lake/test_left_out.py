"""Names in a lake that are no files are told, and folders of Spark are files to a glob."""

from __future__ import annotations

import os
import socket

import pytest
from lakes import found, numbers, snapshot, write

from excir_dask.errors import LakeError
from excir_dask.lake.locate import locate

ALL = ["b.parquet", "deep/a.parquet", "deep/er/c.parquet"]


@pytest.fixture
def special(lake, monkeypatch):
    """A lake with a link that leads to nothing, a pipe and a socket."""
    (lake / "gone.parquet").symlink_to("nowhere.parquet")
    os.mkfifo(lake / "pipe.parquet")
    monkeypatch.chdir(lake)  # a socket's name has at most 107 characters
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("socket.parquet")
        yield lake


@pytest.mark.parametrize("pattern", ["", "/**/*.parquet"])
def test_what_is_no_file_is_told(special, pattern):
    location = locate(f"{special}{pattern}")
    assert [location.relative(info.path) for info in location.files] == ALL
    assert location.remarks == (
        "1 link was left out because it leads to nothing: gone.parquet",
        "2 names were left out because they are pipes, sockets or devices: pipe.parquet, socket.parquet",
    )


def test_a_lake_of_nothing_else_says_so(special):
    for name, said in (("gone*", "leads to nothing"), ("pipe*", "is a pipe"), ("pipe.parquet", "is a pipe")):
        with pytest.raises(LakeError, match=said):
            locate(f"{special}/{name}")


def test_a_glob_takes_the_files_of_sparks_folders(lake):
    write(lake / "spark.parquet" / "part-0.snappy.parquet", numbers(seed=7))
    (lake / "spark.parquet" / "_SUCCESS").touch()
    spark = "spark.parquet/part-0.snappy.parquet"
    assert found(f"{lake}/*.parquet") == ["b.parquet", spark]
    assert found(f"{lake}/**/*.parquet") == [*ALL, spark], "once, though both patterns match"
    assert snapshot(f"{lake}/spark*").rows == snapshot(lake / "spark.parquet").rows
    assert locate(f"{lake}/*.parquet").remarks == ()


def test_folders_that_match_without_a_file_are_told(lake):
    (lake / "empty.parquet").mkdir()
    assert locate(f"{lake}/*").remarks == (
        "2 folders match the pattern, and no file in them does: deep, empty.parquet",
    )
    assert locate(f"{lake}/**").remarks == ("1 folder matches the pattern, and no file in it does: empty.parquet",)
    with pytest.raises(LakeError, match=r"no file matches .*empty.parquet"):
        locate(f"{lake}/empty*")


def test_a_table_is_no_folder_of_spark(lake):
    log = lake / "table.parquet" / "_delta_log"
    log.mkdir(parents=True)
    (log / "00000000000000000000.json").write_text("{}")
    write(lake / "table.parquet" / "deleted.parquet", numbers(seed=7))
    with pytest.raises(LakeError, match=r"table.parquet matches, but it is a Delta Lake table; name it by itself"):
        locate(f"{lake}/*.parquet")
