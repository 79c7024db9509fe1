"""Row filters: which rows of a table match the conditions of a text.

A condition on a missing value (null or NaN) is neither true nor false, and neither is its negation, as in SQL; only
rows for which the whole filter is true match. pyarrow evaluates the conditions, batch by batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from typing import Any as Anything

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from excir_dask.common.textfile import brief
from excir_dask.errors import DataError, SchemaError, UsageError, nearest
from excir_dask.lake.filter_types import Literal, common_type, literal
from excir_dask.lake.schema import Column as LakeColumn
from excir_dask.lake.where import All, Any, Column, Compare, Condition, IsIn, IsMissing, Not, Value, columns_of, parse

Mask = NDArray[np.bool_]

_OPERATORS: dict[str, Callable[..., Anything]] = {
    "==": pc.equal, "!=": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal,
}  # fmt: skip

_CHANGED = "cast it, or leave it out of where"


@dataclass(frozen=True)
class RowFilter:
    """A filter that fits the columns of a lake."""

    text: str
    types: tuple[tuple[str, pa.DataType], ...]
    """its columns, and the type in which each is compared"""

    @property
    def label(self) -> str:
        """As messages name it."""
        return f"where={brief(self.text)}"

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.types)

    @property
    def condition(self) -> Condition:
        return parsed(self.text)

    def literal(self, column: str, value: Value) -> Literal:
        """A value of the text in the type of a column."""
        found = literal(value, dict(self.types)[column])
        assert isinstance(found, Literal), "checked when the filter met the lake"
        return found

    def mask(self, table: pa.Table, constants: Mapping[str, Anything] | None = None, place: str = "the frame") -> Mask:
        """Which rows of a table match.

        Parameters
        ----------
        table : Table
            With the columns of the filter, in any type that can be cast to the filter's.
        constants : mapping, optional
            Columns that have one value in all rows, in place of columns of the table.
        place : str
            Where the rows come from, for messages.
        """
        return self._mask({name: self._column(name, table, constants or {}, place) for name in self.columns})

    def _column(self, name: str, table: pa.Table, constants: Mapping[str, Anything], place: str) -> pa.ChunkedArray:
        kind = dict(self.types)[name]
        try:
            if name in constants:
                return pa.chunked_array([pa.repeat(constant(constants[name], kind), table.num_rows)])
            column = table.column(name)
            if pt.is_dictionary(column.type):
                column = column.cast(column.type.value_type)
            column = column.cast(kind, safe=not pt.is_floating(kind))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise DataError(f"column '{name}' (where) of {place} cannot be compared as {kind}: {error}") from error
        return pc.if_else(pc.is_nan(column), pa.scalar(None, kind), column) if pt.is_floating(kind) else column

    def _mask(self, columns: Mapping[str, pa.ChunkedArray]) -> Mask:
        found = self._evaluate(self.condition, columns)
        mask: Mask = pc.fill_null(found, False).to_numpy()
        return mask

    def _evaluate(self, condition: Condition, columns: Mapping[str, pa.ChunkedArray]) -> pa.ChunkedArray:
        match condition:
            case All(parts):
                return reduce(pc.and_kleene, (self._evaluate(part, columns) for part in parts))
            case Any(parts):
                return reduce(pc.or_kleene, (self._evaluate(part, columns) for part in parts))
            case Not(part):
                return pc.invert(self._evaluate(part, columns))
            case IsMissing(Column(name)):
                return pc.is_null(columns[name])
            case IsIn(Column(name), values):
                return self._is_in(columns[name], [self.literal(name, value) for value in values])
            case Compare(Column(name), operator, Column(other)):
                return _OPERATORS[operator](*_alike(columns[name], columns[other]))
            case Compare(Column(name), operator, bool() | int() | float() | str() as value):
                return _compare(columns[name], operator, self.literal(name, value))
        raise AssertionError(condition)

    def _is_in(self, column: pa.ChunkedArray, values: Sequence[Literal]) -> pa.ChunkedArray:
        """Neither true nor false where the column is missing, unlike pyarrow's own."""
        same = [each.value for each in values if each.type == column.type]
        found = pc.is_in(column, value_set=pa.array(same, column.type))
        found = pc.if_else(pc.is_valid(column), found, pa.scalar(None, pa.bool_()))
        others = (_compare(column, "==", each) for each in values if each.type != column.type)
        return reduce(pc.or_kleene, others, found)


