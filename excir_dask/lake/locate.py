"""From what a user calls a lake (a path, URL, glob or list) to a filesystem and its Parquet files."""

from __future__ import annotations

import os
import posixpath
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyarrow import fs

from excir_dask.errors import LakeError, ReadError, UsageError
from excir_dask.lake.links import each_once, local_glob, local_tree, remarks, same_files
from excir_dask.lake.store_errors import as_os_error, is_transient, redact
from excir_dask.lake.stores import WEB, filesystem_of
from excir_dask.lake.tables.log import METADATA, Table

_GLOB = "*?["

DELTA, ICEBERG = "Delta Lake", "Iceberg"


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
    table: Table | None = None
    """the version that the files belong to; None for plain files"""
    remarks: tuple[str, ...] = ()
    """what was left out, a sentence each"""
    verify_checksums: bool = True
    """whether pages that carry a checksum are checked against it when they are read"""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", redact(self.name))

    def relative(self, path: str) -> str:
        if path.startswith(WEB):  # a signature is none of the file's name, and changes from run to run
            path = path.partition("?")[0]
        return posixpath.relpath(path, self.root) if self.root else path


def locate(
    lake: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    storage_options: Mapping[str, Any] | None = None,
    table_version: int | None = None,
    verify_checksums: bool = True,
) -> Location:
    """Find the files of a lake.

    Parameters
    ----------
    lake : path, URL, glob, or list of files
        A folder is searched through; whatever in it begins with ``_`` or ``.`` is left out.
    storage_options : mapping, optional
        Passed to fsspec for URLs (endpoint, anonymous access and so on).
    table_version : int, optional
        Version of a Delta Lake table, or snapshot id of an Iceberg table; by default the current one.
    verify_checksums : bool
        Check pages that carry a checksum against it whenever they are read.
    """
    names = [os.fspath(lake)] if isinstance(lake, str | os.PathLike) else [os.fspath(item) for item in lake]
    if not names:
        raise UsageError("the list of files is empty; name at least one Parquet file")
    try:
        found = _locate(lake, names, storage_options, table_version)
    except (OSError, pa.ArrowException) as given:
        shown, error = redact(names[0]), as_os_error(given, storage_options)
        if isinstance(error, PermissionError):
            raise LakeError(f"no permission to list {shown}: {error}; ask for read access, check credentials") from None
        if isinstance(error, FileNotFoundError):
            raise LakeError(f"{shown} does not exist: {error}; check bucket and path") from None
        kind = ReadError if is_transient(error) else LakeError
        raise kind(f"{shown} cannot be reached: {error}; check address, credentials and storage options") from None
    if table_version is not None and found.table is None:
        raise UsageError(
            f"version {table_version} was asked for, but {found.name} is neither a Delta Lake nor an Iceberg table"
        )
    return replace(found, verify_checksums=verify_checksums)


def _locate(
    lake: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    names: Sequence[str],
    storage_options: Mapping[str, Any] | None,
    table_version: int | None,
) -> Location:
    if not isinstance(lake, str | os.PathLike):
        return _from_list(names, storage_options)
    filesystem, path = filesystem_of(names[0], storage_options)
    if any(mark in path for mark in _GLOB) and filesystem.get_file_info(path).type == fs.FileType.NotFound:
        return _from_glob(names[0], filesystem, path)
    return _from_path(names[0], filesystem, path, table_version)


def _from_list(names: Sequence[str], storage_options: Mapping[str, Any] | None) -> Location:
    filesystem, _ = filesystem_of(names[0], storage_options)
    paths = [filesystem_of(item, storage_options)[1] for item in names]
    path, times = Counter(paths).most_common(1)[0]
    if times > 1:
        raise UsageError(f"{path} is named {times} times in the list of files, so its rows would count {times} times")
    infos = filesystem.get_file_info(paths)
    for item, info in zip(names, infos, strict=True):
        if info.type != fs.FileType.File:
            raise LakeError(f"{redact(item)} is not a file; a list must name Parquet files (pass a folder by itself)")
    for first, again in same_files(paths) if _is_local(filesystem) else ():
        raise UsageError(f"{first} and {again} are links to one file, so its rows would count twice; name it once")
    root = posixpath.commonpath([posixpath.dirname(path) for path in paths])
    return Location(
        f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else names[0], filesystem, root, _ordered(infos)
    )


