"""Row groups that cannot hold a row of a filter, as Hive keys, table logs and footers prove.

Each condition is judged by what it can be in some row of the row group: false, unknown, or true (-1, 0, 1). The
combinations of these are SQL's logic. A row group is left out only if the filter can be true in no row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import product
from typing import Any as Anything

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from excir_dask.lake.filter import RowFilter, constant
from excir_dask.lake.footer_statistics import map_footers
from excir_dask.lake.snapshot import LakeFile, Snapshot
from excir_dask.lake.where import All, Any, Column, Compare, Condition, IsIn, IsMissing, Not

FALSE, UNKNOWN, TRUE = -1, 0, 1
_ANYTHING = frozenset((FALSE, UNKNOWN, TRUE))

Outcomes = frozenset[int]

_EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True)
class Range:
    """What is known of the values of a column in some rows."""

    low: Anything = None
    """None: unknown, as high is"""
    high: Anything = None
    nulls: bool = True
    """some may be missing"""
    values: bool = True
    """some may not be missing"""


def prune(snapshot: Snapshot, where: RowFilter) -> Snapshot:
    """The snapshot with the row groups that hold no row of a filter marked as such."""
    excluded: dict[str, frozenset[int]] = {}
    unsure = []
    for file in snapshot.files:
        keys = _key_ranges(where, file)
        if not _possible(where, keys):
            excluded[file.path] = frozenset(range(len(file.row_groups)))
        elif len(keys) < len(where.columns):
            unsure.append(file)
    found = map_footers(snapshot, lambda file, parquet: _excluded(where, file, parquet), unsure)
    excluded |= {file.path: groups for file, groups in zip(unsure, found, strict=True)}
    return replace(snapshot, excluded=tuple(excluded.get(file.path, frozenset()) for file in snapshot.files))


def nothing_matches(where: RowFilter, rows: int, fraction: float = 1.0) -> str:
    """What to say where no row group is left to read."""
    sample = f", or to the sample (fraction {fraction:g})" if fraction < 1.0 else ""
    return (
        f"no row is left to explain: keys and footers rule out that any of {rows:,} rows matches {where.label}; "
        f"change the filter{sample}"
    )


def _excluded(where: RowFilter, file: LakeFile, parquet: pq.ParquetFile) -> frozenset[int]:
    """Row groups of a file without a match."""
    keys, kinds, stored = _key_ranges(where, file), dict(where.types), dict(file.stored_names)
    leaves = {path[0]: leaf for leaf, path in enumerate(parquet.reader.column_paths) if len(path) == 1}
    places = {name: leaves.get(stored.get(name, name)) for name in where.columns if name not in keys}
    chunks = {name: leaf for name, leaf in places.items() if leaf is not None}
    excluded = set()
    for number in range(len(file.row_groups)):
        group = parquet.metadata.row_group(number)
        ranges = {name: _chunk_range(group.column(leaf), kinds[name]) for name, leaf in chunks.items()}
        if not _possible(where, keys | ranges):
            excluded.add(number)
    return frozenset(excluded)


def _key_ranges(where: RowFilter, file: LakeFile) -> dict[str, Range]:
    """Columns that have one value in all rows of a file."""
    keys, kinds = dict(file.constants), dict(where.types)
    found = {}
    for name in where.columns:
        if name in keys:
            value = _ordered(constant(keys[name], kinds[name]).as_py(), kinds[name])
            found[name] = Range(values=False) if value is None else Range(value, value, nulls=False)
    return found


def _chunk_range(chunk: pq.ColumnChunkMetaData, kind: pa.DataType) -> Range:
    statistics = chunk.statistics
    if statistics is None:
        return Range()
    missing = statistics.null_count if statistics.has_null_count else None
    if missing is not None and missing == chunk.num_values:
        return Range(values=False)
    # statistics do not count NaN, which is as missing as null
    found = Range(nulls=missing != 0 or pt.is_floating(kind))
    if not statistics.has_min_max:
        return found
    low, high = _ordered(statistics.min, kind), _ordered(statistics.max, kind)
    if low is None or high is None or not low <= high:
        return found
    if isinstance(low, timedelta):  # nanoseconds are cut off
        low, high = low - timedelta(microseconds=1), high + timedelta(microseconds=1)
    return replace(found, low=low, high=high)


def _ordered(value: Anything, kind: pa.DataType) -> Anything:
    """A value of a column as something that is ordered like the column; None if there is no such thing."""
    if pt.is_decimal(kind):
        return value if isinstance(value, Decimal) else None
    if pt.is_floating(kind):
        return float(value) if isinstance(value, int | float) and value == value else None
    if pt.is_integer(kind) or pt.is_boolean(kind):
        return int(value) if isinstance(value, int) else None
    if pt.is_string(kind):
        return value if isinstance(value, str) else None
    return _since_epoch(value)


def _since_epoch(value: Anything) -> timedelta | None:
    if isinstance(value, time):
        return timedelta(hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond)
    if isinstance(value, datetime):  # pandas' timestamps are some
        zone = None if value.tzinfo is None else UTC
        moment = value if zone is None else value.astimezone(zone)
        return datetime(*moment.timetuple()[:6], moment.microsecond) - _EPOCH
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day) - _EPOCH
    return None


def _possible(where: RowFilter, ranges: Mapping[str, Range]) -> bool:
    """Whether the filter can be true for a row of columns in these ranges."""
    return TRUE in _outcomes(where, where.condition, ranges)


def _outcomes(where: RowFilter, condition: Condition, ranges: Mapping[str, Range]) -> Outcomes:
    match condition:
        case All(parts):
            return _combined(min, [_outcomes(where, part, ranges) for part in parts])
        case Any(parts):
            return _combined(max, [_outcomes(where, part, ranges) for part in parts])
        case Not(part):
            return frozenset(-each for each in _outcomes(where, part, ranges))
        case IsMissing(Column(name)):
            known = ranges.get(name, Range())
            return frozenset([TRUE] * known.nulls + [FALSE] * known.values)
        case Compare(_, _, Column()):
            return _ANYTHING
        case Compare(Column(name), operator, value):
            return _compared(ranges.get(name, Range()), operator, [_value(where, name, value)])
        case IsIn(Column(name), values):
            return _compared(ranges.get(name, Range()), "==", [_value(where, name, value) for value in values])


def _value(where: RowFilter, name: str, value: Anything) -> Anything:
    """A value of the text, ordered like the column; None if it is not compared in the column's type."""
    found, kind = where.literal(name, value), dict(where.types)[name]
    alike = found.type == kind or (pt.is_integer(kind) and pt.is_floating(found.type)) or pt.is_temporal(kind)
    if not alike:
        return None
    return found.value if pt.is_floating(found.type) else _ordered(found.value, kind)


def _combined(choose: Callable[[Sequence[int]], int], parts: Sequence[Outcomes]) -> Outcomes:
    found = parts[0]
    for part in parts[1:]:
        found = frozenset(choose(pair) for pair in product(found, part))
    return found


def _compared(known: Range, operator: str, values: Sequence[Anything]) -> Outcomes:
    """Of a column that is compared with some values, one of which is enough."""
    unknown = [UNKNOWN] * known.nulls
    if not known.values:
        return frozenset([UNKNOWN])
    if known.low is None or any(value is None for value in values):
        return frozenset([TRUE, FALSE, *unknown])
    low, high = known.low, known.high
    can_be: dict[str, tuple[bool, bool]] = {}
    equal = any(low <= value <= high for value in values), not (low == high and low in values)
    can_be["=="], can_be["!="] = equal, (equal[1], equal[0])
    if operator not in can_be:
        (value,) = values
        less, at_most = (low < value, high >= value), (low <= value, high > value)
        can_be |= {"<": less, "<=": at_most, ">=": (less[1], less[0]), ">": (at_most[1], at_most[0])}
    true, false = can_be[operator]
    return frozenset([TRUE] * true + [FALSE] * false + unknown)