@cache
def parsed(text: str) -> Condition:
    return parse(text)


def constant(value: Anything, kind: pa.DataType) -> pa.Scalar:
    """A partition key or default, which logs and paths have as a number or text, as a type."""
    return pa.scalar(value).cast(kind) if value is not None and value == value else pa.scalar(None, kind)


def bind(
    text: str, columns: Mapping[str, LakeColumn], types_of: Callable[[Sequence[str]], Mapping[str, list[pa.DataType]]]
) -> RowFilter:
    """A filter for the columns of a lake; raise if it does not fit.

    Parameters
    ----------
    text : str
    columns : mapping
        From :func:`describe_columns` or :func:`frame_columns`.
    types_of : callable
        The types that some columns have in the files of the lake.
    """
    condition = parsed(text)
    names = tuple(dict.fromkeys(columns_of(condition)))
    for name in names:
        if name not in columns:
            raise SchemaError(f"column '{name}' (where) is not in the lake{nearest(name, columns)}")
        if columns[name].conflicts:
            raise SchemaError(columns[name].conflicts[0])
        if columns[name].encrypted:
            raise SchemaError(f"column '{name}' (where) is {columns[name].unusable}")
    types = types_of(names)
    found = RowFilter(text, tuple((name, _type(name, types[name])) for name in names))
    _check(condition, dict(found.types))
    return found


def _type(name: str, types: Sequence[pa.DataType]) -> pa.DataType:
    found = common_type(types)
    if found is not None:
        return found
    distinct = list(dict.fromkeys(map(str, types)))
    if len(distinct) > 1:
        raise SchemaError(f"column '{name}' (where) is {' and '.join(distinct)}, which cannot be compared; {_CHANGED}")
    raise SchemaError(
        f"column '{name}' (where) is {distinct[0]}; a filter takes numbers, text, truth values, dates and times"
    )


def _check(condition: Condition, types: Mapping[str, pa.DataType]) -> None:
    """Refuse to compare a column with what it cannot be compared with."""
    match condition:
        case All(parts) | Any(parts):
            for part in parts:
                _check(part, types)
        case Not(part):
            _check(part, types)
        case Compare(Column(name), _, Column(other)):
            if common_type([types[name], types[other]]) is None:
                raise UsageError(
                    f"where: '{name}' is {types[name]}; '{other}' is {types[other]}; compare columns of one type"
                )
        case Compare(Column(name), _, value):
            _check_value(name, value, types[name])
        case IsIn(Column(name), values):
            for value in values:
                _check_value(name, value, types[name])


def _check_value(name: str, value: Value | Column, kind: pa.DataType) -> None:
    assert not isinstance(value, Column), "columns are compared elsewhere"
    found = literal(value, kind)
    if isinstance(found, str):
        raise UsageError(f"where: '{name}' is {kind}; {found}")


def _compare(column: pa.ChunkedArray, operator: str, value: Literal) -> pa.ChunkedArray:
    if column.type != value.type:
        column = column.cast(value.type, safe=False)  # rounding keeps the order: no value of the column equals this one
    return _OPERATORS[operator](column, value.scalar)


def _alike(*columns: pa.ChunkedArray) -> list[pa.ChunkedArray]:
    """Columns in the type that they have in common."""
    kind = common_type([column.type for column in columns])
    return [column.cast(kind, safe=False) for column in columns]
