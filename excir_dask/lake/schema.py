"""The schema contract: the schemas of all files are compared before any data are read.

Files must agree on what a column is: a number (any type that converts to float64), a vector of a fixed number of them,
or categories.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.types as pt

from excir_dask.common.wording import count
from excir_dask.lake.snapshot import LakeFile, Snapshot

_TEXT = (pt.is_string, pt.is_large_string, pt.is_string_view, pt.is_dictionary)
_BINARY = (pt.is_binary, pt.is_large_binary, pt.is_binary_view, pt.is_fixed_size_binary)


@dataclass(frozen=True)
class Column:
    """A column of the lake."""

    name: str
    types: tuple[str, ...]
    """its distinct types, in the order of the files"""
    unusable: str | None
    """why it is not a number, and what to do about it; None for numbers"""
    conflicts: tuple[str, ...] = ()
    """sentences that say how files disagree, with file and column"""
    key: bool = False
    """a partition key, which is not inside the files"""
    elements: int | None = None
    """length of a vector; None for other columns"""
    text: bool = False
    """holds categories: strings, or a dictionary"""
    encrypted: bool = False
    """in at least one file, which makes it unusable"""
    unit: str | None = None
    """of a time as a number, such as "days since 1970-01-01"; None for other columns"""


def describe_columns(snapshot: Snapshot) -> dict[str, Column]:
    """All columns of the lake, in the order of the first file that has each, with partition keys last."""
    first_file = {schema: _first(snapshot, schema) for schema in range(len(snapshot.schemas))}
    types: dict[str, dict[int, list[pa.DataType]]] = {}
    for number, schema in enumerate(snapshot.schemas):
        for part in schema:
            types.setdefault(part.name, {}).setdefault(number, []).append(part.type)
    columns = {name: _column(name, by_schema, first_file) for name, by_schema in types.items()}
    for name, kind in snapshot.key_types.items():
        both = tuple(
            f"column '{name}' is in {first_file[number].relative} and also in the names of folders ('{name}=...'); "
            "drop one of them"
            for number in types.get(name, ())
        )
        columns[name] = replace(describe(name, kind), conflicts=both, key=True)
    for file in snapshot.files:  # a table's log has times as text
        for name in (name for name, value in file.constants if isinstance(value, str) and name in columns):
            columns[name] = replace(columns[name], unit=None)
    for name, files in _encrypted_columns(snapshot).items():
        others = f" and {count(len(files) - 1, 'more file')}" if len(files) > 1 else ""
        reason = f"encrypted in {files[0]}{others}; write a copy without encryption, or leave the column out"
        columns[name] = replace(columns[name], unusable=reason, elements=None, text=False, encrypted=True, unit=None)
    return columns


def column_types(snapshot: Snapshot, names: Iterable[str]) -> dict[str, list[pa.DataType]]:
    """The types that some columns have in files."""
    found: dict[str, list[pa.DataType]] = {}
    for name in names:
        kinds = [schema.field(name).type for schema in snapshot.schemas if schema.get_field_index(name) >= 0]
        found[name] = [snapshot.key_types[name]] if name in snapshot.key_types else kinds
    return found


def _encrypted_columns(snapshot: Snapshot) -> dict[str, list[str]]:
    """Encrypted columns -> files in which they are."""
    found: dict[str, list[str]] = {}
    for file in snapshot.files:
        for name in file.encrypted:
            found.setdefault(name, []).append(file.relative)
    return found


def describe(name: str, kind: pa.DataType) -> Column:
    """A column that has one type everywhere."""
    return Column(
        name, (str(kind),), _not_a_number(kind), elements=_elements(kind), text=_is_text(kind), unit=_unit(kind)
    )


def _first(snapshot: Snapshot, schema: int) -> LakeFile:
    return next(file for file in snapshot.files if file.schema == schema)


def _column(name: str, by_schema: Mapping[int, list[pa.DataType]], first_file: Mapping[int, LakeFile]) -> Column:
    types = [kind for kinds in by_schema.values() for kind in kinds]
    filled = [kind for kind in types if not pt.is_null(kind)]
    usable = [kind for kind in filled if _not_a_number(kind) is None] or [kind for kind in filled if _is_text(kind)]
    usable = usable or [kind for kind in filled if _unit(kind) is not None]
    # files must agree: a number, a vector of some length, or categories
    others = [kind for kind in filled if usable and _family(kind) != _family(usable[0])]
    names = tuple(dict.fromkeys(str(kind) for kind in types))
    found = describe(name, (usable or filled or types)[0])
    conflicts = [
        f"{first_file[number].relative} has {len(kinds)} columns named '{name}'; rename all but one"
        for number, kinds in by_schema.items()
        if len(kinds) > 1
    ]
    present = first_file[min(by_schema)].relative
    conflicts += [
        f"column '{name}' is missing in {file.relative} but is {types[0]} in {present}; "
        "rewrite that file with the column, or leave the column out of the features"
        for number, file in first_file.items()
        if number not in by_schema
    ]
    if others:
        where = {str(kind): first_file[number].relative for number, kinds in by_schema.items() for kind in kinds}
        conflicts += [
            f"column '{name}' is {other} in {where[other]} but {usable[0]} in {where[str(usable[0])]}; "
            "cast it, or leave it out of the features"
            for other in dict.fromkeys(str(kind) for kind in others)
        ]
    return replace(found, types=names, conflicts=tuple(conflicts))


def _not_a_number(kind: pa.DataType) -> str | None:
    """None if the type converts to float64; else what it is and what to do."""
    if pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind) or pt.is_boolean(kind):
        return None
    if _elements(kind) is not None:
        return None
    if pt.is_temporal(kind):
        return f"a time ({kind}), not a number; convert it first, for instance to seconds since a fixed day"
    if _is_text(kind):
        return f"text or categories ({kind}), not a number; encode it first, or ask for indicators of its categories"
    if any(is_binary(kind) for is_binary in _BINARY):
        return f"binary ({kind}), not a number; encode it first, for instance as one 0/1 column per category"
    if pt.is_nested(kind):
        return f"nested ({kind}), not a number; write its parts as columns, or as a fixed-size list"
    if pt.is_null(kind):
        return "empty in every file (null type), so it has no values to score"
    return f"of type {kind}, which does not convert to a number"


def _family(kind: pa.DataType) -> tuple[str | None, int | None]:
    """What files must agree on; equal for types that can be mixed."""
    if _is_text(kind):
        return "text", None
    if (unit := _unit(kind)) is not None:
        return unit, None
    return None if _not_a_number(kind) is None else str(kind), _elements(kind)


def _unit(kind: pa.DataType) -> str | None:
    """What a time counts as a number; None for other types."""
    if pt.is_timestamp(kind):
        return "seconds since 1970-01-01" + (" UTC" if kind.tz else "")
    if pt.is_date(kind):
        return "days since 1970-01-01"
    if pt.is_time(kind):
        return "seconds since midnight"
    return "seconds" if pt.is_duration(kind) else None


def _is_text(kind: pa.DataType) -> bool:
    return any(is_text(kind) for is_text in _TEXT)


def _elements(kind: pa.DataType) -> int | None:
    """Length of a vector; None for other types."""
    if pt.is_fixed_size_list(kind) and kind.list_size and _elements(kind.value_type) is None:
        return kind.list_size if _not_a_number(kind.value_type) is None else None
    return None


def conflicts(columns: Iterable[Column]) -> list[str]:
    """All conflicts between files, one sentence each."""
    return [conflict for column in columns for conflict in column.conflicts]
