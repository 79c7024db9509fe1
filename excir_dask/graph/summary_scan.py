"""The scan that summarises columns, counts rows and categories, and picks sampled rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from excir_dask.errors import DataError, ModelError
from excir_dask.graph.states import Reduction, SliceState, check_count, check_parts, merge_states
from excir_dask.kernels.categories import (
    Categories,
    CategoryCounts,
    choose_categories,
    count_categories,
    indicator_summaries,
    merge_categories,
)
from excir_dask.kernels.centers import CENTERINGS, ColumnStats, describe
from excir_dask.kernels.rowsample import RowPicker, RowSample, concatenate_samples, merge_samples
from excir_dask.kernels.summaries import ColumnSummary, merge_column, summarise
from excir_dask.lake.blocks import Block, Layout, ModelOutputs, RowCounts
from excir_dask.lake.plan import Slice
from excir_dask.lake.read import read_slice


@dataclass(frozen=True)
class SummaryRequest:
    """What to find out."""

    VERSION: ClassVar[int] = 1

    centering: str
    max_categories: int
    """categories of a column that become features"""
    sample_rows: int
    """rows to return to the client; 0 for none"""
    threshold: int
    """draws below which rows may be among them"""


@dataclass(frozen=True)
class ColumnSummaries:
    """What the columns of a slice look like."""

    VERSION: ClassVar[int] = 1

    features: tuple[ColumnSummary, ...]
    sample: RowSample | None
    """of these columns; None where no rows were requested"""


@dataclass(frozen=True)
class SpanSummary:
    """What the rows of a span look like, whatever columns are explained."""

    VERSION: ClassVar[int] = 1

    counts: RowCounts
    output_names: tuple[str, ...]
    """empty where a callable saw no row and did not say"""
    outputs: tuple[ColumnSummary, ...]
    categories: tuple[CategoryCounts, ...]
    """of each column of categories"""


@dataclass(frozen=True)
class SpanStats:
    """What is known of all rows once the spans are merged."""

    counts: RowCounts
    output_names: tuple[str, ...]
    outputs: ColumnStats
    categories: tuple[Categories, ...]
    too_many: tuple[str, ...]
    """columns with too many categories"""
    indicators: ColumnStats
    """of the 0/1 features that stand for categories"""


@dataclass(frozen=True)
class LakeStats:
    """What this scan returns to the client."""

    rows: SpanStats
    features: ColumnStats
    sample: RowSample | None
    """of the features"""


Summary = SliceState[ColumnSummaries, SpanSummary]


def summaries(request: SummaryRequest) -> Reduction[ColumnSummaries, SpanSummary]:
    return Reduction(
        "summarise",
        "scan 1: quantiles",
        summarise_slice,
        _check_summary,
        partial(_merge_columns, limit=request.sample_rows),
        _concatenate_columns,
        _merge_spans,
    )


def summarise_slice(
    piece: Slice, rows: Any, scored: ModelOutputs | None, layout: Layout, request: SummaryRequest
) -> Summary:
    names = layout.outputs if scored is None else scored.names
    blocks = read_slice(piece, layout, rows, scored=scored)
    states = [_summarise_block(block, names if piece.lead else None, request) for block in blocks]
    return merge_states(states, partial(_merge_columns, limit=request.sample_rows), _merge_spans)


def _summarise_block(block: Block, output_names: tuple[str, ...] | None, request: SummaryRequest) -> Summary:
    """State of a block; without names of the outputs, another slice tells what its rows are."""
    with_total = CENTERINGS[request.centering].needs_totals
    columns, picker = block.columns, None
    if request.sample_rows:
        picker = RowPicker(block.draws(), request.sample_rows, request.threshold)
        columns = picker.watch(columns)
    features = tuple(summarise(x, block.weights, with_total) for x in columns)
    found = ColumnSummaries(features, None if picker is None else picker.result())
    if output_names is None:
        return SliceState(found, None)
    outputs = tuple(summarise(y, block.weights, with_total) for y in block.outputs)
    categories = tuple(count_categories(c.codes, c.values, block.weights) for c in block.categories)
    return SliceState(found, SpanSummary(block.counts, output_names, outputs, categories))


def describe_state(
    merged: Sequence[Summary], categoricals: Sequence[str], request: SummaryRequest
) -> tuple[ColumnStats, RowSample | None, SpanStats | None]:
    """Statistics of a column block, and of the rows where its slices lead; ``categoricals`` are column names."""
    (state,) = merged
    features = describe(state.columns.features, request.centering)
    span = state.span
    if span is None:
        return features, state.columns.sample, None
    chosen, indicators, too_many = [], [], []
    for column, counts in zip(categoricals, span.categories, strict=True):
        if counts.too_many:
            too_many.append(column)
        chosen.append(choose_categories(column, counts, request.max_categories))
        indicators += indicator_summaries(counts, chosen[-1])
    return (
        features,
        state.columns.sample,
        SpanStats(
            span.counts,
            span.output_names,
            describe(span.outputs, request.centering),
            tuple(chosen),
            tuple(too_many),
            describe(indicators, request.centering),
        ),
    )


def samples(limit: int) -> Reduction[RowSample, None]:
    """Rows with the smallest draws, and nothing else."""
    merge = partial(merge_samples, limit=limit)
    return Reduction("pick", "rows for groups", pick_slice, _check_sample, merge, concatenate_samples, _nothing)


def pick_slice(
    piece: Slice, rows: Any, scored: ModelOutputs | None, layout: Layout, limit: int, threshold: int
) -> SliceState[RowSample, None]:
    found = []
    for block in read_slice(piece, layout, rows, scored=scored):
        picker = RowPicker(block.draws(), limit, threshold)
        for _ in picker.watch(block.columns):
            pass
        found.append(picker.result())
    return SliceState(merge_samples(found, limit), None)


def count_slice_categories(piece: Slice, rows: Any, layout: Layout, limit: int) -> tuple[CategoryCounts, ...]:
    blocks = [
        tuple(count_categories(c.codes, c.values, None, limit) for c in block.categories)
        for block in read_slice(piece, layout, rows)
    ]
    return merge_category_columns(blocks, limit)


def merge_category_columns(parts: Sequence[tuple[CategoryCounts, ...]], limit: int) -> tuple[CategoryCounts, ...]:
    """Counts of each column over the rows of all parts."""
    return tuple(merge_categories(column, limit) for column in zip(*parts, strict=True))


def same_names(some: Sequence[str], others: Sequence[str]) -> None:
    """Refuse a model whose outputs change from rows to rows; one that saw no row names none."""
    if some and others and tuple(some) != tuple(others):
        raise ModelError(
            f"the model names its outputs {', '.join(some)} for some rows and {', '.join(others)} for others"
        )


def _merge_columns(parts: Sequence[ColumnSummaries], limit: int) -> ColumnSummaries:
    found = [part.sample for part in parts if part.sample is not None]
    return ColumnSummaries(
        tuple(merge_column(column) for column in zip(*(part.features for part in parts), strict=True)),
        merge_samples(found, limit) if found else None,
    )


def _concatenate_columns(parts: Sequence[ColumnSummaries]) -> ColumnSummaries:
    found = [part.sample for part in parts if part.sample is not None]
    return ColumnSummaries(
        tuple(column for part in parts for column in part.features), concatenate_samples(found) if found else None
    )


def _merge_spans(parts: Sequence[SpanSummary]) -> SpanSummary:
    named = [part for part in parts if part.output_names]
    for part in named:
        same_names(named[0].output_names, part.output_names)
    return SpanSummary(
        sum((part.counts for part in parts), RowCounts()),
        named[0].output_names if named else (),
        # a span without sampled rows does not know the outputs of a callable
        tuple(merge_column(column) for column in zip(*(part.outputs for part in named or parts), strict=True)),
        tuple(merge_categories(column) for column in zip(*(part.categories for part in parts), strict=True)),
    )


def _nothing(parts: Sequence[None]) -> None:
    """Of rows alone there is nothing to merge."""


def _check_summary(
    state: Summary, piece: Slice, scored: ModelOutputs | None, layout: Layout, request: SummaryRequest
) -> None:
    check_parts(state, ColumnSummaries, SpanSummary, piece)
    check_count(len(state.columns.features), piece.stop - piece.start, "columns")
    _check_values(state.columns.features)
    if (state.columns.sample is not None) != bool(request.sample_rows):
        raise DataError("it has sampled rows that nobody requested, or lacks those that somebody did")
    if state.columns.sample is not None:
        check_count(state.columns.sample.values.shape[0], piece.stop - piece.start, "sampled columns")
    if state.span is None:
        return
    names = layout.outputs if scored is None else scored.names
    if state.span.output_names != names:
        raise DataError(f"its outputs are {', '.join(state.span.output_names)}, not {', '.join(names)}")
    check_count(len(state.span.outputs), len(state.span.output_names), "outputs")
    _check_values(state.span.outputs)
    check_count(len(state.span.categories), len(layout.categoricals), "columns of categories")


def _check_values(columns: Sequence[ColumnSummary]) -> None:
    """What merging relies on: a digest that is fed anything else may crash."""
    for column in columns:
        numbers = np.concatenate([column.points, column.weights])
        if (column.n > 0) != (column.points.size > 0) or not np.isfinite(numbers).all():
            raise DataError("it holds a summary without values, or with values that are no numbers")
        if (np.diff(column.points) < 0).any() or (column.weights <= 0).any():
            raise DataError("it holds a summary whose values are out of order or weigh nothing")


def _check_sample(state: SliceState[RowSample, None], piece: Slice, *_: object) -> None:
    check_parts(state, RowSample, type(None), piece)
    check_count(state.columns.values.shape[0], piece.stop - piece.start, "sampled columns")
