"""Find the files of a lake, given a path, URL, glob or list."""

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
from excir_dask.lake.left_out import FOLDER, LOOP, REPEATED, remarks, unreadable
from excir_dask.lake.links import deduplicate, local_glob, local_tree, same_files
from excir_dask.lake.store_errors import as_os_error, is_transient, redact
from excir_dask.lake.stores import WEB, filesystem_of
from excir_dask.lake.tables.formats import FORMATS, format_of_file, format_of_folder
from excir_dask.lake.tables.table import Table

_GLOB = "*?["

_HIDDEN = ("_", ".")


@dataclass(frozen=True)
class Location:
    """The files of a lake, before any of them is opened."""

    name: str
    """what the user typed, for messages, without credentials"""
    filesystem: fs.FileSystem
    root: str
    """folder that relative paths start from"""
    files: tuple[fs.FileInfo, ...]
    """in the order of their paths"""
    table: Table | None = None
    """the table version that the files belong to; None for plain files"""
    remarks: tuple[str, ...] = ()
    """sentences that say what was left out"""
    verify_checksums: bool = True
    """verify the checksums of pages that have one"""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", redact(self.name))

    def relative(self, path: str) -> str:
        """The path below the root."""
        if path.startswith(WEB):  # a signature is not part of the file's name, and changes from run to run
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
        Folders are searched recursively. Names that start with ``_`` or ``.`` are ignored.
    storage_options : mapping, optional
        Passed to fsspec for URLs (endpoint, anonymous access and so on).
    table_version : int, optional
        Version of a Delta Lake table, or snapshot id of an Iceberg table; by default the current one.
    verify_checksums : bool
        Verify the checksums of pages that have one, whenever they are read.
    """
    single = isinstance(lake, str | os.PathLike)
    names = [os.fspath(lake)] if isinstance(lake, str | os.PathLike) else [os.fspath(item) for item in lake]
    if not names:
        raise UsageError("the list of files is empty; name at least one Parquet file")
    if "" in names:
        raise UsageError("the name of the lake is empty; give a path, URL or glob")
    try:
        found = _from_name(names[0], storage_options, table_version) if single else _from_list(names, storage_options)
    except (OSError, pa.ArrowException) as caught:
        shown, error = redact(names[0]), as_os_error(caught, storage_options)
        if isinstance(error, PermissionError):
            raise LakeError(f"no permission to list {shown}: {error}; check credentials, or ask for access") from None
        if isinstance(error, FileNotFoundError):
            raise LakeError(f"{shown} does not exist: {error}; check bucket and path") from None
        kind = ReadError if is_transient(error) else LakeError
        raise kind(f"{shown} cannot be reached: {error}; check address, credentials and storage options") from None
    if table_version is not None and found.table is None:
        raise UsageError(
            f"version {table_version} was asked for, but {found.name} is not a table ({' or '.join(FORMATS)}); "
            "leave the version out"
        )
    return replace(found, verify_checksums=verify_checksums)


def _from_name(name: str, storage_options: Mapping[str, Any] | None, table_version: int | None) -> Location:
    filesystem, path = filesystem_of(name, storage_options)
    if any(mark in path for mark in _GLOB) and filesystem.get_file_info(path).type == fs.FileType.NotFound:
        return _from_glob(name, filesystem, path)
    return _from_path(name, filesystem, path, table_version)


def _from_list(names: Sequence[str], storage_options: Mapping[str, Any] | None) -> Location:
    filesystem, _ = filesystem_of(names[0], storage_options)
    paths = [filesystem_of(item, storage_options)[1] for item in names]
    path, times = Counter(paths).most_common(1)[0]
    if times > 1:
        raise UsageError(
            f"the list names {redact(path)} {times} times, so its rows would count {times} times; name it once"
        )
    infos = filesystem.get_file_info(paths)
    for item, info in zip(names, infos, strict=True):
        if info.type != fs.FileType.File:
            raise LakeError(f"{redact(item)} is not a file; a list must name Parquet files (pass a folder by itself)")
    for first, again in same_files(paths) if _is_local(filesystem) else ():
        raise UsageError(f"{first} and {again} are links to one file, so its rows would count twice; name it once")
    root = posixpath.commonpath([posixpath.dirname(path) for path in paths])
    name = f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else names[0]
    return Location(name, filesystem, root, _ordered(infos))


def _from_path(name: str, filesystem: fs.FileSystem, path: str, table_version: int | None) -> Location:
    info = filesystem.get_file_info(path)
    if info.type == fs.FileType.NotFound:
        raise LakeError(f"{redact(name)} does not exist; check the path, or quote a glob such as 'lake/*.parquet'")
    if info.type == fs.FileType.Unknown:
        raise LakeError(f"{redact(name)} is a pipe, a socket or a device; name a file or a folder")
    if info.type == fs.FileType.File:
        table_format = format_of_file(path)
        if table_format is None:
            return Location(name, filesystem, posixpath.dirname(path), (info,))
        root = posixpath.dirname(posixpath.dirname(path))
        table = FORMATS[table_format].read(redact(name), filesystem, root, version=table_version, metadata=path)
        return _from_table(name, filesystem, root, table)
    table_format = format_of_folder(filesystem, path)
    if table_format is not None:
        table = FORMATS[table_format].read(redact(name), filesystem, path, version=table_version, metadata=None)
        return _from_table(name, filesystem, path, table)
    return _from_folder(name, filesystem, path)


def _from_folder(name: str, filesystem: fs.FileSystem, path: str) -> Location:
    _check_outside_tables(name, filesystem, path)
    loops: list[str] = []
    if _is_local(filesystem):
        paths, loops = local_tree(path)
        infos = filesystem.get_file_info(paths)
    else:
        infos = filesystem.get_file_info(fs.FileSelector(path, recursive=True))
    files = [info for info in infos if _is_data(info, path)]
    left_out = unreadable(infos)
    if not files:
        raise LakeError(
            f"{redact(name)} holds no Parquet files (names that start with '_' or '.' are ignored)"
            + "".join(f"; {one}" for one in remarks(left_out))
        )
    return _without_repeats(name, filesystem, path, files, {LOOP: loops, **left_out})


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
    infos = filesystem.get_file_info(matches) if matches else []
    visible = [info for info in infos if not _is_hidden(info, root or ".")]
    infos, folders = _with_spark_folders(filesystem, visible)
    files = [info for info in infos if _is_data(info, root or ".")]
    left_out = {FOLDER: folders, **unreadable(infos)}
    if not files:
        raise LakeError(
            f"no file matches {redact(name)} (names that start with '_' or '.' are ignored)"
            + "".join(f"; {one}" for one in remarks(left_out))
        )
    return _without_repeats(name, filesystem, root, files, {LOOP: loops, **left_out})


def _with_spark_folders(
    filesystem: fs.FileSystem, matches: Sequence[fs.FileInfo]
) -> tuple[list[fs.FileInfo], list[str]]:
    """What matches a glob, with the files of folders that are called like a file, and folders without any."""
    found = {info.path: info for info in matches if info.type != fs.FileType.Directory}
    folders = []
    for info in matches:
        if info.type == fs.FileType.Directory and info.base_name.lower().endswith(".parquet"):
            if (table_format := format_of_folder(filesystem, info.path)) is not None:
                raise LakeError(
                    f"{info.path} matches, but it is a {table_format} table; name it by itself, not by a glob"
                )
            if _is_local(filesystem):
                inside = filesystem.get_file_info(local_tree(info.path)[0])
            else:
                inside = filesystem.get_file_info(fs.FileSelector(info.path, recursive=True))
            found |= {one.path: one for one in inside if one.type != fs.FileType.Directory}
        if info.type == fs.FileType.Directory:
            folders.append(info.path.rstrip("/"))
    return list(found.values()), [path for path in folders if not any(one.startswith(f"{path}/") for one in found)]


def _from_table(name: str, filesystem: fs.FileSystem, root: str, table: Table) -> Location:
    """The files that the table's log names; its folder may also hold files with deleted rows."""
    shown = redact(name)
    if not table.files:
        raise LakeError(f"version {table.version} of {shown} has no files, so it has no rows")
    infos = filesystem.get_file_info(sorted(table.files))
    for info in infos:
        if info.type != fs.FileType.File:
            raise LakeError(
                f"{info.path} belongs to version {table.version} of {shown} but no longer exists, probably because of "
                "a clean-up (vacuum, expired snapshots); ask for a newer version"
            )
    return Location(name, filesystem, root, _ordered(infos), table)


