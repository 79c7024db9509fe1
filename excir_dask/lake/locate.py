"""From what a user calls a lake (a path, URL, glob or list) to a filesystem and its Parquet files."""

from __future__ import annotations

import os
import posixpath
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pyarrow as pa
from pyarrow import fs

from excir_dask.errors import LakeError, UsageError

_GLOB = "*?["


@dataclass(frozen=True)
class Location:
    """The files of a lake, before any of them is opened."""

    name: str
    """what the user typed, for messages, without the credentials that a URL may hold"""
    filesystem: fs.FileSystem
    root: str
    """folder that relative paths start from"""
    files: tuple[fs.FileInfo, ...]
    """in the order of their relative paths"""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", public(self.name))

    def relative(self, path: str) -> str:
        return posixpath.relpath(path, self.root) if self.root else path


def locate(
    lake: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], storage_options: Mapping[str, Any] | None = None
) -> Location:
    """Find the files of a lake.

    Parameters
    ----------
    lake : path, URL, glob, or list of files
        A folder is searched through; whatever in it begins with ``_`` or ``.`` is left out.
    storage_options : mapping, optional
        Passed to fsspec for URLs (endpoint, anonymous access and so on).
    """
    names = [os.fspath(lake)] if isinstance(lake, str | os.PathLike) else [os.fspath(item) for item in lake]
    if not names:
        raise UsageError("the list of files is empty; name at least one Parquet file")
    try:
        if not isinstance(lake, str | os.PathLike):
            return _from_list(names, storage_options)
        filesystem, path = filesystem_of(names[0], storage_options)
        if any(mark in path for mark in _GLOB) and filesystem.get_file_info(path).type == fs.FileType.NotFound:
            return _from_glob(names[0], filesystem, path)
        return _from_path(names[0], filesystem, path)
    except PermissionError as error:
        raise LakeError(f"no permission to list {public(names[0])}: {error}; ask for read access to it") from error
    except OSError as error:
        raise LakeError(f"{public(names[0])} cannot be reached: {error}; check address and credentials") from error


def public(name: str) -> str:
    """A location as it may be shown and saved.

    >>> public("s3://key:secret@bucket/lake")
    's3://***@bucket/lake'
    """
    return re.sub(r"(?<=://)[^/@]+@", "***@", name)


def _from_list(names: Sequence[str], storage_options: Mapping[str, Any] | None) -> Location:
    filesystem, _ = filesystem_of(names[0], storage_options)
    paths = [filesystem_of(item, storage_options)[1] for item in names]
    path, times = Counter(paths).most_common(1)[0]
    if times > 1:
        raise UsageError(f"{path} is named {times} times in the list of files, so its rows would count {times} times")
    infos = filesystem.get_file_info(paths)
    for item, info in zip(names, infos, strict=True):
        if info.type != fs.FileType.File:
            raise LakeError(f"{public(item)} is not a file; a list must name Parquet files (pass a folder by itself)")
    root = posixpath.commonpath([posixpath.dirname(path) for path in paths])
    return Location(
        f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else names[0], filesystem, root, _ordered(infos)
    )


def _from_path(name: str, filesystem: fs.FileSystem, path: str) -> Location:
    info = filesystem.get_file_info(path)
    if info.type == fs.FileType.File:
        return Location(name, filesystem, posixpath.dirname(path), (info,))
    if info.type == fs.FileType.NotFound:
        raise LakeError(f"{public(name)} does not exist; check the path, or quote a glob such as 'lake/*.parquet'")
    _refuse_table_formats(name, filesystem, path)
    found = [
        child for child in filesystem.get_file_info(fs.FileSelector(path, recursive=True)) if _is_data(child, path)
    ]
    if not found:
        raise LakeError(f"{public(name)} holds no Parquet files (names that begin with '_' or '.' are left out)")
    return Location(name, filesystem, path, _ordered(found))


def _from_glob(name: str, filesystem: fs.FileSystem, pattern: str) -> Location:
    from fsspec.implementations.arrow import ArrowFSWrapper

    stem = pattern[: min(pattern.index(mark) for mark in _GLOB if mark in pattern)]
    root = posixpath.dirname(stem)
    matches = ArrowFSWrapper(filesystem).glob(pattern)
    found = [
        info for info in (filesystem.get_file_info(sorted(matches)) if matches else []) if _is_data(info, root or ".")
    ]
    if not found:
        raise LakeError(f"no file matches {public(name)} (names that begin with '_' or '.' are left out)")
    return Location(name, filesystem, root, _ordered(found))


def filesystem_of(name: str, storage_options: Mapping[str, Any] | None = None) -> tuple[fs.FileSystem, str]:
    """The filesystem that a path or URL is on, and its path there."""
    if "://" not in name:
        if storage_options:
            raise UsageError(f"storage options were given but {public(name)} is a local path")
        return fs.LocalFileSystem(), os.path.abspath(os.path.expanduser(name)).replace(os.sep, "/")
    scheme = name.split("://", 1)[0]
    if not storage_options:
        try:
            return fs.FileSystem.from_uri(_escaped(name))
        except (pa.ArrowInvalid, NotImplementedError) as error:
            if scheme in ("s3", "gs", "gcs") and isinstance(error, pa.ArrowInvalid):
                raise UsageError(f"cannot open {public(name)}: {error}") from error
            # not one of pyarrow's own schemes: fsspec may know it
    import fsspec

    try:
        filesystem, path = fsspec.core.url_to_fs(name, **(storage_options or {}))
    except (ValueError, ImportError) as error:
        raise UsageError(f"cannot open {scheme}:// locations: {error}") from error
    return fs.PyFileSystem(fs.FSSpecHandler(filesystem)), path.rstrip("/")


def _escaped(url: str) -> str:
    """Glob characters are not allowed in a URI; pyarrow decodes them again. A '?' before 'option=' begins the query.

    >>> _escaped("s3://bucket/lake/part-?.parquet?region=eu-west-1")
    's3://bucket/lake/part-%3F.parquet?region=eu-west-1'
    """
    path, query = re.fullmatch(r"(.*?)(\?\w+=.*)?", url, re.DOTALL).groups(default="")  # type: ignore[union-attr]
    return quote(path, safe="/:%*@=+,&~!$'();") + query


def _is_data(info: fs.FileInfo, root: str) -> bool:
    """A file whose name below the root is not hidden; object stores mark folders by empty files that end with '/'."""
    parts = posixpath.relpath(info.path, root).split("/")
    hidden = any(part.startswith(("_", ".")) and part not in (".", "..") for part in parts)
    return info.type == fs.FileType.File and not info.path.endswith("/") and not hidden


def _ordered(infos: Sequence[fs.FileInfo]) -> tuple[fs.FileInfo, ...]:
    return tuple(sorted(infos, key=lambda info: info.path))


def _refuse_table_formats(name: str, filesystem: fs.FileSystem, path: str) -> None:
    """A table format's folder also holds files of deleted rows: reading them all would be wrong without a word."""
    for folder, kind in (("_delta_log", "a Delta Lake"), ("metadata", "an Iceberg")):
        inside = f"{path}/{folder}"
        if filesystem.get_file_info(inside).type != fs.FileType.Directory:
            continue
        if folder == "metadata" and not any(
            info.path.endswith(".metadata.json") for info in filesystem.get_file_info(fs.FileSelector(inside))
        ):
            continue
        raise LakeError(
            f"{public(name)} is {kind} table, whose folder may hold files with deleted rows; "
            "pass the list of files of the version you want to explain"
        )
