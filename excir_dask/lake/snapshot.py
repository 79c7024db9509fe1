"""The lake as its footers describe it: files, row groups, schemas and a fingerprint. No data are read."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from io import UnsupportedOperation
from typing import Any

import pyarrow as pa
from pyarrow import fs

from excir_dask.errors import LakeChangedError, LakeError, ReadError
from excir_dask.lake import checksums
from excir_dask.lake.footer import Footer, read_footer
from excir_dask.lake.locate import Location
from excir_dask.lake.retry import with_retries
from excir_dask.lake.store_errors import redact
from excir_dask.lake.tables.log import Deleted, Stored, as_stored

_FOOTER_THREADS = 16

_LOOKED_AT = 16
"""files of a store that are looked at for checksums, spread over the lake: each takes a request more"""


@dataclass(frozen=True)
class LakeFile:
    """One Parquet file."""

    path: str
    relative: str
    """path below the lake's root: what sampling and fingerprints use, so that a lake may be moved"""
    size: int
    """bytes on disk"""
    modified: int
    """nanoseconds, 0 where the store does not say"""
    row_groups: tuple[int, ...]
    """rows of each row group"""
    schema: int
    """which of the snapshot's schemas it has"""
    keys: tuple[tuple[str, int | float | str | None], ...]
    """values that all its rows have: Hive partition keys, from the folders it lies in, or what a table's log says"""
    names: tuple[tuple[str, str], ...] = ()
    """column -> its name inside the file, where a table has renamed it since"""
    deleted: tuple[Deleted | None, ...] = ()
    """rows of each row group that its table has deleted; empty where none is"""
    encrypted: tuple[str, ...] = ()
    """columns, by the names that the lake has for them, that cannot be read without keys"""
    checksums: bool | None = None
    """whether its first page carries a checksum; None where that is not known"""

    @property
    def rows(self) -> int:
        return sum(self.live_rows)

    @cached_property
    def live_rows(self) -> tuple[int, ...]:
        """rows of each row group that count"""
        if not self.deleted:
            return self.row_groups
        return tuple(n - (d.count if d else 0) for n, d in zip(self.row_groups, self.deleted, strict=True))


@dataclass(frozen=True)
class Snapshot:
    """Everything known about a lake without reading its data."""

    location: Location
    files: tuple[LakeFile, ...]
    schemas: tuple[pa.Schema, ...]
    """the different schemas met, in the order of the first file that has each"""
    key_types: dict[str, pa.DataType]
    """types of the Hive partition keys"""

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def checksums(self) -> dict[str, Any]:
        """Whether checksums are verified, how many files were looked at, and how many of those carry none."""
        return checksums.count([file.checksums for file in self.files], self.location.verify_checksums)

    @cached_property
    def fingerprint(self) -> str:
        """sha256 over every file's relative path, size, time of change and row groups, and the schemas."""
        digest = hashlib.sha256()
        for file in self.files:
            digest.update(repr((file.relative, file.size, file.modified, file.row_groups, file.schema)).encode())
            if self.location.table is not None:
                digest.update(repr((file.names, file.keys, file.deleted)).encode())
        if self.location.table is not None:
            digest.update(repr(sorted(self.location.table.source.items())).encode())
        for schema in self.schemas:
            digest.update(str([(field.name, str(field.type)) for field in schema]).encode())
        return digest.hexdigest()


