"""URLs find their filesystem, or say what is missing."""

from __future__ import annotations

import pytest

from excir_dask.errors import ReadError, UsageError
from excir_dask.lake.locate import locate


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
