"""Delta Lake tables: read one version from the log, with deltalake."""

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
from excir_dask.lake.tables.table import Constant, Positions, Table, TableColumn, TableFile, plain_value

LOG_FOLDER = "_delta_log"
_MAPPING = "delta.columnMapping"
_VECTORS = "deletionVectors"


def read_delta(
    name: str, filesystem: fs.FileSystem, root: str, *, version: int | None, metadata: str | None = None
) -> Table:
    """Read a version of a table, by default the latest."""
    try:
        from deltalake import DeltaTable
    except ImportError as error:
        raise LakeError(
            f"{name} is a Delta Lake table, and its folder may hold files with deleted rows; to read its log, pip "
            "install 'excir-dask[delta]', or pass the list of files of the version you want"
        ) from error
    with _local_log(name, filesystem, root, version) as (folder, latest):
        try:
            table = DeltaTable(folder, version=latest if version is None else version)
            return _table(name, root, folder, table)
        except (UsageError, LakeError):
            raise
        except Exception as error:  # deltalake's errors have no common base class
            raise LakeError(f"the log of the Delta Lake table {name} cannot be read: {error}") from error


@contextmanager
def _local_log(name: str, filesystem: fs.FileSystem, root: str, version: int | None) -> Iterator[tuple[str, int]]:
    """A local folder with the log up to a version, and the latest version.

    deltalake has its own stores with their own options. A copy of the log needs no credentials but those for the data.
    It starts at the last checkpoint before the version.
    """
    infos = filesystem.get_file_info(fs.FileSelector(f"{root}/{LOG_FOLDER}", recursive=True))
    numbered = {info.path: int(match[1]) for info in infos if (match := re.search(r"/(\d{20})\.[^/]*$", info.path))}
    commits = [number for path, number in numbered.items() if path.endswith((".json", ".parquet"))]
    if not commits:
        raise LakeError(f"the folder {LOG_FOLDER} of {name} holds no version; write the Delta Lake table first")
    latest = max(commits)
    if version is not None and not 0 <= version <= latest:
        raise UsageError(f"{name} has no version {version}; the latest is {latest}")
    if isinstance(filesystem, fs.LocalFileSystem):
        yield root, latest
        return
    wanted = latest if version is None else version
    checkpoint = max((n for path, n in numbered.items() if ".checkpoint." in path and n <= wanted), default=0)
    paths = [path for path, number in numbered.items() if checkpoint <= number <= wanted]
    paths += [info.path for info in infos if "/_sidecars/" in info.path]
    with tempfile.TemporaryDirectory() as folder:
        _copy(filesystem, root, paths, folder)
        texts = [path.read_text() for path in (Path(folder) / LOG_FOLDER).glob("*.json")]
        if checkpoint or any('"deletionVector"' in text for text in texts):
            everything = filesystem.get_file_info(fs.FileSelector(root, recursive=True))
            vectors = [info.path for info in everything if re.search(r"/deletion_vector_[^/]*\.bin$", info.path)]
            _copy(filesystem, root, vectors, folder)
        yield folder, latest


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
    logical = {stored: column.name for column in columns for stored in column.stored}
    deleted = _deletion_vectors(table, folder)
    files = {}
    for action in actions:
        relative = unquote(action["path"])
        if "://" in relative or relative.startswith("/"):
            raise LakeError(
                f"version {table.version()} of {name} has a file outside its folder: {relative}; make a deep clone of "
                "the table, or pass the list of its files"
            )
        values = action.get("partition") or {}
        constants: list[Constant] = [(logical.get(key, key), plain_value(value)) for key, value in values.items()]
        files[f"{root}/{relative}"] = TableFile(tuple(constants), deleted.pop(relative, None))
    if deleted:
        raise LakeError(f"{name} has deleted rows in {min(deleted)}, which is not one of its files; repair the table")
    types = {column.name: column.type for column in columns if column.name in partitioned}
    return Table("Delta Lake", table.version(), columns, types, files)


def _columns(table: Any) -> tuple[TableColumn, ...]:
    by_id = table.metadata().configuration.get(f"{_MAPPING}.mode") == "id"
    columns = []
    kinds = pa.schema(table.schema().to_arrow())
    for part, kind in zip(json.loads(table.schema().to_json())["fields"], kinds.types, strict=True):
        stored = part["metadata"].get(f"{_MAPPING}.physicalName", part["name"])
        number = part["metadata"].get(f"{_MAPPING}.id") if by_id else None
        columns.append(TableColumn(part["name"], kind, number, (stored,)))
    return tuple(columns)


def _deletion_vectors(table: Any, folder: str) -> dict[str, Positions]:
    """Deleted rows by relative path."""
    if _VECTORS not in (table.protocol().reader_features or ()):
        return {}
    deleted = {}
    for batch in table.deletion_vectors():
        batch = pa.record_batch(batch)
        for uri, keep in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
            path = unquote(urlsplit(uri).path if "://" in uri else uri)
            mask = keep.values.to_numpy(zero_copy_only=False)
            deleted[path.removeprefix(folder.rstrip("/") + "/")] = np.flatnonzero(~mask).astype(np.int64)
    return deleted
