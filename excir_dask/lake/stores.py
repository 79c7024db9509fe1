"""Find the filesystem for a URL: local, one of pyarrow's own, or any that fsspec supports."""

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
"""package that fsspec needs per scheme"""

WEB = ("http://", "https://")

BUCKETS = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl")
"""schemes of object stores"""

_GOOGLE_RETRY_SECONDS = 60
"""how long Google's client retries by itself; the default of 15 minutes is too long, as reads are retried here too"""


def filesystem_of(name: str, storage_options: Mapping[str, Any] | None) -> tuple[fs.FileSystem, str]:
    """The filesystem of a path or URL, and the path in it.

    With storage options it is always fsspec's. Without them it is pyarrow's own if there is one, because those read
    without holding the GIL.
    """
    if "://" not in name:
        if storage_options:
            raise UsageError(f"storage options were given, but {redact(name)} is a local path; leave them out")
        return fs.LocalFileSystem(), os.path.abspath(os.path.expanduser(name)).replace(os.sep, "/")
    scheme = name.split("://", 1)[0]
    if not storage_options:
        try:
            filesystem, path = fs.FileSystem.from_uri(_with_retry_limit(scheme, _escaped(name)))
            return filesystem, path
        except (pa.ArrowInvalid, NotImplementedError) as error:
            if scheme in ("s3", "gs", "gcs") and isinstance(error, pa.ArrowInvalid):
                raise UsageError(f"cannot open {redact(name)}: {redacted_message(error)}") from None
            # not one of pyarrow's own schemes: try fsspec
        except OSError as error:
            if scheme not in ("hdfs", "viewfs"):
                raise
            reason = redacted_message(error).splitlines()[0]
            raise UsageError(
                f"cannot open {scheme}:// locations: {reason}; they need Java and Hadoop's client on this machine "
                "and on every worker (set JAVA_HOME, HADOOP_HOME and CLASSPATH); or use webhdfs://"
            ) from None
    return _from_fsspec(name, scheme, storage_options)


def _from_fsspec(name: str, scheme: str, storage_options: Mapping[str, Any] | None) -> tuple[fs.FileSystem, str]:
    import fsspec

    try:
        filesystem, path = fsspec.core.url_to_fs(name, **(storage_options or {}))
    except ImportError as error:
        package = PACKAGES.get(scheme)
        advice = f"; pip install {package}, on this machine and on every worker" if package else ""
        raise UsageError(
            f"cannot open {scheme}:// locations: {redacted_message(error, storage_options)}{advice}"
        ) from None
    except (ValueError, TypeError) as error:  # an unknown scheme or option
        raise UsageError(f"cannot open {scheme}:// locations: {redacted_message(error, storage_options)}") from None
    except OSError:
        raise
    except Exception as error:
        raise as_os_error(error, storage_options) from None
    return fs.PyFileSystem(Handler(filesystem)), path.rstrip("/")


class Handler(fs.FSSpecHandler):  # type: ignore[misc]  # pyarrow has no annotations
    """fsspec for pyarrow: raises OSErrors, reads exactly the ranges asked for, and lists web folders."""

    def create_dir(self, path: str, recursive: bool) -> None:
        # buckets have no folders, and a mistyped bucket must not be created
        if not set(BUCKETS) & {self.fs.protocol, *self.fs.protocol}:
            self._translate_errors(lambda: super(Handler, self).create_dir(path, recursive))

    def get_file_info(self, paths: list[str]) -> list[fs.FileInfo]:
        self.fs.invalidate_cache()  # a cached listing would hide changes
        return [self._translate_errors(lambda path=path: self._info(path)) for path in paths]  # type: ignore[misc]

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        if selector.base_dir.startswith(WEB):
            return self._translate_errors(lambda: self._links(selector.base_dir, selector.recursive))
        return self._translate_errors(lambda: super(Handler, self).get_file_info_selector(selector))

    def open_input_file(self, path: str) -> pa.PythonFile:
        from fsspec.caching import BaseCache
        from fsspec.spec import AbstractBufferedFile

        file = self._translate_errors(lambda: self.fs.open(path, mode="rb"))
        if type(file).__name__ == "HTTPStreamFile":
            raise no_range_requests()
        if isinstance(file, AbstractBufferedFile):
            # no read-ahead: s3fs would fetch 50 MB for a column of 1 MB
            fetch = file._fetch_range
            file.cache = BaseCache(
                file.blocksize, lambda start, end: self._translate_errors(lambda: fetch(start, end)), file.size
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
            if isinstance(reason, Exception) and is_transient(reason):  # the server is down, the file is not missing
                raise reason from None
            return fs.FileInfo(path, fs.FileType.NotFound)

    def _links(self, folder: str, recursive: bool) -> list[fs.FileInfo]:
        """Files that a web page links to. Index pages quote '=' and spaces, and have links that sort the page."""
        found = self.fs.find(folder, maxdepth=None if recursive else 1)
        paths = sorted({unquote(link) for link in found if "?" not in link and link.rstrip("/") != folder})
        return [self._info(path) for path in paths]

    def _translate_errors(self, action: Callable[[], T]) -> T:
        try:
            return action()
        except Exception as error:
            raise as_os_error(error, self.fs.storage_options) from None


def _with_retry_limit(scheme: str, url: str) -> str:
    """The URL with a limit on the retries of Google's client."""
    if scheme not in ("gs", "gcs") or "retry_limit_seconds=" in url:
        return url
    return f"{url}{'&' if re.search(r'[?][a-z_]+=', url) else '?'}retry_limit_seconds={_GOOGLE_RETRY_SECONDS}"


def _escaped(url: str) -> str:
    """The URL with glob characters quoted, which pyarrow unquotes. A '?' before 'option=' starts the query.

    >>> _escaped("s3://bucket/lake/part-?.parquet?region=eu-west-1")
    's3://bucket/lake/part-%3F.parquet?region=eu-west-1'
    """
    path, query = re.fullmatch(r"(.*?)(\?\w+=.*)?", url, re.DOTALL).groups(default="")  # type: ignore[union-attr]
    return quote(path, safe="/:%*@=+,&~!$'();") + query