def take_snapshot(location: Location) -> Snapshot:
    """Read every file's footer, many at a time."""
    local = isinstance(location.filesystem, fs.LocalFileSystem)
    step = 1 if local else -(-len(location.files) // _LOOKED_AT)

    def footer_of(place: int, info: fs.FileInfo) -> Footer:
        return with_retries(lambda: _footer(location, info.path, info.size, place % step == 0))

    with ThreadPoolExecutor(_FOOTER_THREADS) as pool:
        footers = list(pool.map(footer_of, range(len(location.files)), location.files))
    table = location.table
    if table is None:
        key_types, keys = _partition_keys(location)
        stored = [
            Stored(footer.schema.remove_metadata(), (), values, ())
            for footer, values in zip(footers, keys, strict=True)
        ]
    else:
        key_types = table.key_types
        stored = [
            as_stored(table, info.path, footer.schema, footer.row_groups)
            for info, footer in zip(location.files, footers, strict=True)
        ]
    schemas: dict[pa.Schema, int] = {}
    files = []
    for info, footer, held in zip(location.files, footers, stored, strict=True):
        number = schemas.setdefault(held.schema, len(schemas))
        names = {stored: name for name, stored in held.names}
        files.append(
            LakeFile(
                path=info.path,
                relative=location.relative(info.path),
                size=info.size,
                modified=info.mtime_ns or 0,
                row_groups=footer.row_groups,
                schema=number,
                keys=held.keys,
                names=held.names,
                deleted=held.deleted,
                encrypted=tuple(names.get(column, column) for column in footer.encrypted),
                checksums=footer.checksums,
            )
        )
    return Snapshot(location, tuple(files), tuple(schemas), key_types)


def check_unchanged(snapshot: Snapshot) -> None:
    """Raise if a file is not what it was when the snapshot was taken: scores of a lake that moved on are nobody's."""
    now = snapshot.location.filesystem.get_file_info([file.path for file in snapshot.files])
    for file, info in zip(snapshot.files, now, strict=True):
        if (info.size, info.mtime_ns or 0) != (file.size, file.modified):
            raise LakeChangedError(f"{file.relative} was changed or removed during the run; run again")


def _footer(location: Location, path: str, size: int, look_for_checksums: bool) -> Footer:
    shown = redact(path)
    advice = "repair or remove it, or leave it out with a glob such as 'lake/**/*.parquet'"
    try:
        with location.filesystem.open_input_file(path) as source:
            return read_footer(source, look_for_checksums)
    except PermissionError as error:
        raise LakeError(
            f"no permission to read {shown}; ask for read access to it or leave it out with a glob"
        ) from error
    except FileNotFoundError as error:
        raise LakeChangedError(f"{shown} was removed while the lake was listed; run again") from error
    except UnsupportedOperation as error:
        raise LakeError(f"{shown} cannot be read: {error}") from None
    except (ValueError, NotImplementedError) as error:  # pyarrow's own, or a column name that is not UTF-8
        raise LakeError(f"{shown} ({size} bytes) cannot be read as Parquet: {error}; {advice}") from error
    except OSError as error:  # a broken connection may pass; a broken footer may raise the same
        raise ReadError(f"{shown} ({size} bytes) cannot be read: {error}; {advice}") from error


def _partition_keys(
    location: Location,
) -> tuple[dict[str, pa.DataType], list[tuple[tuple[str, int | float | str | None], ...]]]:
    if not any("=" in part for info in location.files for part in location.relative(info.path).split("/")[:-1]):
        return {}, [()] * len(location.files)
    import pyarrow.dataset as ds  # takes pandas along, which is half of what a start may cost

    try:
        factory = ds.FileSystemDatasetFactory(
            location.filesystem,
            [info.path for info in location.files],
            ds.ParquetFileFormat(),
            ds.FileSystemFactoryOptions(
                partition_base_dir=location.root,
                partitioning=ds.HivePartitioning.discover(),
                exclude_invalid_files=False,
            ),
        )
        # the keys alone: inspecting no file means that the schema holds nothing else
        schema = factory.inspect(fragments=0)
        dataset = factory.finish(schema)
        by_path = {
            fragment.path: ds.get_partition_keys(fragment.partition_expression) for fragment in dataset.get_fragments()
        }
    except pa.ArrowException as error:
        raise LakeError(f"the folders of {location.name} do not form Hive partitions: {error}") from error
    types = {field.name: field.type for field in schema}
    for info in location.files:
        missing = set(types) - set(by_path[info.path])
        if missing:
            raise LakeError(
                f"{location.relative(info.path)} lies in no folder '{min(missing)}=...', but other files of "
                f"{location.name} do; move it, or leave it out with a glob"
            )
    return types, [tuple(sorted(by_path[info.path].items())) for info in location.files]
