"""From a URL to the filesystem it lies in: this machine's, one of pyarrow's own, or any that fsspec knows."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote, unquote

import pyarrow as pa
from pyarrow import fs

from excir_dask.errors import UsageError
from excir_dask.lake.store_errors import as_os_error, is_transient, no_range_requests, redact, redacted_message

T = TypeVar("T")

PACKAGES = {
    "s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "az": "adlfs", "abfs": "adlfs", "abfss": "adlfs",
    "adl": "adlfs", "http": "aiohttp", "https": "aiohttp", "webhdfs": "requests", "sftp": "paramiko",
}  # fmt: skip
"""what fsspec needs to open a scheme"""

WEB = ("http://", "https://")

BUCKETS = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl")
"""schemes of object stores"""

_GOOGLE_SECONDS = 60
"""for which Google's client tries again what fails"""


def filesystem_of(name: str, storage_options: Mapping[str, Any] | None) -> tuple[fs.FileSystem, str]:
    """The filesystem of a path or URL, and the path in it.

    With storage options it is always fsspec's; without, pyarrow's own where it has one: those read without Python's
    lock.
    """
    if "://" not in name:
        if storage_options:
            raise UsageError(f"storage options were given but {redact(name)} is a local path")
        return fs.LocalFileSystem(), os.path.abspath(os.path.expanduser(name)).replace(os.sep, "/")
    scheme = name.split("://", 1)[0]
    if not storage_options:
        try:
            filesystem, path = fs.FileSystem.from_uri(_patient(scheme, _escaped(name)))
            return filesystem, path
        except (pa.ArrowInvalid, NotImplementedError) as error:
            if scheme in ("s3", "gs", "gcs") and isinstance(error, pa.ArrowInvalid):
                raise UsageError(f"cannot open {redact(name)}: {redacted_message(error)}") from None
            # not one of pyarrow's own schemes: fsspec may know it
        except OSError as error:
            if scheme not in ("hdfs", "viewfs"):
                raise
            reason = redacted_message(error).splitlines()[0]
            raise UsageError(
                f"cannot open {scheme}:// locations: {reason}; they need Java and Hadoop's client here and on every "
                "worker (JAVA_HOME, HADOOP_HOME and CLASSPATH must be set), or write webhdfs://"
            ) from None
    return _of_fsspec(name, scheme, storage_options)


def _of_fsspec(name: str, scheme: str, storage_options: Mapping[str, Any] | None) -> tuple[fs.FileSystem, str]:
    import fsspec

    try:
        filesystem, path = fsspec.core.url_to_fs(name, **(storage_options or {}))
    except ImportError as error:
        package = PACKAGES.get(scheme)
        cure = f"; pip install {package}, here and on every worker" if package else ""
        raise UsageError(
            f"cannot open {scheme}:// locations: {redacted_message(error, storage_options)}{cure}"
        ) from None
    except (ValueError, TypeError) as error:  # a scheme or an option that nobody knows
        raise UsageError(f"cannot open {scheme}:// locations: {redacted_message(error, storage_options)}") from None
    except OSError:
        raise
    except Exception as error:
        raise as_os_error(error, storage_options) from None
    return fs.PyFileSystem(Handler(filesystem)), path.rstrip("/")


class Handler(fs.FSSpecHandler):  # type: ignore[misc]  # pyarrow has no annotations
    """fsspec for pyarrow: errors are OSErrors, files are read in the ranges asked for, web folders can be listed."""

    def create_dir(self, path: str, recursive: bool) -> None:
        # in buckets there are no folders to make, and a bucket is not made because somebody has mistyped its name
        if not set(BUCKETS) & {self.fs.protocol, *self.fs.protocol}:
            self._careful(lambda: super(Handler, self).create_dir(path, recursive))

    def get_file_info(self, paths: list[str]) -> list[fs.FileInfo]:
        self.fs.invalidate_cache()  # a listing that is kept would hide that a file has changed
        return [self._careful(lambda path=path: self._info(path)) for path in paths]  # type: ignore[misc]

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        if selector.base_dir.startswith(WEB):
            return self._careful(lambda: self._links(selector.base_dir, selector.recursive))
        return self._careful(lambda: super(Handler, self).get_file_info_selector(selector))

    def open_input_file(self, path: str) -> pa.PythonFile:
        from fsspec.caching import BaseCache
        from fsspec.spec import AbstractBufferedFile

        file = self._careful(lambda: self.fs.open(path, mode="rb"))
        if type(file).__name__ == "HTTPStreamFile":
            raise no_range_requests()
        if isinstance(file, AbstractBufferedFile):
            # what is asked for and nothing else: s3fs would fetch 50 MB where a column has 1 MB
            fetch = file._fetch_range
            file.cache = BaseCache(
                file.blocksize, lambda start, end: self._careful(lambda: fetch(start, end)), file.size
            )
        return pa.PythonFile(file, mode="r")

    open_input_stream = open_input_file

    @staticmethod
    def _create_file_info(path: str, info: Mapping[str, Any]) -> fs.FileInfo:
        kind = {"file": fs.FileType.File, "directory": fs.FileType.Directory}.get(info["type"], fs.FileType.Unknown)
        if str(path).startswith(WEB) and str(info.get("mimetype")).startswith("text/html"):
            kind = fs.FileType.Directory
        times = [info.get(key) for key in ("mtime", "LastModified", "last_modified")]
        when = next((time for time in times if time is not None and not isinstance(time, str)), None)
        return fs.FileInfo(path, kind, size=info.get("size") if kind == fs.FileType.File else None, mtime=when)

    def _info(self, path: str) -> fs.FileInfo:
        try:
            return self._create_file_info(path, self.fs.info(path))
        except FileNotFoundError as error:
            reason = error.__cause__
            if isinstance(reason, Exception) and is_transient(reason):  # a web server that is down is no missing file
                raise reason from None
            return fs.FileInfo(path, fs.FileType.NotFound)

    def _links(self, folder: str, recursive: bool) -> list[fs.FileInfo]:
        """What a web page links to; pages of servers write '=' and spaces in codes, and have links that sort them."""
        found = self.fs.find(folder, maxdepth=None if recursive else 1)
        paths = sorted({unquote(link) for link in found if "?" not in link and link.rstrip("/") != folder})
        return [self._info(path) for path in paths]

    def _careful(self, action: Callable[[], T]) -> T:
        try:
            return action()
        except Exception as error:
            raise as_os_error(error, self.fs.storage_options) from None


def _patient(scheme: str, url: str) -> str:
    """Google's client tries for 15 minutes by itself; here what fails is tried again in other ways."""
    if scheme not in ("gs", "gcs") or "retry_limit_seconds=" in url:
        return url
    return f"{url}{'&' if re.search(r'[?][a-z_]+=', url) else '?'}retry_limit_seconds={_GOOGLE_SECONDS}"


def _escaped(url: str) -> str:
    """Glob characters are not allowed in a URI; pyarrow decodes them again. A '?' before 'option=' begins the query.

    >>> _escaped("s3://bucket/lake/part-?.parquet?region=eu-west-1")
    's3://bucket/lake/part-%3F.parquet?region=eu-west-1'
    """
    path, query = re.fullmatch(r"(.*?)(\?\w+=.*)?", url, re.DOTALL).groups(default="")  # type: ignore[union-attr]
    return quote(path, safe="/:%*@=+,&~!$'();") + query
