"""Iceberg tables: read one snapshot from the metadata, with pyiceberg."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from pyarrow import fs

from excir_dask.errors import LakeError, UsageError
from excir_dask.lake import checksums
from excir_dask.lake.tables.table import Constant, Positions, Table, TableColumn, TableFile, plain_value

METADATA_FOLDER = "metadata"
METADATA_SUFFIX = ".metadata.json"


def read_iceberg(
    name: str, filesystem: fs.FileSystem, root: str, *, version: int | None, metadata: str | None = None
) -> Table:
    """Read a snapshot of a table, by default the current one."""
    try:
        from pyiceberg.serializers import FromInputFile
        from pyiceberg.table import StaticTable
    except ImportError as error:
        raise LakeError(
            f"{name} is an Iceberg table, and its folder may hold files with deleted rows; to read its metadata, pip "
            "install 'excir-dask[iceberg]', or pass the list of files of the snapshot you want"
        ) from error
    from pyiceberg.catalog.noop import NoopCatalog
    from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO

    class Io(PyArrowFileIO):
        """Reads through the lake's own filesystem, so it needs no credentials but those for the data."""

        home: str | None = None

        def new_input(self, location: str) -> PyArrowFile:
            path = location if self.home is None else current_path(name, location, self.home, root)
            return PyArrowFile(location, path, filesystem)

    metadata = metadata or _latest_metadata(name, filesystem, root)
    io = Io()
    try:
        found = FromInputFile.table_metadata(io.new_input(metadata))
        io.home = found.location
        table = StaticTable(("table",), found, metadata, io, NoopCatalog("none"))
        return _table(name, root, filesystem, table, version)
    except (UsageError, LakeError, OSError):
        raise
    except Exception as error:  # errors of pydantic, avro and pyiceberg have no common base class
        raise LakeError(f"the metadata of the Iceberg table {name} cannot be read: {error}") from error


def _latest_metadata(name: str, filesystem: fs.FileSystem, root: str) -> str:
    """The metadata file of a table's current state, as far as the folder tells without a catalog."""
    folder = f"{root}/{METADATA_FOLDER}"
    paths: list[str] = [
        info.path for info in filesystem.get_file_info(fs.FileSelector(folder)) if info.path.endswith(METADATA_SUFFIX)
    ]
    hint = f"{folder}/version-hint.text"
    if filesystem.get_file_info(hint).type == fs.FileType.File:
        with filesystem.open_input_stream(hint) as source:
            version = source.read().decode().strip()
        names = (version, f"{version}{METADATA_SUFFIX}", f"v{version}{METADATA_SUFFIX}")
        paths = [path for path in paths if path.removeprefix(f"{folder}/") in names] or paths
    numbered = [(int(m[1]), path) for path in paths if (m := re.match(r"v?(\d+)[-.]", posixpath.basename(path)))]
    last = [path for number, path in numbered if number == max(numbered)[0]]
    if len(last) != 1:
        raise LakeError(
            f"{name} has {len(last)} metadata files with the latest number{': ' if last else ''}"
            f"{', '.join(sorted(map(posixpath.basename, last)))}; pass the path of the one that the catalog points to"
        )
    return last[0]


def current_path(name: str, location: str, home: str, root: str) -> str:
    """The path of a file, from its location in the metadata; the whole table may have been moved.

    >>> current_path("t", "s3a://bucket/t/data/a.parquet", "s3://bucket/t/", "bucket/t")
    'bucket/t/data/a.parquet'
    """
    file, table = (re.sub(r"^\w+:/*", "", text).strip("/") for text in (location, home))
    if not file.startswith(f"{table}/"):
        raise LakeError(
            f"the Iceberg table {name} has a file outside its folder {home}: {location}; "
            "rewrite its files into the folder, or pass the list of its files"
        )
    return posixpath.normpath(f"{root}/{file.removeprefix(table).strip('/')}")


