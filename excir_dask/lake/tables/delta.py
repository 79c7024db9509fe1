"""Delta Lake tables: the files of one version, by the table's log."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa
from pyarrow import fs

from excir_dask.errors import LakeError, UsageError
from excir_dask.lake.tables.log import Key, Positions, Table, TableColumn, TableFile, plain_value

LOG = "_delta_log"
_MAPPING = "delta.columnMapping"
_VECTORS = "deletionVectors"


def read_delta(name: str, filesystem: fs.FileSystem, root: str, version: int | None) -> Table:
    """A version of the table in a folder; the newest one by default."""
    try:
        from deltalake import DeltaTable
    except ImportError as error:
        raise LakeError(
            f"{name} is a Delta Lake table, whose folder may hold files with deleted rows; pip install "
            "'excir-dask[delta]' to read it through its log, or pass the list of files of the version you want"
        ) from error
    with _log_at_hand(name, filesystem, root, version) as (folder, newest):
        try:
            table = DeltaTable(folder, version=newest if version is None else version)
            return _table(name, root, folder, table)
        except (UsageError, LakeError):
            raise
        except Exception as error:  # the library's own, which have no base in common
            raise LakeError(f"the log of the Delta Lake table {name} cannot be read: {error}") from error


@contextmanager
def _log_at_hand(name: str, filesystem: fs.FileSystem, root: str, version: int | None) -> Iterator[tuple[str, int]]:
    """The table's folder, or one on this machine with a copy of what its log says of a version; and the newest version.

    deltalake has stores of its own with options of their own; copying the log needs no credentials but the ones that
    the data are read with. What is copied begins at the last checkpoint before the version.
    """
    infos = filesystem.get_file_info(fs.FileSelector(f"{root}/{LOG}", recursive=True))
    numbered = {info.path: int(match[1]) for info in infos if (match := re.search(r"/(\d{20})\.[^/]*$", info.path))}
    commits = [number for path, number in numbered.items() if path.endswith((".json", ".parquet"))]
    if not commits:
        raise LakeError(f"{name} has a folder {LOG} without a version in it; it is no Delta Lake table yet")
    newest = max(commits)
    if version is not None and not 0 <= version <= newest:
        raise UsageError(f"{name} has no version {version}; its newest one is {newest}")
    if isinstance(filesystem, fs.LocalFileSystem):
        yield root, newest
        return
    wanted = newest if version is None else version
    begin = max((n for path, n in numbered.items() if ".checkpoint." in path and n <= wanted), default=0)
    paths = [path for path, number in numbered.items() if begin <= number <= wanted]
    paths += [info.path for info in infos if "/_sidecars/" in info.path]
    with tempfile.TemporaryDirectory() as folder:
        _copy(filesystem, root, paths, folder)
        texts = [path.read_text() for path in (Path(folder) / LOG).glob("*.json")]
        if begin or any('"deletionVector"' in text for text in texts):
            found = filesystem.get_file_info(fs.FileSelector(root, recursive=True))
            _copy(
                filesystem, root, [i.path for i in found if re.search(r"/deletion_vector_[^/]*\.bin$", i.path)], folder
            )
        yield folder, newest


def _copy(filesystem: fs.FileSystem, root: str, paths: list[str], folder: str) -> None:
    for path in paths:
        target = Path(folder) / path.removeprefix(f"{root}/")
        target.parent.mkdir(parents=True, exist_ok=True)
        with filesystem.open_input_stream(path) as source:
            target.write_bytes(source.read())


def _table(name: str, root: str, folder: str, table: Any) -> Table:
    columns = _columns(table)
    partitioned = set(table.metadata().partition_columns)
    actions = pa.table(table.get_add_actions()).select(["path", *(["partition"] if partitioned else [])]).to_pylist()
    physical = {stored: column.name for column in columns for stored in column.stored}
    deleted = _deletion_vectors(table, folder)
    files = {}
    for action in actions:
        relative = unquote(action["path"])
        if "://" in relative or relative.startswith("/"):
            raise LakeError(
                f"version {table.version()} of {name} has a file outside its folder: {relative}; copy the table "
                "(a deep clone), or pass the list of its files"
            )
        values = action.get("partition") or {}
        keys: list[Key] = [(physical.get(key, key), plain_value(value)) for key, value in values.items()]
        files[f"{root}/{relative}"] = TableFile(tuple(keys), deleted.pop(relative, None))
    if deleted:
        raise LakeError(f"{name} has deleted rows in {min(deleted)}, which is none of its files; repair the table")
    types = {column.name: column.type for column in columns if column.name in partitioned}
    return Table("Delta Lake", table.version(), columns, types, files)


def _columns(table: Any) -> tuple[TableColumn, ...]:
    by_id = table.metadata().configuration.get(f"{_MAPPING}.mode") == "id"
    found = []
    kinds = pa.schema(table.schema().to_arrow())
    for part, kind in zip(json.loads(table.schema().to_json())["fields"], kinds.types, strict=True):
        stored = part["metadata"].get(f"{_MAPPING}.physicalName", part["name"])
        number = part["metadata"].get(f"{_MAPPING}.id") if by_id else None
        found.append(TableColumn(part["name"], kind, number, (stored,)))
    return tuple(found)


def _deletion_vectors(table: Any, folder: str) -> dict[str, Positions]:
    """Places of deleted rows by relative path."""
    if _VECTORS not in (table.protocol().reader_features or ()):
        return {}
    found = {}
    for batch in table.deletion_vectors():
        batch = pa.record_batch(batch)
        for uri, keep in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
            path = unquote(urlsplit(uri).path if "://" in uri else uri)
            mask = keep.values.to_numpy(zero_copy_only=False)
            found[path.removeprefix(folder.rstrip("/") + "/")] = np.flatnonzero(~mask).astype(np.int64)
    return found
