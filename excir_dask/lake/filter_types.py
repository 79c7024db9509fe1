"""Types of a filter's columns, and values of its text in those types."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from excir_dask.lake.where import Value

_FIRST_NS, _LAST_NS = datetime(1677, 9, 22, tzinfo=UTC), datetime(2262, 4, 11, tzinfo=UTC)
"""times that nanoseconds can tell"""

_DECIMAL_DIGITS = 38


@dataclass(frozen=True)
class Literal:
    """A value, and the type in which it is compared."""

    value: Any
    type: pa.DataType

    @property
    def scalar(self) -> pa.Scalar:
        return pa.scalar(self.value, self.type)


def common_type(types: Sequence[pa.DataType]) -> pa.DataType | None:
    """The type in which a column is compared that has these types in files; None if there is no such type."""
    plain = [kind.value_type if pt.is_dictionary(kind) else kind for kind in types]
    plain = [kind for kind in plain if not pt.is_null(kind)]
    if not plain:
        return None
    for belongs, choose in _FAMILIES:
        if all(belongs(kind) for kind in plain):
            return choose(plain)
    return None


def _is_number(kind: pa.DataType) -> bool:
    return bool(pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind))


def _integer(types: Sequence[pa.DataType]) -> pa.DataType:
    if not any(pt.is_uint64(kind) for kind in types):
        return pa.int64()
    return pa.uint64() if all(pt.is_unsigned_integer(kind) for kind in types) else pa.float64()


def _decimal(types: Sequence[pa.DataType]) -> pa.DataType:
    if len(set(types)) == 1:
        return types[0]
    return pa.decimal128(_DECIMAL_DIGITS, max(kind.scale for kind in types))


def _moment(types: Sequence[pa.DataType]) -> pa.DataType | None:
    """A timestamp, fine enough for all; None if some know their time zone and others do not."""
    zones = {kind.tz if pt.is_timestamp(kind) else None for kind in types}
    if None in zones and len(zones) > 1:
        return None
    unit = "ns" if any(pt.is_timestamp(kind) and kind.unit == "ns" for kind in types) else "us"
    return pa.timestamp(unit, tz=zones.pop() if len(zones) == 1 else "UTC")


def _clock(types: Sequence[pa.DataType]) -> pa.DataType:
    return pa.time64("ns" if any(kind.unit == "ns" for kind in types) else "us")


_FAMILIES: list[tuple[Callable[[pa.DataType], bool], Callable[[Sequence[pa.DataType]], pa.DataType | None]]] = [
    (pt.is_boolean, lambda types: pa.bool_()),
    (pt.is_integer, _integer),
    (pt.is_decimal, _decimal),
    (_is_number, lambda types: pa.float64()),
    (_is_text, lambda types: pa.string()),
    (pt.is_date, lambda types: pa.date32()),
    (lambda kind: pt.is_date(kind) or pt.is_timestamp(kind), _moment),
    (pt.is_time, _clock),
]


def literal(value: Value, kind: pa.DataType) -> Literal | str:
    """A value to compare a column of a type with, or why it cannot be."""
    if pt.is_boolean(kind):
        return Literal(value, kind) if isinstance(value, bool) else f"{_what(value)}; write True or False"
    if isinstance(value, bool):
        return f"{_what(value)}; compare it with {'a text' if _is_text(kind) else 'a number'}"
    if _is_number(kind):
        return f"{_what(value)}; write a number without quotes" if isinstance(value, str) else _number(value, kind)
    if not isinstance(value, str):
        return f"{_what(value)}; write it in quotes" + ("" if _is_text(kind) else f", such as {_example(kind)}")
    if _is_text(kind):
        return Literal(value, kind)
    try:
        return _time(value, kind)
    except ValueError:
        return f"{value!r} cannot be read as one; write it as {_example(kind)}"


def _what(value: Value) -> str:
    kind = "a truth value" if isinstance(value, bool) else "text" if isinstance(value, str) else "a number"
    return f"{value!r} is {kind}"


def _example(kind: pa.DataType) -> str:
    if pt.is_time(kind):
        return "'14:30'"
    return "'2026-09-01'" + ("" if pt.is_date(kind) else " or '2026-09-01 14:30'")


def _number(value: int | float, kind: pa.DataType) -> Literal:
    if pt.is_integer(kind):
        low, high = (0, 2**64) if pt.is_uint64(kind) else (-(2**63), 2**63)
        if math.isfinite(value) and value == int(value) and low <= value < high:
            return Literal(int(value), kind)
    if pt.is_decimal(kind) and math.isfinite(value):
        try:
            return Literal(pa.scalar(Decimal(str(value)), kind).as_py(), kind)
        except pa.ArrowInvalid:  # the type cannot hold it, so no value of the column equals it: floats tell the order
            pass
    try:
        return Literal(float(value), pa.float64())
    except OverflowError:
        return Literal(math.inf if value > 0 else -math.inf, pa.float64())


def _time(text: str, kind: pa.DataType) -> Literal:
    if pt.is_time(kind):
        return Literal(time.fromisoformat(text), kind)
    if pt.is_date(kind):
        try:
            return Literal(date.fromisoformat(text), kind)
        except ValueError:
            kind = pa.timestamp("us")
    moment = datetime.fromisoformat(text)
    if kind.tz is None:
        if moment.tzinfo is not None:
            raise ValueError("the column has no time zone")
    elif moment.tzinfo is None:  # a time of the column's zone, as pandas takes it
        moment = moment.replace(tzinfo=pa.lib.string_to_tzinfo(kind.tz))
    if not _FIRST_NS < (moment if kind.tz else moment.replace(tzinfo=UTC)) < _LAST_NS:
        kind = pa.timestamp("us", tz=kind.tz)
    return Literal(moment, kind)