def _table(name: str, root: str, filesystem: fs.FileSystem, table: Any, version: int | None) -> Table:
    from pyiceberg.transforms import IdentityTransform

    snapshot = table.current_snapshot() if version is None else table.snapshot_by_id(version)
    if snapshot is None:
        known = ", ".join(str(each.snapshot_id) for each in table.metadata.snapshots[-5:])
        if version is None:
            raise LakeError(f"the Iceberg table {name} has no snapshot, so it has no rows")
        raise UsageError(f"{name} has no snapshot {version}; the last ones are {known or '(none)'}")
    _check_deletes(name, snapshot, table.io)
    scan = table.scan(snapshot_id=version)
    schema = scan.projection()
    home, specs = table.metadata.location, table.specs()
    names = {part.field_id: part.name for part in schema.fields}
    files, deletes = {}, _Deletes(table.io)
    for task in scan.plan_files():
        data = task.file
        if _format(data) != "PARQUET":
            raise LakeError(f"{name} has a file that is not Parquet: {data.file_path}; rewrite it as Parquet")
        constants: list[Constant] = [
            (names[part.source_id], plain_value(value))
            for part, value in zip(specs[data.spec_id].fields, data.partition, strict=True)
            if isinstance(part.transform, IdentityTransform) and part.source_id in names
        ]
        path = current_path(name, data.file_path, home, root)
        files[path] = TableFile(tuple(constants), deletes.positions(data.file_path, task.delete_files))
    return Table("Iceberg", snapshot.snapshot_id, _columns(table, schema), {}, files)


def _columns(table: Any, schema: Any) -> tuple[TableColumn, ...]:
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    mapping = table.name_mapping()
    aliases = {} if mapping is None else {part.field_id: tuple(part.names) for part in mapping}
    kinds = schema_to_pyarrow(schema, include_field_ids=False).types
    return tuple(
        TableColumn(part.name, kind, part.field_id, aliases.get(part.field_id, ()), plain_value(part.initial_default))
        for part, kind in zip(schema.fields, kinds, strict=True)
    )


def _check_deletes(name: str, snapshot: Any, io: Any) -> None:
    from pyiceberg.manifest import DataFileContent, ManifestContent

    for manifest in snapshot.manifests(io):
        if manifest.content != ManifestContent.DELETES:
            continue
        for entry in manifest.fetch_manifest_entry(io, discard_deleted=True):
            if entry.data_file.content == DataFileContent.EQUALITY_DELETES:
                raise LakeError(
                    f"{name} has equality deletes (rows deleted by value, in {entry.data_file.file_path}), which "
                    "are not supported; rewrite its data files first (rewrite_data_files, OPTIMIZE)"
                )


class _Deletes:
    """Deleted rows per data file; each delete file is read once."""

    def __init__(self, io: Any):
        self.io = io
        self.read: dict[str, dict[str, Positions]] = {}

    def positions(self, data_file: str, delete_files: Iterable[Any]) -> Positions | None:
        """The rows that the delete files delete from a data file."""
        parts = []
        for file in delete_files:
            if file.file_path not in self.read:
                self.read[file.file_path] = (
                    self._read_puffin(file) if _format(file) == "PUFFIN" else self._read_parquet(file)
                )
            parts.append(self.read[file.file_path].get(data_file, np.empty(0, dtype=np.int64)))
        return np.unique(np.concatenate(parts)) if parts else None

    def _read_parquet(self, file: Any) -> dict[str, Positions]:
        with self.io.new_input(file.file_path).open() as source:
            try:
                table = pq.ParquetFile(source, page_checksum_verification=True).read(columns=["file_path", "pos"])
            except OSError as error:
                if checksums.is_mismatch(error):
                    raise checksums.mismatch_error(file.file_path, "deleted positions") from error
                raise
        grouped = table.group_by("file_path").aggregate([("pos", "list")]).to_pydict()
        return {
            path: np.asarray(positions, dtype=np.int64)
            for path, positions in zip(grouped["file_path"], grouped["pos_list"], strict=True)
        }

    def _read_puffin(self, file: Any) -> dict[str, Positions]:
        from pyiceberg.table.puffin import PuffinFile

        with self.io.new_input(file.file_path).open() as source:
            puffin = PuffinFile(source.read())
        try:
            from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
        except ImportError:  # before pyiceberg 0.12
            return {path: vector.to_numpy().astype(np.int64) for path, vector in puffin.to_vector().items()}
        vectors = deletion_vectors_from_puffin_file(puffin)
        return {each.referenced_data_file: each.to_vector().to_numpy().astype(np.int64) for each in vectors}


def _format(file: Any) -> str:
    return str(getattr(file.file_format, "value", file.file_format)).upper()
