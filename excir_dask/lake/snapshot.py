"""The state of a lake according to its footers: files, row groups, schemas and a fingerprint. No data are read."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from io import UnsupportedOperation
from typing import Any

import pyarrow as pa
from pyarrow import fs

from excir_dask.common.wording import one_line
from excir_dask.errors import LakeChangedError, LakeError, ReadError
from excir_dask.lake import checksums
from excir_dask.lake.footer import Footer, read_footer
from excir_dask.lake.hive import partition_keys
from excir_dask.lake.locate import Location
from excir_dask.lake.retry import with_retries
from excir_dask.lake.store_errors import redact
from excir_dask.lake.tables.table import Constant, DeletedRows, FileColumns, file_columns

_FOOTER_THREADS = 16

_CHECKSUM_FILES = 16
"""files of an object store to look into for checksums, spread over the lake; each costs a request"""


@dataclass(frozen=True)
class LakeFile:
    """One Parquet file."""

    path: str
    relative: str
    """path below the lake's root; samples and fingerprints depend on it, so a lake may be moved"""
    size: int
    """bytes on disk"""
    modified: int
    """nanoseconds; 0 if the store does not say"""
    row_groups: tuple[int, ...]
    """rows of each row group"""
    schema: int
    """index into the snapshot's schemas"""
    constants: tuple[Constant, ...]
    """columns that have one value in all rows: partition keys, or columns that a table's file lacks"""
    stored_names: tuple[tuple[str, str], ...] = ()
    """column -> its name in the file, if the table has renamed it"""
    deleted: tuple[DeletedRows | None, ...] = ()
    """deleted rows per row group; empty if there are none"""
    encrypted: tuple[str, ...] = ()
    """columns that cannot be read without keys"""
    checksums: bool | None = None
    """whether the first page has a checksum; None if unknown"""

    @property
    def rows(self) -> int:
        """Rows that are not deleted."""
        return sum(self.live_rows)

    @cached_property
    def live_rows(self) -> tuple[int, ...]:
        """Rows of each row group that are not deleted."""
        if not self.deleted:
            return self.row_groups
        return tuple(n - (d.count if d else 0) for n, d in zip(self.row_groups, self.deleted, strict=True))


@dataclass(frozen=True)
class Snapshot:
    """Everything known about a lake without reading its data."""

    location: Location
    files: tuple[LakeFile, ...]
    schemas: tuple[pa.Schema, ...]
    """distinct schemas, in the order of the first file that has each"""
    key_types: dict[str, pa.DataType]
    """types of the partition keys"""
    excluded: tuple[frozenset[int], ...] = ()
    """row groups per file that hold no row of the run's filter; empty without one"""

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def checksums(self) -> dict[str, Any]:
        """Whether checksums are verified, how many files were looked into, and how many of those have none."""
        return checksums.summarise([file.checksums for file in self.files], self.location.verify_checksums)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the path, size, modification time and row groups of every file, and of the schemas."""
        digest = hashlib.sha256()
        table = self.location.table
        for file in self.files:
            digest.update(repr((file.relative, file.size, file.modified, file.row_groups, file.schema)).encode())
            if table is not None:
                deleted = [None if each is None else (each.count, each.bits) for each in file.deleted]
                digest.update(repr((file.stored_names, file.constants, deleted)).encode())
        if table is not None:
            digest.update(repr(sorted(table.source.items())).encode())
        for schema in self.schemas:
            digest.update(str([(field.name, str(field.type)) for field in schema]).encode())
        return digest.hexdigest()


def take_snapshot(location: Location) -> Snapshot:
    """Read the footers of all files, many at a time."""
    local = isinstance(location.filesystem, fs.LocalFileSystem)
    step = 1 if local else -(-len(location.files) // _CHECKSUM_FILES)

    def footer_of(number: int, info: fs.FileInfo) -> Footer:
        return with_retries(lambda: _read_footer(location, info.path, info.size, number % step == 0))

    with ThreadPoolExecutor(_FOOTER_THREADS) as pool:
        footers = list(pool.map(footer_of, range(len(location.files)), location.files))
    table = location.table
    if table is None:
        key_types, keys = partition_keys(location)
        columns = [
            FileColumns(footer.schema.remove_metadata(), constants=values)
            for footer, values in zip(footers, keys, strict=True)
        ]
    else:
        key_types = table.key_types
        columns = [
            file_columns(table, info.path, footer.schema, footer.row_groups)
            for info, footer in zip(location.files, footers, strict=True)
        ]
    schemas: dict[pa.Schema, int] = {}
    files = []
    for info, footer, each in zip(location.files, footers, columns, strict=True):
        names = {stored: name for name, stored in each.stored_names}
        files.append(
            LakeFile(
                path=info.path,
                relative=location.relative(info.path),
                size=info.size,
                modified=info.mtime_ns or 0,
                row_groups=footer.row_groups,
                schema=schemas.setdefault(each.schema, len(schemas)),
                constants=each.constants,
                stored_names=each.stored_names,
                deleted=each.deleted,
                encrypted=tuple(names.get(column, column) for column in footer.encrypted),
                checksums=footer.checksums,
            )
        )
    return Snapshot(location, tuple(files), tuple(schemas), key_types)


def check_unchanged(snapshot: Snapshot) -> None:
    """Raise if a file has changed since the snapshot: scores of a mixed state would describe no lake at all."""
    now = snapshot.location.filesystem.get_file_info([file.path for file in snapshot.files])
    for file, info in zip(snapshot.files, now, strict=True):
        if (info.size, info.mtime_ns or 0) != (file.size, file.modified):
            raise LakeChangedError(f"{file.relative} was changed or removed during the run; run again")


def _read_footer(location: Location, path: str, size: int, look_for_checksums: bool) -> Footer:
    shown = redact(path)
    advice = "repair or remove it, or exclude it with a glob such as 'lake/**/*.parquet'"
    if path.lower().endswith((".csv", ".tsv", ".csv.gz")):
        advice = (
            "lakes are Parquet: convert it, for instance with pandas.read_csv(FILE).to_parquet(FOLDER/FILE.parquet)"
        )
    try:
        with location.filesystem.open_input_file(path) as source:
            return read_footer(source, look_for_checksums)
    except PermissionError as error:
        raise LakeError(f"no permission to read {shown}; ask for access, or exclude it with a glob") from error
    except FileNotFoundError as error:
        raise LakeChangedError(f"{shown} was removed while the lake was listed; run again") from error
    except UnsupportedOperation as error:
        raise LakeError(f"{shown} cannot be read: {error}") from None
    except (ValueError, NotImplementedError) as error:  # from pyarrow, or a column name that is not UTF-8
        raise LakeError(f"{shown} ({size} bytes) cannot be read as Parquet: {one_line(error)}; {advice}") from error
    except OSError as error:  # pyarrow raises it for broken connections and for broken footers
        raise ReadError(f"{shown} ({size} bytes) cannot be read: {error}; {advice}") from error