def _from_path(name: str, filesystem: fs.FileSystem, path: str, table_version: int | None) -> Location:
    info = filesystem.get_file_info(path)
    if info.type == fs.FileType.File and path.endswith(METADATA):
        return _from_table(name, filesystem, posixpath.dirname(posixpath.dirname(path)), path, table_version)
    if info.type == fs.FileType.File:
        return Location(name, filesystem, posixpath.dirname(path), (info,))
    if info.type == fs.FileType.NotFound:
        raise LakeError(f"{redact(name)} does not exist; check the path, or quote a glob such as 'lake/*.parquet'")
    if _table_kind(filesystem, path) is not None:
        return _from_table(name, filesystem, path, None, table_version)
    _check_outside_tables(name, filesystem, path)
    loops: list[str] = []
    if _is_local(filesystem):
        paths, loops = local_tree(path)
        infos = filesystem.get_file_info(paths)
    else:
        infos = filesystem.get_file_info(fs.FileSelector(path, recursive=True))
    found = [child for child in infos if _is_data(child, path)]
    if not found:
        raise LakeError(f"{redact(name)} holds no Parquet files (names that begin with '_' or '.' are left out)")
    return _without_links(name, filesystem, path, found, loops)


def _from_glob(name: str, filesystem: fs.FileSystem, pattern: str) -> Location:
    stem = pattern[: min(pattern.index(mark) for mark in _GLOB if mark in pattern)]
    root = posixpath.dirname(stem)
    _check_outside_tables(name, filesystem, f"{root}/x")
    loops: list[str] = []
    if _is_local(filesystem):
        matches, loops = local_glob(filesystem, pattern)
    else:
        from fsspec.implementations.arrow import ArrowFSWrapper

        matches = sorted(ArrowFSWrapper(filesystem).glob(pattern))
    found = [info for info in (filesystem.get_file_info(matches) if matches else []) if _is_data(info, root or ".")]
    if not found:
        raise LakeError(f"no file matches {redact(name)} (names that begin with '_' or '.' are left out)")
    return _without_links(name, filesystem, root, found, loops)


def _is_local(filesystem: fs.FileSystem) -> bool:
    return isinstance(filesystem, fs.LocalFileSystem)


def _without_links(
    name: str, filesystem: fs.FileSystem, root: str, found: Sequence[fs.FileInfo], loops: Sequence[str]
) -> Location:
    """The location of files that were looked for, each of them once."""
    repeated: list[str] = []
    if _is_local(filesystem):
        found, repeated = each_once(found, root)
    location = Location(name, filesystem, root, _ordered(found))
    shown = [[location.relative(path) for path in paths] for paths in (repeated, loops)]
    return replace(location, remarks=tuple(remarks(*shown)))


def _is_data(info: fs.FileInfo, root: str) -> bool:
    """A file whose name below the root is not hidden; object stores mark folders by empty files that end with '/'."""
    parts = posixpath.relpath(info.path, root).split("/")
    hidden = any(part.startswith(("_", ".")) and part not in (".", "..") for part in parts)
    return info.type == fs.FileType.File and not info.path.endswith("/") and not hidden


def _ordered(infos: Sequence[fs.FileInfo]) -> tuple[fs.FileInfo, ...]:
    return tuple(sorted(infos, key=lambda info: info.path))


def _from_table(name: str, filesystem: fs.FileSystem, root: str, metadata: str | None, version: int | None) -> Location:
    """The files that a table's log names: its folder may also hold files of deleted rows."""
    shown = redact(name)
    if metadata is None and _table_kind(filesystem, root) == DELTA:
        from excir_dask.lake.tables.delta import read_delta

        table = read_delta(shown, filesystem, root, version)
    else:
        from excir_dask.lake.tables.iceberg import newest_metadata, read_iceberg

        metadata = metadata or newest_metadata(shown, filesystem, root)
        table = read_iceberg(shown, filesystem, root, metadata, version)
    if not table.files:
        raise LakeError(f"version {table.version} of {shown} has no files, so it has no rows")
    infos = filesystem.get_file_info(sorted(table.files))
    for info in infos:
        if info.type != fs.FileType.File:
            raise LakeError(
                f"{info.path} belongs to version {table.version} of {shown} but is gone, probably cleaned up since "
                "(vacuum, expired snapshots); ask for a newer version"
            )
    return Location(name, filesystem, root, _ordered(infos), table)


def _table_kind(filesystem: fs.FileSystem, path: str) -> str | None:
    log, metadata = filesystem.get_file_info([f"{path}/_delta_log", f"{path}/metadata"])
    if log.type == fs.FileType.Directory:
        return DELTA
    if metadata.type == fs.FileType.Directory and any(
        info.path.endswith(METADATA) for info in filesystem.get_file_info(fs.FileSelector(metadata.path))
    ):
        return ICEBERG
    return None


def _check_outside_tables(name: str, filesystem: fs.FileSystem, path: str) -> None:
    """A part of a table's folder may hold deleted rows just as the whole does."""
    if path.startswith(WEB):
        return
    folder = posixpath.dirname(path)
    while folder not in ("", "/"):
        try:
            kind = _table_kind(filesystem, folder)
        except OSError:  # who may read a folder need not be allowed to look around it
            return
        if kind is not None:
            raise LakeError(
                f"{redact(name)} lies in the folder of the {kind} table {folder}, where files may hold deleted rows; "
                "name the table's folder, or pass a list of files"
            )
        folder = posixpath.dirname(folder)
