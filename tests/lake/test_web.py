"""Lakes on a web server, and what is said of stores whose packages are not there."""

from __future__ import annotations

import pytest
from lakes import cir, found, numbers, write
from stores import web

from excir_dask.errors import LakeError, ReadError
from excir_dask.lake.locate import locate

pytest.importorskip("aiohttp")


FILES = ["site=1/part 0.parquet", "site=2/part 0.parquet"]


@pytest.fixture
def folder(tmp_path):
    for seed, name in enumerate(FILES):
        write(tmp_path / "lake" / name, numbers(seed=seed), row_group_size=25)
    (tmp_path / "lake" / "_SUCCESS").touch()
    return tmp_path


def test_a_web_folder_gives_the_scores_of_the_local_copy(folder):
    with web(folder, ranges=True) as address:
        for name in ("lake", "lake/"):
            assert found(f"{address}/{name}") == FILES
        assert cir(f"{address}/lake") == cir(folder / "lake")


def test_single_files_of_the_web_need_no_folder(folder):
    local = [folder / "lake" / name for name in FILES]
    with web(folder, ranges=True) as address:
        assert cir([f"{address}/lake/{name}" for name in FILES]) == cir(local)
        assert found(f"{address}/lake/{FILES[0]}?X-Amz-Signature=abc") == ["part 0.parquet"]


def test_a_server_without_ranges_is_named(folder):
    with (
        web(folder, ranges=False) as address,
        pytest.raises(LakeError, match=r"part 0.parquet cannot be read: its server does not support range"),
    ):
        cir(f"{address}/lake")


def test_a_web_page_that_is_not_there_does_not_exist(folder):
    with web(folder, ranges=True) as address, pytest.raises(LakeError, match=r"nothing does not exist") as caught:
        locate(f"{address}/nothing")
    assert caught.value.exit_code == 3


def test_a_server_that_is_down_may_be_up_later():
    with pytest.raises(ReadError, match=r"127.0.0.1:9/lake cannot be reached"):
        locate("http://127.0.0.1:9/lake")