def _without_repeats(
    name: str,
    filesystem: fs.FileSystem,
    root: str,
    files: Sequence[fs.FileInfo],
    left_out: Mapping[str, Sequence[str]],
) -> Location:
    """The location of files that were searched for, with each file once; ``left_out`` has paths by reason."""
    repeated: list[str] = []
    if _is_local(filesystem):
        files, repeated = deduplicate(files, root)
    location = Location(name, filesystem, root, _ordered(files))
    shown = {
        reason: [location.relative(path) for path in paths]
        for reason, paths in {REPEATED: repeated, **left_out}.items()
    }
    return replace(location, remarks=tuple(remarks(shown)))


def _is_local(filesystem: fs.FileSystem) -> bool:
    return isinstance(filesystem, fs.LocalFileSystem)


def _is_data(info: fs.FileInfo, root: str) -> bool:
    """Whether it is a file that is not hidden. Object stores mark folders by empty files that end with '/'."""
    return info.type == fs.FileType.File and not info.path.endswith("/") and not _is_hidden(info, root)


def _is_hidden(info: fs.FileInfo, root: str) -> bool:
    parts = posixpath.relpath(info.path, root).split("/")
    return any(part.startswith(_HIDDEN) and part not in (".", "..") for part in parts)


def _ordered(infos: Sequence[fs.FileInfo]) -> tuple[fs.FileInfo, ...]:
    return tuple(sorted(infos, key=lambda info: info.path))


def _check_outside_tables(name: str, filesystem: fs.FileSystem, path: str) -> None:
    """Raise if a folder is part of a table: like the table's own folder, it may hold deleted rows."""
    if path.startswith(WEB):
        return
    folder = posixpath.dirname(path)
    while folder not in ("", "/"):
        try:
            table_format = format_of_folder(filesystem, folder)
        except OSError:  # permission to read a folder need not include its parents
            return
        if table_format is not None:
            raise LakeError(
                f"{redact(name)} is in the folder of the {table_format} table {folder}, where files may hold deleted "
                "rows; name the table's folder, or pass a list of files"
            )
        folder = posixpath.dirname(folder)
