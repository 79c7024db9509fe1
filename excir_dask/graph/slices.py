"""What the scans do with one slice, and how the states they leave behind are merged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from excir_dask.errors import ModelError
from excir_dask.kernels.categories import (
    Categories,
    CategoryCounts,
    choose_categories,
    count_categories,
    indicator_summaries,
    indicators,
    merge_categories,
)
from excir_dask.kernels.centers import CENTERINGS, Centers, ColumnStats, describe
from excir_dask.kernels.refine import Vicinities, gather, merge_vicinities
from excir_dask.kernels.rowsample import RowPicker, RowSample, concatenate_samples, merge_samples
from excir_dask.kernels.summaries import ColumnSummary, merge_column, summarise
from excir_dask.kernels.sums import OutputSide, Sums, co_movement, count_below, merge_sums, one_unit
from excir_dask.kernels.trim import TrimmedSums, merge_trimmed, trim
from excir_dask.lake.blocks import Block, Layout, ModelOutputs, RowCounts, sample_mask
from excir_dask.lake.cache import CachedRows
from excir_dask.lake.plan import Slice
from excir_dask.lake.read import read_slice, row_ranges
from excir_dask.lake.retry import with_retries
from excir_dask.lake.rows import read_rows

if TYPE_CHECKING:
    from excir_dask.models.scoring import Model

State = TypeVar("State")
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Asked:
    """What scan 1 is asked for beside quantiles."""

    centering: str
    categories: int
    """categories of a column that become features"""
    sample_rows: int
    """rows to bring home; 0 for none"""
    threshold: int
    """draws below which rows may be among them"""


@dataclass(frozen=True)
class SliceSummary:
    """State of scan 1: what the rows and columns of a slice looked like."""

    counts: RowCounts
    """zero unless the slice leads its span"""
    features: tuple[ColumnSummary, ...]
    outputs: tuple[ColumnSummary, ...]
    """empty unless the slice leads its span"""
    output_names: tuple[str, ...]
    """empty unless the slice leads its span"""
    categories: tuple[CategoryCounts, ...]
    """empty unless the slice leads its span"""
    sample: RowSample | None


@dataclass(frozen=True)
class LakeStats:
    """What scan 1 brings home."""

    counts: RowCounts
    features: ColumnStats
    outputs: ColumnStats
    output_names: tuple[str, ...]
    indicators: ColumnStats
    """of the features that stand for categories"""
    categories: tuple[Categories, ...]
    too_many: tuple[str, ...]
    """columns with too many categories"""
    sample: RowSample | None
    """of the features"""


class Keeper(Protocol):
    """Keeps states between runs."""

    def take(self, name: str, make: Callable[[], State]) -> tuple[State, bool]: ...


def on_slice(
    scan: Callable[..., State], name: str, piece: Slice, frame: Any, scored: Any, keeper: Keeper | None, *given: Any
) -> State:
    """A slice's state, or the one kept under its name; a read that fails in a way that may pass is tried again."""

    def make() -> State:
        return with_retries(lambda: scan(piece, frame, scored, *given))

    if keeper is None:
        return make()
    state, kept = keeper.take(name, make)
    return not_read(state) if kept else state


def not_read(state: Any) -> Any:
    """What was there already: nothing was read for it now."""
    if isinstance(state, SliceSummary):
        return replace(state, counts=replace(state.counts, bytes_read=0))
    if isinstance(state, ModelOutputs | CachedRows):
        return replace(state, bytes_read=0)
    if isinstance(state, tuple) and state and isinstance(state[0], Sums):
        return (replace(state[0], bytes_read=np.zeros(())), *state[1:])
    return state


def score_span(
    piece: Slice, frame: Any, earlier: ModelOutputs | None, layout: Layout, model: Model, budget: int
) -> ModelOutputs:
    """A model's outputs for the rows of a span; those that a smaller sample has already shown to it are taken over."""
    fresh = layout if earlier is None else replace(layout, sample=replace(layout.sample, above=earlier.fraction))
    before = layout.open_files.bytes_read
    names: tuple[str, ...] = model.names or ()
    parts = []
    for data in read_rows(piece, fresh, model.wants, budget, frame):
        if not len(data):
            continue
        found, values = model.score(data)
        if names and found != names:
            raise _other_names(names, found)
        names = found
        parts.append(values)
    values = np.concatenate(parts, axis=1) if parts else np.empty((len(names), 0))
    scored = ModelOutputs(names, values, layout.sample.fraction, layout.open_files.bytes_read - before)
    if earlier is None:
        return scored
    if earlier.names and scored.names and earlier.names != scored.names:
        raise _other_names(earlier.names, scored.names)
    places = row_ranges(piece, piece.rows if frame is None else len(frame))
    return earlier.merged(scored, sample_mask(fresh, places), sample_mask(layout, places))


