"""The scans that count categories and pick rows: of the rows that count, whatever their columns hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from excir_dask.errors import ModelError
from excir_dask.graph.states import Reduction, SliceState, check_count, check_parts
from excir_dask.kernels.categories import CategoryCounts, count_categories, merge_categories
from excir_dask.kernels.rowsample import RowPicker, RowSample, concatenate_samples, merge_samples
from excir_dask.lake.arrays import CategoryCodes
from excir_dask.lake.blocks import Layout, ModelOutputs, SegmentCodes
from excir_dask.lake.plan import Slice
from excir_dask.lake.read import read_slice


@dataclass(frozen=True)
class SpanCategories:
    """How often each category was met in some rows."""

    VERSION: ClassVar[int] = 1

    columns: tuple[CategoryCounts, ...]
    """of each column of categories, and then of the segments, if there are any"""


def count_span(
    piece: Slice, rows: Any, scored: ModelOutputs | None, layout: Layout
) -> SliceState[None, SpanCategories]:
    """Categories of a span; its columns of numbers are not read."""
    if not piece.lead:
        return SliceState(None, None)
    nothing = np.zeros(len(layout.features), dtype=bool)
    parts = []
    for block in read_slice(piece, layout, rows, nothing, scored):
        for _ in block.columns:
            pass
        counted: list[CategoryCodes | SegmentCodes] = [*block.categories]
        if block.segments is not None:
            counted.append(block.segments)
        parts.append(tuple(count_categories(c.codes, c.values, block.weights) for c in counted))
    return SliceState(None, _merge_spans([SpanCategories(part) for part in parts]))


def _merge_spans(parts: Sequence[SpanCategories]) -> SpanCategories:
    return SpanCategories(
        tuple(merge_categories(column) for column in zip(*(part.columns for part in parts), strict=True))
    )


def _check_span(
    state: SliceState[None, SpanCategories], piece: Slice, scored: ModelOutputs | None, layout: Layout
) -> None:
    check_parts(state, type(None), SpanCategories, piece)
    if state.span is not None:
        check_count(len(state.span.columns), len(layout.categoricals) + bool(layout.by), "columns of categories")


def _nothing(parts: Sequence[None]) -> None:
    """There is nothing to merge."""


CATEGORIES = Reduction("categories", "categories", count_span, _check_span, _nothing, _nothing, _merge_spans)


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


def _check_sample(state: SliceState[RowSample, None], piece: Slice, *_: object) -> None:
    check_parts(state, RowSample, type(None), piece)
    check_count(state.columns.values.shape[0], piece.stop - piece.start, "sampled columns")


def count_slice_categories(piece: Slice, rows: Any, layout: Layout, limit: int) -> tuple[CategoryCounts, ...]:
    """Categories of all rows, whether they count or not: what a model must know."""
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
