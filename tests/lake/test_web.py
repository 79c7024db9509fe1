"""Lakes on a web server, and what is said of stores whose packages are not there."""

from __future__ import annotations

import pytest
from lakes import cir, found, numbers, write
from stores import web

from excir_dask.errors import LakeError, ReadError, UsageError
from excir_dask.lake.locate import locate
from excir_dask.lake.store_errors import as_os_error, redact

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


@pytest.mark.parametrize(
    ("scheme", "package"), [("az", "adlfs"), ("abfs", "adlfs"), ("gs", "gcsfs"), ("s3", "s3fs"), ("sftp", "paramiko")]
)
def test_a_package_that_is_missing_is_named(scheme, package, monkeypatch):
    def missing(*_, **__):
        raise ImportError("not installed")

    monkeypatch.setattr("fsspec.core.url_to_fs", missing)
    with pytest.raises(UsageError, match=rf"cannot open {scheme}:// locations.*pip install {package}"):
        locate(f"{scheme}://bucket/lake", {"some": "option"})


def test_hdfs_without_java_says_what_it_needs(monkeypatch):
    def no_java(uri):
        raise OSError("Unable to load libjvm: dlopen failed\nand so on")

    monkeypatch.setattr("excir_dask.lake.stores.fs.FileSystem", type("Fake", (), {"from_uri": staticmethod(no_java)}))
    with pytest.raises(UsageError, match=r"Unable to load libjvm.*JAVA_HOME.*webhdfs"):
        locate("hdfs://127.0.0.1:9/lake")


def test_a_google_store_that_is_down_is_not_waited_for(monkeypatch):
    monkeypatch.setattr("excir_dask.lake.stores._GOOGLE_RETRY_SECONDS", 1)
    with pytest.raises(ReadError, match=r"gs://\*\*\*@bucket/lake.*cannot be reached"):
        locate("gs://anonymous@bucket/lake?endpoint_override=127.0.0.1:9&scheme=http")


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("AWS Error ACCESS_DENIED during HeadObject operation: No response body.", PermissionError),
        ("AWS Error NO_SUCH_BUCKET during ListObjectsV2 operation: The bucket does not exist", FileNotFoundError),
        ("AWS Error UNKNOWN (HTTP status 503) during HeadObject operation: No response body.", ConnectionError),
        ("AWS Error NETWORK_CONNECTION during HeadObject operation: curlCode: 7, Could not connect", ConnectionError),
        ("[Errno 16] Service Unavailable", ConnectionError),
        ("[Errno 22] Bad Request", OSError),
    ],
)
def test_messages_of_stores_are_told_apart(message, kind):
    assert type(as_os_error(OSError(f"When getting information for key 'x' in bucket 'b': {message}"))) is kind


def test_what_is_shown_of_a_url_has_no_credentials():
    assert redact("s3://key:se/cr+et@bucket/lake") == "s3://***@bucket/lake"
    assert redact("http://host:80/a@b/c") == "http://host:80/a@b/c"
    assert redact("https://u:p@host/x?sig=abc%3D&se=2026&token=t") == "https://***@host/x?sig=***&se=2026&token=***"