def summarise_slice(
    piece: Slice, frame: Any, scored: ModelOutputs | None, layout: Layout, asked: Asked
) -> SliceSummary:
    states = []
    with_total = CENTERINGS[asked.centering].needs_totals
    before = layout.open_files.bytes_read
    for block in read_slice(piece, layout, frame, scored=scored):
        columns, picker = block.columns, None
        if asked.sample_rows:
            picker = RowPicker(block.draws(), asked.sample_rows, asked.threshold)
            columns = picker.watch(columns)
        features = tuple(summarise(x, block.weights, with_total) for x in columns)
        sample = None if picker is None else picker.result()
        if piece.lead:
            names = layout.outputs if scored is None else scored.names
            outputs = tuple(summarise(y, block.weights, with_total) for y in block.outputs)
            categories = tuple(count_categories(c.codes, c.values, block.weights) for c in block.categories)
            states.append(SliceSummary(block.counts, features, outputs, names, categories, sample))
        else:
            states.append(SliceSummary(RowCounts(), features, (), (), (), sample))
    merged = merge_summaries(states, asked.sample_rows)
    size = layout.open_files.bytes_read - before + (scored.bytes_read if scored is not None and piece.lead else 0)
    if isinstance(frame, CachedRows):
        size += frame.bytes_read
    return replace(merged, counts=merged.counts + RowCounts(bytes_read=size))


def merge_summaries(parts: Sequence[SliceSummary], sample_rows: int = 0) -> SliceSummary:
    named = [part for part in parts if part.output_names]
    for part in named:
        if part.output_names != named[0].output_names:
            raise _other_names(named[0].output_names, part.output_names)
    # a span without sampled rows does not know the outputs of a callable
    outputs = [part.outputs for part in (named or parts)]
    samples = [part.sample for part in parts if part.sample is not None]
    return SliceSummary(
        sum((part.counts for part in parts), RowCounts()),
        tuple(merge_column(column) for column in zip(*(part.features for part in parts), strict=True)),
        tuple(merge_column(column) for column in zip(*outputs, strict=True)),
        named[0].output_names if named else (),
        tuple(merge_categories(column) for column in zip(*(part.categories for part in parts), strict=True)),
        merge_samples(samples, sample_rows) if samples else None,
    )


def concatenate_summaries(parts: Sequence[SliceSummary]) -> SliceSummary:
    samples = [part.sample for part in parts if part.sample is not None]
    return SliceSummary(
        sum((part.counts for part in parts), RowCounts()),
        tuple(column for part in parts for column in part.features),
        tuple(column for part in parts for column in part.outputs),
        tuple(name for part in parts for name in part.output_names),
        tuple(column for part in parts for column in part.categories),
        concatenate_samples(samples) if samples else None,
    )


def pick_slice(
    piece: Slice, frame: Any, scored: ModelOutputs | None, layout: Layout, limit: int, threshold: int
) -> RowSample:
    samples = []
    for block in read_slice(piece, layout, frame, scored=scored):
        picker = RowPicker(block.draws(), limit, threshold)
        for _ in picker.watch(block.columns):
            pass
        samples.append(picker.result())
    return merge_samples(samples, limit)


def describe_state(state: SliceSummary, columns: Sequence[str], asked: Asked) -> LakeStats:
    """What is known once the states of a column block are merged; ``columns`` are those of categories."""
    chosen, summaries, too_many = [], [], []
    for column, counts in zip(columns, state.categories, strict=False):
        if counts.too_many:
            too_many.append(column)
        chosen.append(choose_categories(column, counts, asked.categories))
        summaries += indicator_summaries(counts, chosen[-1])
    return LakeStats(
        state.counts,
        describe(state.features, asked.centering),
        describe(state.outputs, asked.centering),
        state.output_names,
        describe(summaries, asked.centering),
        tuple(chosen),
        tuple(too_many),
        state.sample,
    )


