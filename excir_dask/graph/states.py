"""What a task leaves behind: the state of a slice, and what it cost to get it.

A state holds facts of two kinds: those of the columns of its slice, and those of its span of rows (how many there are,
their outputs and categories). Only the leading slice of a span reports the latter.
Combining builds new states in a fixed order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

from excir_dask.errors import DataError, InternalError
from excir_dask.lake.blocks import Layout, ModelOutputs
from excir_dask.lake.plan import Slice

Columns = TypeVar("Columns")
Span = TypeVar("Span")
Value = TypeVar("Value")


@dataclass(frozen=True)
class SliceState(Generic[Columns, Span]):
    """What a scan found out about a slice, or about several that were merged."""

    VERSION: ClassVar[int] = 1

    columns: Columns
    """facts of the columns"""
    span: Span | None
    """facts of the rows; None where another slice of the same rows tells them"""


@dataclass(frozen=True)
class Cost:
    """What was done to get a state."""

    bytes_read: int = 0
    """compressed bytes of the column chunks that were read"""
    resumed: int = 0
    """states taken from the checkpoint"""
    rejected: int = 0
    """states of the checkpoint that could not be used"""
    reason: str = ""
    """which was the first of those, and why"""

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.bytes_read + other.bytes_read,
            self.resumed + other.resumed,
            self.rejected + other.rejected,
            self.reason or other.reason,
        )


@dataclass(frozen=True)
class Outcome(Generic[Value]):
    """Result of a task."""

    value: Value
    cost: Cost

    def __sizeof__(self) -> int:  # dask and the local store decide by this what to spill
        return self.value.__sizeof__()


@dataclass(frozen=True)
class Reduction(Generic[Columns, Span]):
    """How a scan turns slices into states, and states into one."""

    verb: str
    """begins the keys of its tasks and the names of its states"""
    label: str
    """of its progress"""
    of_slice: Callable[..., SliceState[Columns, Span]]
    """(piece, rows, model outputs, layout, *given) -> state"""
    check: Callable[..., None]
    """(state, piece, model outputs, layout, *given): refuses a stored state that is not of this slice"""
    merge_columns: Callable[[list[Columns]], Columns]
    """the same columns over the rows of all parts"""
    concatenate_columns: Callable[[list[Columns]], Columns]
    """all columns of parts with the same rows"""
    merge_span: Callable[[list[Span]], Span]
    """over the rows of all parts"""

    def merge(self, parts: Sequence[SliceState[Columns, Span]]) -> SliceState[Columns, Span]:
        return merge_states(parts, self.merge_columns, self.merge_span)

    def concatenate(self, parts: Sequence[SliceState[Columns, Span]]) -> SliceState[Columns, Span]:
        """States of the same rows as one."""
        spans = [part.span for part in parts if part.span is not None]
        if len(spans) > 1:
            raise InternalError(f"{len(spans)} of {len(parts)} slices lead the same span of rows")
        return SliceState(self.concatenate_columns([part.columns for part in parts]), spans[0] if spans else None)


def merge_states(
    parts: Sequence[SliceState[Columns, Span]],
    merge_columns: Callable[[list[Columns]], Columns],
    merge_span: Callable[[list[Span]], Span],
) -> SliceState[Columns, Span]:
    """States of the same columns as one."""
    spans = [part.span for part in parts if part.span is not None]
    if spans and len(spans) != len(parts):
        raise InternalError(f"{len(spans)} of {len(parts)} slices of the same columns lead their span of rows")
    return SliceState(merge_columns([part.columns for part in parts]), merge_span(spans) if spans else None)


def check_parts(state: object, columns: type, span: type, piece: Slice) -> None:
    """Refuse a stored state of another kind of slice."""
    if not isinstance(state, SliceState) or not isinstance(state.columns, columns):
        raise DataError(f"it does not hold {columns.__name__} of columns")
    if not isinstance(state.span, span if piece.lead else type(None)):
        raise DataError(f"it holds {type(state.span).__name__} of rows")


def check_count(found: int, expected: int, what: str) -> None:
    """Refuse a stored state with another number of something."""
    if found != expected:
        raise DataError(f"it holds {found} {what} in place of {expected}")


def check_names(found: Sequence[str], layout: Layout, scored: ModelOutputs | None) -> None:
    """Refuse a stored state of other outputs."""
    names = layout.outputs if scored is None else scored.names
    if tuple(found) != tuple(names):
        raise DataError(f"its outputs are {', '.join(found)}, not {', '.join(names)}")


def combine(function: Callable[[list[Any]], Value], parts: Sequence[Outcome[Any]]) -> Outcome[Value]:
    """A function of the values of some tasks, with what they cost together."""
    return Outcome(function([part.value for part in parts]), total_cost(parts))


def combined(function: Callable[[list[Any]], Value]) -> Callable[[Sequence[Outcome[Any]]], Outcome[Value]]:
    """The same for a task that gets its parts later."""
    return partial(combine, function)


def total_cost(parts: Sequence[Outcome[Any]]) -> Cost:
    return sum((part.cost for part in parts), Cost())


def reused(outcome: Outcome[Value]) -> Outcome[Value]:
    """What was there already: it costs nothing now."""
    return Outcome(outcome.value, Cost())
