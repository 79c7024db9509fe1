"""One version of a table: its live files, the names of their columns, and the deleted rows."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from excir_dask.errors import LakeError

Constant = tuple[str, int | float | str | None]
"""a column and the value it has in all rows of a file"""

Positions = NDArray[np.int64]
"""row numbers in a file, in ascending order"""

_FIELD_ID = b"PARQUET:field_id"


@dataclass(frozen=True)
class DeletedRows:
    """Deleted rows of a row group."""

    count: int
    bits: bytes
    """a bit per row, packed and compressed, because plans are sent to workers"""

    @classmethod
    def from_mask(cls, mask: NDArray[np.bool_]) -> DeletedRows | None:
        """None if no row is deleted."""
        count = int(np.count_nonzero(mask))
        return cls(count, zlib.compress(np.packbits(mask).tobytes(), 1)) if count else None

    def mask(self, start: int, rows: int) -> NDArray[np.bool_]:
        """Which of the rows ``start`` to ``start + rows`` of the row group are deleted."""
        packed = np.frombuffer(zlib.decompress(self.bits), dtype=np.uint8)
        return np.unpackbits(packed, count=start + rows)[start:].astype(bool)


@dataclass(frozen=True)
class TableColumn:
    """A column of a table, and how to find it in files."""

    name: str
    type: pa.DataType
    """in files that lack the column"""
    field_id: int | None
    """identifies the column in files; None if names do"""
    stored: tuple[str, ...]
    """its names in files without field ids"""
    default: int | float | str | None = None
    """its value in files that lack the column"""


@dataclass(frozen=True)
class TableFile:
    """A data file of a table version."""

    constants: tuple[Constant, ...] = ()
    """partition values, which need not be in the file"""
    deleted: Positions | None = field(default=None, compare=False, repr=False)
    """deleted rows, counted from the start of the file"""


@dataclass(frozen=True)
class Table:
    """One version of a table."""

    format: str
    """name of the table format"""
    version: int
    """version of a Delta Lake table, or snapshot id of an Iceberg table"""
    columns: tuple[TableColumn, ...]
    key_types: dict[str, pa.DataType]
    """partition columns that are not in the files"""
    files: dict[str, TableFile]
    """by path"""

    @property
    def source(self) -> dict[str, str | int]:
        """What a result records of the table."""
        return {"table": self.format, "version": self.version}


@dataclass(frozen=True)
class FileColumns:
    """How a file stores the columns of the lake."""

    schema: pa.Schema
    """names in the lake, types in the file"""
    stored_names: tuple[tuple[str, str], ...] = ()
    """column -> its name in the file, if that differs"""
    constants: tuple[Constant, ...] = ()
    """partition keys, and columns that the file lacks"""
    deleted: tuple[DeletedRows | None, ...] = ()
    """per row group; empty if no row is deleted"""


def file_columns(table: Table, path: str, schema: pa.Schema, row_groups: Sequence[int]) -> FileColumns:
    """Match the columns of a table with the schema of one of its files."""
    file = table.files[path]
    by_id = {int(part.metadata[_FIELD_ID]): part for part in schema if part.metadata and _FIELD_ID in part.metadata}
    partition_values = dict(file.constants)
    constants = {name: value for name, value in file.constants if name in table.key_types}
    fields, stored_names = [], []
    for column in table.columns:
        if column.name in table.key_types:
            continue
        stored = _find(column, schema, by_id, path)
        fields.append(pa.field(column.name, column.type if stored is None else stored.type))
        if stored is None:
            constants[column.name] = partition_values.get(column.name, column.default)
        elif stored.name != column.name:
            stored_names.append((column.name, stored.name))
    return FileColumns(
        pa.schema(fields),
        tuple(stored_names),
        tuple(sorted(constants.items())),
        _split_by_row_group(file.deleted, row_groups, path),
    )


def plain_value(value: Any) -> int | float | str | None:
    """A value of a log as a constant: a number or text, also for dates and the like."""
    if value is None or isinstance(value, int | float | str):
        return value
    return float(value) if isinstance(value, Decimal) else str(value)


def _find(column: TableColumn, schema: pa.Schema, by_id: Mapping[int, pa.Field], path: str) -> pa.Field | None:
    if column.field_id is not None and by_id:
        return by_id.get(column.field_id)
    if column.field_id is not None and not column.stored:
        raise LakeError(
            f"{path} has no field ids and the table has no name mapping, so its columns cannot be identified; "
            "set 'schema.name-mapping.default' on the table, or rewrite the file"
        )
    return next((schema.field(name) for name in column.stored if schema.get_field_index(name) >= 0), None)


def _split_by_row_group(
    positions: Positions | None, row_groups: Sequence[int], path: str
) -> tuple[DeletedRows | None, ...]:
    if positions is None or not positions.size:
        return ()
    ends = np.cumsum(row_groups)
    if positions[-1] >= ends[-1]:
        raise LakeError(f"the table deletes row {positions[-1]} of {path}, which has {ends[-1]} rows; repair the table")
    deleted = []
    for end, rows in zip(ends.tolist(), row_groups, strict=True):
        first, last = np.searchsorted(positions, [end - rows, end])
        mask = np.zeros(rows, dtype=bool)
        mask[positions[first:last] - (end - rows)] = True
        deleted.append(DeletedRows.from_mask(mask))
    return tuple(deleted)
