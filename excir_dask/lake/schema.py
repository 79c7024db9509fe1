"""The schema contract: every file is checked against every other before any data are read.

A column is used only if every file has it once, as something that becomes a float64. What nobody asked for and is not a
number is left out and listed; what was asked for by name and cannot be used is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import pyarrow as pa
import pyarrow.types as pt

from excir_dask.errors import SchemaError, UsageError, nearest
from excir_dask.lake.snapshot import LakeFile, Snapshot

_TEXT = (
    pt.is_string, pt.is_large_string, pt.is_string_view, pt.is_dictionary,
    pt.is_binary, pt.is_large_binary, pt.is_binary_view, pt.is_fixed_size_binary,
)  # fmt: skip


@dataclass(frozen=True)
class Column:
    """One column over all files."""

    name: str
    types: tuple[str, ...]
    """the different types it has, in the order of the files"""
    unusable: str | None
    """why it is not a number, with what to do about it; None for numbers"""
    conflicts: tuple[str, ...] = ()
    """what keeps the files from being read as one, a sentence each, naming file and column"""
    key: bool = False
    """it is a Hive partition key, not a column inside the files"""


@dataclass(frozen=True)
class Selection:
    """The columns that a run reads."""

    features: tuple[str, ...]
    outputs: tuple[str, ...]
    weight: str | None
    left_out: dict[str, str]
    """columns that nobody asked for and that are not numbers -> reason"""
    converted: dict[str, str]
    """columns read as float64 whose stored type is something else -> those types"""


def describe_columns(snapshot: Snapshot) -> dict[str, Column]:
    """Every column of the lake, in the order of the first file that has it, partition keys last."""
    first_file = {schema: _first(snapshot, schema) for schema in range(len(snapshot.schemas))}
    met: dict[str, dict[int, list[pa.DataType]]] = {}
    for number, schema in enumerate(snapshot.schemas):
        for field in schema:
            met.setdefault(field.name, {}).setdefault(number, []).append(field.type)
    found = {name: _column(name, by_schema, first_file) for name, by_schema in met.items()}
    for name, kind in snapshot.key_types.items():
        both = tuple(
            f"column '{name}' is inside {first_file[number].relative} and also a folder name '{name}=...'; "
            "drop one of the two"
            for number in met.get(name, ())
        )
        found[name] = Column(name, (str(kind),), _not_a_number(kind), both, key=True)
    return found


def describe(name: str, kind: pa.DataType) -> Column:
    """A column of one type, as in a frame."""
    return Column(name, (str(kind),), _not_a_number(kind))


def select(
    columns: Mapping[str, Column],
    outputs: Sequence[str],
    weight: str | None = None,
    features: str | Sequence[str] | None = None,
) -> Selection:
    """Decide which columns are read, or say why they cannot be.

    Parameters
    ----------
    columns : mapping
        As from :func:`describe_columns`.
    outputs : sequence of str
        Columns of model outputs.
    weight : str, optional
        Column of row weights.
    features : names or patterns, optional
        Shell patterns (``temp_*``); one that begins with ``!`` takes columns away again. Default: every number that
        is neither output nor weight.
    """
    reserved = [*outputs, *([weight] if weight else [])]
    for role, name in [*(("output", name) for name in outputs), *([("weights", weight)] if weight else [])]:
        _require(columns, name, role)
    repeated = sorted({name for name in reserved if reserved.count(name) > 1})
    if repeated:
        raise UsageError(f"column '{repeated[0]}' is named twice among outputs and weights; name it once")
    wanted, by_name = _match(columns, features, reserved)
    left_out: dict[str, str] = {}
    chosen = []
    for name in wanted:
        column = columns[name]
        if name in by_name or (column.conflicts and column.unusable is None):
            _require(columns, name, "features")
        if column.unusable is not None:
            left_out[name] = column.unusable
        else:
            chosen.append(name)
    if not chosen:
        raise SchemaError(
            f"no column is left to explain: {len(columns)} columns, of which {len(left_out)} are not numbers and "
            f"{len(reserved)} are outputs or weights; check 'features'"
        )
    converted = {
        name: " and ".join(columns[name].types) for name in [*chosen, *reserved] if columns[name].types != ("double",)
    }
    return Selection(tuple(chosen), tuple(outputs), weight, left_out, converted)


def _require(columns: Mapping[str, Column], name: str, role: str) -> None:
    if name not in columns:
        raise SchemaError(f"column '{name}' ({role}) is not in the lake{nearest(name, columns)}")
    column = columns[name]
    if column.conflicts:
        raise SchemaError(column.conflicts[0])
    if column.unusable:
        raise SchemaError(f"column '{name}' ({role}) is {' and '.join(column.types)}: {column.unusable}")


def _match(
    columns: Mapping[str, Column], features: str | Sequence[str] | None, reserved: Sequence[str]
) -> tuple[list[str], set[str]]:
    """Names that the patterns leave (plain names first, as asked for, then lake order), and those named plainly."""
    patterns = [features] if isinstance(features, str) else list(features or [])
    keep = [pattern for pattern in patterns if not pattern.startswith("!")]
    drop = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    plain = [pattern for pattern in keep if pattern in columns or not any(mark in pattern for mark in "*?[")]
    for name in plain:
        if name not in columns:
            raise SchemaError(f"column '{name}' (features) is not in the lake{nearest(name, columns)}")
        if name in reserved:
            raise UsageError(f"column '{name}' is asked for as a feature but is also an output or the weights")
    globs = [pattern for pattern in keep if pattern not in plain]
    for pattern in [*globs, *drop]:
        if pattern not in columns and not any(fnmatchcase(name, pattern) for name in columns):
            raise SchemaError(f"the pattern '{pattern}' (features) matches no column{nearest(pattern, columns)}")
    if keep:
        names = list(dict.fromkeys([*plain, *(n for n in columns if any(fnmatchcase(n, glob) for glob in globs))]))
    else:
        names = list(columns)
    dropped = {n for n in names for pattern in drop if n == pattern or fnmatchcase(n, pattern)}
    return [n for n in names if n not in dropped and n not in reserved], set(plain) - dropped


def _first(snapshot: Snapshot, schema: int) -> LakeFile:
    return next(file for file in snapshot.files if file.schema == schema)


def _column(name: str, by_schema: Mapping[int, list[pa.DataType]], first_file: Mapping[int, LakeFile]) -> Column:
    types = [kind for kinds in by_schema.values() for kind in kinds]
    filled = [kind for kind in types if not pt.is_null(kind)]
    numbers = [kind for kind in filled if _not_a_number(kind) is None]
    others = [kind for kind in filled if _not_a_number(kind) is not None]
    names = tuple(dict.fromkeys(str(kind) for kind in types))
    unusable = None if numbers else _not_a_number((others or types)[0])
    conflicts = [
        f"column '{name}' stands {len(kinds)} times in {first_file[number].relative}; rename one of them"
        for number, kinds in by_schema.items()
        if len(kinds) > 1
    ]
    there = first_file[min(by_schema)].relative
    conflicts += [
        f"column '{name}' is missing in {file.relative} but is {types[0]} in {there}; "
        "rewrite that file with the column, or choose features without it"
        for number, file in first_file.items()
        if number not in by_schema
    ]
    if numbers and others:
        where = {str(kind): first_file[number].relative for number, kinds in by_schema.items() for kind in kinds}
        conflicts += [
            f"column '{name}' is {other} in {where[other]} but {numbers[0]} in {where[str(numbers[0])]}; "
            "cast it, or choose features without it"
            for other in dict.fromkeys(str(kind) for kind in others)
        ]
    return Column(name, names, unusable, tuple(conflicts))


def _not_a_number(kind: pa.DataType) -> str | None:
    """None for what becomes a float64; else what it is and what to do."""
    if pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind) or pt.is_boolean(kind):
        return None
    if pt.is_temporal(kind):
        return f"a time ({kind}), not a number; write it as a number first, for instance seconds since a fixed day"
    if any(is_text(kind) for is_text in _TEXT):
        return f"text or categories ({kind}), not a number; encode it first, for instance one 0/1 column a category"
    if pt.is_nested(kind):
        return f"nested ({kind}), not a number; write its parts as columns of their own"
    if pt.is_null(kind):
        return "empty in every file (null type), so there is nothing to score"
    return f"of type {kind}, which does not become a number"


def conflicts(columns: Iterable[Column]) -> list[str]:
    """Every conflict between the files, one sentence each."""
    return [conflict for column in columns for conflict in column.conflicts]
