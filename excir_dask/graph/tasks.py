"""The tasks of a graph that read: scan a slice, show a span of rows to the model, cache rows, count categories.

Each gives an Outcome: its value, and what it cost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from excir_dask.errors import DataError
from excir_dask.graph.category_scan import count_slice_categories, same_names
from excir_dask.graph.states import Cost, Outcome, Reduction, SliceState, check_count
from excir_dask.kernels.categories import CategoryCounts
from excir_dask.lake.blocks import Layout, ModelOutputs, sample_mask
from excir_dask.lake.cache import CachedRows
from excir_dask.lake.plan import Slice
from excir_dask.lake.read import cache_slice, matching_rows, row_ranges
from excir_dask.lake.retry import with_retries
from excir_dask.lake.rows import read_rows

if TYPE_CHECKING:
    from excir_dask.models.scoring import Model

Value = TypeVar("Value")


class StateStore(Protocol):
    """Keeps states between runs."""

    def take(self, name: str, make: Callable[[], Outcome[Value]], check: Callable[[Value], None]) -> Outcome[Value]: ...


def scan_slice(
    reduction: Reduction[Any, Any],
    name: str,
    piece: Slice,
    rows: Any,
    scored: Outcome[ModelOutputs] | None,
    counts_sources: bool,
    store: StateStore | None,
    layout: Layout,
    *given: Any,
) -> Outcome[SliceState[Any, Any]]:
    """A slice's state, or the one stored under its name.

    Parameters
    ----------
    reduction : Reduction
    name : str
        Of the state.
    piece : Slice
    rows : Outcome or DataFrame, optional
        Cached rows of the slice, or the piece of a frame; None reads its files.
    scored : Outcome, optional
        The outputs, where a model makes them.
    counts_sources : bool
        Whether the cost of ``rows`` and ``scored`` is part of this task's: in one scan only.
    store : StateStore, optional
    layout : Layout
    *given : object
        Whatever else the reduction takes.
    """
    source = rows.value if isinstance(rows, Outcome) else rows
    outputs = None if scored is None else scored.value
    found: Outcome[SliceState[Any, Any]] = _taken(
        store,
        name,
        layout,
        lambda: reduction.of_slice(piece, source, outputs, layout, *given),
        lambda state: reduction.check(state, piece, outputs, layout, *given),
    )
    cost = found.cost
    if counts_sources and isinstance(rows, Outcome):
        cost += rows.cost
    if counts_sources and scored is not None and piece.lead:  # a span has one task for its outputs
        cost += scored.cost
    return Outcome(found.value, cost)


def score_span(
    name: str,
    piece: Slice,
    frame: Any,
    earlier: Outcome[ModelOutputs] | None,
    store: StateStore | None,
    layout: Layout,
    model: Model,
    budget: int,
) -> Outcome[ModelOutputs]:
    """A model's outputs for the rows of a span; rows of a smaller, earlier sample are not shown to it again."""
    before = None if earlier is None else earlier.value
    rows = piece.rows if frame is None else len(frame)

    def check(scored: ModelOutputs) -> None:
        if not isinstance(scored, ModelOutputs) or (model.names and scored.names != tuple(model.names)):
            raise DataError("it does not hold the outputs of this model")
        mask = sample_mask(layout, row_ranges(piece, rows), matching_rows(piece, layout, frame))
        if scored.names:
            check_count(scored.values.shape[1], rows if mask is None else int(np.count_nonzero(mask)), "rows")

    return _taken(store, name, layout, lambda: _score(piece, frame, before, layout, model, budget), check)


def cache_rows(piece: Slice, layout: Layout) -> Outcome[CachedRows]:
    """What a slice has of the rows in the layout's sample."""
    return _taken(None, "", layout, lambda: cache_slice(piece, layout))


def count_categories(piece: Slice, frame: Any, layout: Layout, limit: int) -> Outcome[tuple[CategoryCounts, ...]]:
    return _taken(None, "", layout, lambda: count_slice_categories(piece, frame, layout, limit))


def _taken(
    store: StateStore | None,
    name: str,
    layout: Layout,
    make: Callable[[], Value],
    check: Callable[[Value], None] = lambda value: None,
) -> Outcome[Value]:
    """A value from the store, or made; a read that fails in a way that may pass is tried again."""

    def once() -> Outcome[Value]:
        before = layout.open_files.bytes_read
        value = make()
        return Outcome(value, Cost(bytes_read=layout.open_files.bytes_read - before))

    return with_retries(once) if store is None else store.take(name, lambda: with_retries(once), check)


def _score(
    piece: Slice, frame: Any, earlier: ModelOutputs | None, layout: Layout, model: Model, budget: int
) -> ModelOutputs:
    fresh = layout if earlier is None else replace(layout, sample=replace(layout.sample, above=earlier.fraction))
    matching = matching_rows(piece, layout, frame)
    names: tuple[str, ...] = model.names or ()
    parts = []
    for data in read_rows(piece, fresh, model.input_type, budget, frame, matching):
        if not len(data):
            continue
        found, values = model.score(data)
        same_names(names, found)
        names = found
        parts.append(values)
    values = np.concatenate(parts, axis=1) if parts else np.empty((len(names), 0))
    scored = ModelOutputs(names, values, layout.sample.fraction)
    if earlier is None:
        return scored
    same_names(earlier.names, scored.names)
    ranges = row_ranges(piece, piece.rows if frame is None else len(frame))
    return earlier.merged(scored, sample_mask(fresh, ranges, matching), sample_mask(layout, ranges, matching))