def _blocks(
    piece: Slice, layout: Layout, frame: Any, scored: ModelOutputs | None, outputs: int, wanted: Mask | None = None
) -> Iterator[Block]:
    """Blocks of a slice once it is known how many outputs there are: a callable that saw no row of it did not say."""
    for block in read_slice(piece, layout, frame, wanted, scored):
        yield block if len(block.outputs) == outputs else replace(block, outputs=np.empty((outputs, 0)))


def sum_slice(
    piece: Slice,
    frame: Any,
    scored: ModelOutputs | None,
    layout: Layout,
    features: Centers,
    outputs: Centers,
    categories: Sequence[Categories],
) -> tuple[Sums, Sums | None]:
    """Sums of the slice's features and, where it leads its span, of the indicators, whose centres come last."""
    mine = features.subset(slice(piece.start, piece.stop))
    of_categories = features.subset(slice(len(layout.features), None))
    states: list[tuple[Sums, Sums | None]] = []
    before = layout.open_files.bytes_read
    for block in _blocks(piece, layout, frame, scored, outputs.center.size):
        side = OutputSide(block.outputs, outputs, block.weights, block.edges)
        below = np.zeros(outputs.thresholds.shape)
        if piece.lead:
            for k, y in enumerate(block.outputs):
                below[k] = count_below(y, outputs.thresholds[k], side)
        # how a frame is cut says nothing about its rows
        found = co_movement(block.columns, side, mine, below, counted=piece.lead and bool(piece.fragments))
        others = None
        if piece.lead:
            expanded = (
                indicators(coded.codes, coded.values, chosen)
                for coded, chosen in zip(block.categories, categories, strict=True)
            )
            others = co_movement(chain.from_iterable(expanded), side, of_categories, np.zeros_like(below), False)
        states.append((found, others))
    first, second = both(merge_sums, states)
    if piece.batch_rows is not None:
        first, second = one_unit(first), None if second is None else one_unit(second)
    return replace(first, bytes_read=np.array(float(layout.open_files.bytes_read - before))), second


def trim_slice(
    piece: Slice, frame: Any, scored: ModelOutputs | None, layout: Layout, features: ColumnStats, outputs: ColumnStats
) -> tuple[TrimmedSums, TrimmedSums | None]:
    mine = features.subset(slice(piece.start, piece.stop))
    states = []
    for block in _blocks(piece, layout, frame, scored, outputs.q25.size):
        inner = trim(block.columns, mine.q25, mine.q75, block.weights)
        states.append((inner, trim(block.outputs, outputs.q25, outputs.q75, block.weights) if piece.lead else None))
    return both(merge_trimmed, states)


def refine_slice(
    piece: Slice,
    frame: Any,
    scored: ModelOutputs | None,
    layout: Layout,
    thresholds: Floats,
    features: Mask,
    output_thresholds: Floats,
    outputs: Mask,
) -> tuple[Vicinities, Vicinities | None]:
    mine = np.flatnonzero(features[piece.start : piece.stop]) + piece.start
    if not mine.size and not (piece.lead and outputs.any()):
        return (), () if piece.lead else None
    states = []
    for block in _blocks(piece, layout, frame, scored, outputs.size, features):
        inner = gather(block.columns, thresholds[mine], block.weights)
        around = gather(block.outputs[outputs], output_thresholds[outputs], block.weights) if piece.lead else None
        states.append((inner, around))
    return both(merge_vicinities, states)


def categories_of_slice(
    piece: Slice, frame: Any, scored: None, layout: Layout, limit: int
) -> tuple[CategoryCounts, ...]:
    blocks = [
        tuple(count_categories(c.codes, c.values, None, limit) for c in block.categories)
        for block in read_slice(piece, layout, frame)
    ]
    return map_columns(partial(merge_categories, limit=limit), blocks)


def map_columns(merge: Callable[[list[Any]], State], parts: Sequence[Sequence[Any]]) -> tuple[State, ...]:
    """Merge the states of each column over all parts."""
    return tuple(merge(list(column)) for column in zip(*parts, strict=True))


def both(combine: Callable[[list[Any]], Any], parts: Sequence[tuple[Any, Any]]) -> tuple[Any, Any]:
    """Combine the features' states, and those that only slices which lead their span have (None for the others)."""
    second = [part[1] for part in parts if part[1] is not None]
    return combine([part[0] for part in parts]), combine(second) if second else None


def _other_names(some: Sequence[str], others: Sequence[str]) -> ModelError:
    return ModelError(f"the model names its outputs {', '.join(some)} for some rows and {', '.join(others)} for others")
