"""What the log of a table (Delta Lake, Iceberg) says: which files are alive, what their columns are called by now, and
which of their rows are deleted."""

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

Key = tuple[str, int | float | str | None]
Positions = NDArray[np.int64]

METADATA = ".metadata.json"
"""how the names of Iceberg's metadata files end"""

_FIELD_ID = b"PARQUET:field_id"


@dataclass(frozen=True)
class Deleted:
    """Rows of a row group that its table has deleted."""

    count: int
    bits: bytes
    """one a row, packed and compressed: plans travel"""

    @classmethod
    def of(cls, mask: NDArray[np.bool_]) -> Deleted | None:
        """From one truth value a row; None if no row is deleted."""
        count = int(np.count_nonzero(mask))
        return cls(count, zlib.compress(np.packbits(mask).tobytes(), 1)) if count else None

    def mask(self, start: int, rows: int) -> NDArray[np.bool_]:
        """Which of the rows ``start`` to ``start + rows`` of the row group are deleted."""
        packed = np.frombuffer(zlib.decompress(self.bits), dtype=np.uint8)
        return np.unpackbits(packed, count=start + rows)[start:].astype(bool)


@dataclass(frozen=True)
class TableColumn:
    """A column of a table, and how its files call it."""

    name: str
    type: pa.DataType
    """for files that lack it"""
    field_id: int | None
    """by which it is known inside files; None where names tell"""
    stored: tuple[str, ...]
    """names in files that have no field ids"""
    default: int | float | str | None = None
    """its value in files that lack it"""


@dataclass(frozen=True)
class TableFile:
    """A data file of a version."""

    keys: tuple[Key, ...] = ()
    """values that all its rows have, and that need not stand in the file"""
    deleted: Positions | None = field(default=None, compare=False, repr=False)
    """places of deleted rows, from the file's first row on, in order"""


@dataclass(frozen=True)
class Table:
    """One version of a table."""

    kind: str
    """Delta Lake or Iceberg"""
    version: int
    """Delta Lake's version, or Iceberg's snapshot id"""
    columns: tuple[TableColumn, ...]
    key_types: dict[str, pa.DataType]
    """of columns that are not inside the files"""
    files: dict[str, TableFile]
    """by path"""

    @property
    def source(self) -> dict[str, str | int]:
        """What is kept of it beside a result."""
        return {"table": self.kind, "version": self.version}


@dataclass(frozen=True)
class Stored:
    """How a file holds the table's columns."""

    schema: pa.Schema
    """of the table's columns by their names in the table, and the types that they have in this file"""
    names: tuple[tuple[str, str], ...]
    """column -> its name inside the file, where that is another"""
    keys: tuple[Key, ...]
    """columns that the file lacks and keys of the table, with the value that all rows have"""
    deleted: tuple[Deleted | None, ...]
    """of each row group; empty where nothing is deleted"""


def as_stored(table: Table, path: str, schema: pa.Schema, row_groups: Sequence[int]) -> Stored:
    """What a file's footer means by the table's log."""
    file = table.files[path]
    by_id = {int(part.metadata[_FIELD_ID]): part for part in schema if part.metadata and _FIELD_ID in part.metadata}
    keys = {name: value for name, value in file.keys if name in table.key_types}
    constants = dict(file.keys)
    parts, names = [], []
    for column in table.columns:
        if column.name in table.key_types:
            continue
        found = _find(column, schema, by_id, path)
        parts.append(pa.field(column.name, column.type if found is None else found.type))
        if found is None:
            keys[column.name] = constants.get(column.name, column.default)
        elif found.name != column.name:
            names.append((column.name, found.name))
    return Stored(pa.schema(parts), tuple(names), tuple(sorted(keys.items())), _by_row_group(file.deleted, row_groups))


def plain_value(value: Any) -> int | float | str | None:
    """A value of a log as keys hold it: what is neither number nor text (a date) becomes text."""
    if value is None or isinstance(value, int | float | str):
        return value
    return float(value) if isinstance(value, Decimal) else str(value)


def _find(column: TableColumn, schema: pa.Schema, by_id: Mapping[int, pa.Field], path: str) -> pa.Field | None:
    if column.field_id is not None and by_id:
        return by_id.get(column.field_id)
    if column.field_id is not None and not column.stored:
        raise LakeError(
            f"{path} has no field ids and the table has no mapping of names, so its columns are not known; "
            "set 'schema.name-mapping.default' on the table, or rewrite the file"
        )
    return next((schema.field(name) for name in column.stored if schema.get_field_index(name) >= 0), None)


def _by_row_group(positions: Positions | None, row_groups: Sequence[int]) -> tuple[Deleted | None, ...]:
    if positions is None or not positions.size:
        return ()
    ends = np.cumsum(row_groups)
    if positions[-1] >= ends[-1]:
        raise LakeError(
            f"row {positions[-1]} is deleted by the table's log, but its file has {ends[-1]} rows; repair the table"
        )
    found = []
    for end, rows in zip(ends.tolist(), row_groups, strict=True):
        first, last = np.searchsorted(positions, [end - rows, end])
        mask = np.zeros(rows, dtype=bool)
        mask[positions[first:last] - (end - rows)] = True
        found.append(Deleted.of(mask))
    return tuple(found)
