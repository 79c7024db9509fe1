"""A lake in an object store, spoken to over HTTP: moto's server on this machine's loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lakes import cir, found, numbers, snapshot, write

from excir_dask.errors import LakeError
from excir_dask.lake.locate import locate

moto_server = pytest.importorskip("moto.server")

FILES = ["site=1/part 0.parquet", "site=2/part 0.parquet"]


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """Of a server with an empty store."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "testing")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
            patch.delenv(name, raising=False)
        server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
        try:
            yield server.get_host_and_port()[1]
        finally:
            server.stop()


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory, port: int) -> Path:
    """A Hive-partitioned lake; the same files are in the bucket ``store``."""
    from pyarrow import fs

    folder = tmp_path_factory.mktemp("s3") / "lake"
    for seed, name in enumerate(FILES):
        write(folder / name, numbers(seed=seed), row_group_size=25)
    (folder / "_SUCCESS").touch()
    bucket = fs.S3FileSystem(endpoint_override=f"127.0.0.1:{port}", scheme="http", allow_bucket_creation=True)
    bucket.create_dir("store")
    fs.copy_files(str(folder), "store/lake", source_filesystem=fs.LocalFileSystem(), destination_filesystem=bucket)
    return folder


def pyarrow_url(path: str, port: int) -> str:
    return f"s3://store/{path}?endpoint_override=127.0.0.1:{port}&scheme=http"


def options(port: int) -> dict[str, object]:
    pytest.importorskip("s3fs")
    return {"client_kwargs": {"endpoint_url": f"http://127.0.0.1:{port}"}}


def test_pyarrows_s3_gives_the_scores_of_the_local_copy(local, port):
    expected = cir(local)
    assert set(expected) == {"a", "b", "site"}
    assert cir(pyarrow_url("lake", port)) == expected


def test_fsspecs_s3_gives_the_scores_of_the_local_copy(local, port):
    assert cir("s3://store/lake", storage_options=options(port)) == cir(local)


def test_a_sample_is_the_same_rows_wherever_the_lake_lies(local, port):
    expected = cir(local, fraction=0.5)
    assert expected != cir(local)
    assert cir(pyarrow_url("lake", port), fraction=0.5) == expected
    assert cir("s3://store/lake", storage_options=options(port), fraction=0.5) == expected


def test_snapshots_agree_on_files_rows_and_keys(local, port):
    here = snapshot(local)
    for there in (
        snapshot(pyarrow_url("lake", port)),
        snapshot("s3://store/lake", storage_options=options(port)),
    ):
        assert [(f.relative, f.size, f.row_groups, f.keys) for f in there.files] == [
            (f.relative, f.size, f.row_groups, f.keys) for f in here.files
        ]
        assert there.key_types == here.key_types


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("lake/", FILES),
        ("lake/*/*.parquet", FILES),
        ("lake/**/*.parquet", FILES),
        ("lake/site=?/*.parquet", FILES),
        ("lake/site=[2-9]/*.parquet", FILES[1:]),
        ("lake/site=1/part 0.parquet", ["part 0.parquet"]),
    ],
)
def test_globs_and_spaces_work_beside_the_options_of_a_url(local, port, path, expected):
    assert found(pyarrow_url(path, port)) == expected
    assert found(f"s3://store/{path}", storage_options=options(port)) == expected


def test_what_is_not_in_the_store_is_an_error_that_names_it(local, port):
    with pytest.raises(LakeError, match=r"store/nothing.* does not exist"):
        locate(pyarrow_url("nothing", port))
    with pytest.raises(LakeError, match="s3://nobucket/lake does not exist"):
        locate("s3://nobucket/lake", options(port))
