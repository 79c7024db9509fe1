"""From a pilot to exact centres: the pass over all rows, and another look at the columns that it left open.

A pilot's brackets can miss a quantile (files that drift, a sorted lake), and a cell can be too wide. Such columns, and
only those, are read again: seen from a reference of all their rows where a bracket was missed, else from one that cuts
the cell in which the quantile lies.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from excir_dask.errors import DataError, NoRowsError
from excir_dask.graph.pass_scan import PassRequest, PassSpan, References
from excir_dask.graph.pilot_scan import reference_of
from excir_dask.graph.scans import Scans
from excir_dask.kernels.brackets import CELLS, make_reference
from excir_dask.kernels.categories import (
    MOST_VALUES,
    Categories,
    CategoryCounts,
    choose_categories,
    indicator_summaries,
)
from excir_dask.kernels.centers import CENTERINGS
from excir_dask.kernels.recenter import Sums, concatenate_sums, recentre, replaced_sums
from excir_dask.kernels.reference import Reference
from excir_dask.kernels.rowsample import RowSample, draw_threshold
from excir_dask.kernels.settle import ColumnStats, concatenate_stats, replaced, settle, sharpened
from excir_dask.kernels.state import ColumnState, State
from excir_dask.lake.blocks import Layout, RowCounts
from excir_dask.lake.pilot import Pilot
from excir_dask.lake.select import Selection

log = logging.getLogger(__name__)

Mask = NDArray[np.bool_]

ROUNDS = 4
"""further looks at the same columns at most"""

OUTPUT_CELLS = 8 * CELLS
"""cells of a bracket of an output: there are few outputs, and all scores rest on their centres"""

WIDE = 5e-4
"""certified error of a score above which its column is looked at again"""


@dataclass(frozen=True)
class Request:
    """What to measure."""

    centering: str
    max_categories: int = 0
    """categories of a column that become features; the others become one feature together"""
    sample_rows: int = 0
    """rows to return to the client as they are"""


@dataclass(frozen=True)
class Found:
    """What is known once all rows were looked at."""

    rows: RowCounts
    row_groups: int
    names: tuple[str, ...]
    features: ColumnStats
    output_names: tuple[str, ...]
    outputs: ColumnStats
    sums: Sums
    categories: tuple[Categories, ...]
    too_many: tuple[str, ...]
    sample: RowSample | None


def look(scans: Scans, request: Request, pilot: Pilot) -> Found:
    """Pilot, pass, and further looks as needed."""
    plan, layout, centering = scans.plan, scans.layout, request.centering
    counts = scans.counted_categories()
    categories, too_many = _chosen(layout.categoricals, counts, request.max_categories)
    features, outputs, output_names = _references(scans, centering, pilot)
    summaries = [one for c, chosen in zip(counts, categories, strict=True) for one in indicator_summaries(c, chosen)]
    indicators = make_reference(summaries, [np.empty(0)] * len(summaries), centering, True)
    references = References(features, outputs, indicators)
    wanted = PassRequest(
        totals=CENTERINGS[centering].needs_totals,
        joint=False,
        sample_rows=request.sample_rows,
        threshold=draw_threshold(request.sample_rows, plan.rows),
    )
    columns, span = scans.all_rows(references, categories, wanted)
    assert span is not None, "a pass over all columns tells of the rows"
    _check_rows(span.counts, layout)
    names = _feature_names(plan.selection, categories, too_many)
    closer = _Closer(scans, request, replace(wanted, sample_rows=0))
    stats, sums, span = closer.settle(columns.state, span, references, categories)
    sample = columns.sample
    if sample is not None and sample.draws.size < min(request.sample_rows, span.counts.used):
        share = span.counts.used / max(span.counts.sampled, 1)
        sample = scans.picked_rows(request.sample_rows, draw_threshold(int(request.sample_rows / share), plan.rows))
    return Found(
        span.counts, span.units, names, stats[0], output_names or span.output_names, stats[1], sums, categories,
        too_many, sample,
    )  # fmt: skip


def _references(scans: Scans, centering: str, pilot: Pilot) -> tuple[Reference, Reference, tuple[str, ...]]:
    """References of features and outputs; from all rows where the pilot's have no output at all."""
    features, span = scans.pilot(centering, pilot)
    complete = pilot.complete
    if not complete and span.counts.used == 0:
        features, span = scans.all_summaries(centering, np.ones(len(scans.layout.features), dtype=bool))
        complete = True
    _check_rows(span.counts, scans.layout) if complete else None
    return features, reference_of(span.outputs, centering, complete, OUTPUT_CELLS), span.output_names


class _Closer:
    """Further looks at the columns that a pass left open."""

    def __init__(self, scans: Scans, request: Request, wanted: PassRequest):
        self.scans = scans
        self.centering = request.centering
        self.request = wanted

    def settle(
        self, state: State, span: PassSpan, references: References, categories: Sequence[Categories]
    ) -> tuple[tuple[ColumnStats, ColumnStats], Sums, PassSpan]:
        """Statistics of features (indicators last) and outputs, and their sums."""
        for _ in range(ROUNDS):
            outputs = settle(span.outputs, references.outputs, self.centering)
            opened = self._open_outputs(span.outputs, outputs, state, references)
            if not opened:
                break
            log.info("the outputs are looked at once more")
            references = replace(references, outputs=self._again(span.outputs, references.outputs, outputs))
            columns, again = self.scans.all_rows(references, categories, self.request)
            assert again is not None, "a pass over all columns tells of the rows"
            state, span = columns.state, again
        outputs = settle(span.outputs, references.outputs, self.centering)
        stats, sums = self._features(state, span.outputs, references, outputs)
        others = settle(span.indicators.columns, references.indicators, self.centering)
        other_sums = recentre(
            span.indicators, span.outputs, (references.indicators, references.outputs), (others.center, outputs.center)
        )
        return (concatenate_stats([stats, others]), outputs), concatenate_sums([sums, other_sums]), span

    def _features(
        self, state: State, outputs: ColumnState, references: References, output_stats: ColumnStats
    ) -> tuple[ColumnStats, Sums]:
        reference = references.features
        stats, sums = self._at(state, outputs, (reference, references.outputs), output_stats)
        left = np.ones(reference.columns, dtype=bool)
        mine, now = stats, sums
        for _ in range(ROUNDS):
            opened = self._open(mine, now, output_stats)
            if not opened.any():
                break
            left[left] = opened
            log.info("%d columns are looked at once more", int(left.sum()))
            reference = self._reference(state.columns, reference, mine, opened, left)
            columns, _ = self.scans.all_rows(replace(references, features=reference), (), self.request, left)
            state = columns.state
            mine, now = self._at(state, outputs, (reference, references.outputs), output_stats)
            stats, sums = replaced(stats, left, mine), replaced_sums(sums, left, now)
        return stats, sums

    def _at(
        self, state: State, outputs: ColumnState, references: tuple[Reference, Reference], output_stats: ColumnStats
    ) -> tuple[ColumnStats, Sums]:
        stats = settle(state.columns, references[0], self.centering)
        return stats, recentre(state, outputs, references, (stats.center, output_stats.center))

    def _open(self, stats: ColumnStats, sums: Sums, outputs: ColumnStats) -> Mask:
        """Columns whose scores are not certain enough, as far as that is theirs to mend."""
        with np.errstate(divide="ignore", invalid="ignore"):
            error = (stats.error[None, :] * sums.abs_y + sums.uncertain) / sums.denominator
        error = np.where((sums.denominator > 0) & outputs.varies[:, None], error, 0.0)
        return stats.varies & (stats.missed | (error > WIDE).any(axis=0))

    def _open_outputs(self, state: ColumnState, stats: ColumnStats, features: State, references: References) -> bool:
        """Whether the output's centres are not certain enough."""
        shifts = stats.center - references.outputs.center
        edges = references.outputs.flip_edges
        last = np.where(np.isfinite(edges), edges, -np.inf).max(axis=1, initial=-np.inf)
        beyond = (shifts != 0) & ((stats.center < edges[:, 0]) | (stats.center >= last))
        wide = stats.error * state.weight > WIDE * state.absolute
        return bool((stats.varies & (stats.missed | beyond | wide)).any())

    def _again(self, state: ColumnState, reference: Reference, stats: ColumnStats) -> Reference:
        """A reference for another look at the outputs."""
        if stats.missed.any():
            nothing = np.zeros(len(self.scans.layout.features), dtype=bool)
            span = self.scans.all_summaries(self.centering, nothing)[1]
            return reference_of(span.outputs, self.centering, True, OUTPUT_CELLS)
        return sharpened(state, reference, stats, self.centering)

    def _reference(
        self, state: ColumnState, reference: Reference, stats: ColumnStats, opened: Mask, left: Mask
    ) -> Reference:
        """A reference for another look at the open columns; ``left`` are those among all features."""
        if (stats.missed & opened).any():
            return self.scans.all_summaries(self.centering, left)[0]
        return sharpened(_subset(state, opened), reference.subset(opened), _stats_of(stats, opened), self.centering)


def _subset(state: ColumnState, where: Mask) -> ColumnState:
    names = [field.name for field in fields(state) if field.name != "reference"]
    return replace(state, **{name: getattr(state, name)[where] for name in names})


def _stats_of(stats: ColumnStats, where: Mask) -> ColumnStats:
    return ColumnStats(**{field.name: getattr(stats, field.name)[where] for field in fields(stats)})


def _chosen(
    columns: Sequence[str], counts: Sequence[CategoryCounts], most: int
) -> tuple[tuple[Categories, ...], tuple[str, ...]]:
    """Categories that become features, and columns with too many of them."""
    chosen = tuple(choose_categories(column, each, most) for column, each in zip(columns, counts, strict=True))
    return chosen, tuple(column for column, each in zip(columns, counts, strict=True) if each.too_many)


def _check_rows(counts: RowCounts, layout: Layout) -> None:
    if counts.used == 0:
        source = ", ".join(layout.outputs) or "the model's outputs"
        raise NoRowsError(
            f"no row is left to explain: {counts.read} rows, {counts.sampled} in the sample, "
            f"{counts.without_output} of those without a finite value in {source}, "
            f"{counts.without_weight} without a positive weight"
        )


def _feature_names(selection: Selection, categories: Sequence[Categories], too_many: Sequence[str]) -> tuple[str, ...]:
    """Columns, elements of vectors and categories; refuses what only the values could tell."""
    for column in too_many:
        if column in selection.named:
            raise DataError(
                f"column '{column}' (features) has more than {MOST_VALUES:,} different values, too many to be "
                "categories; leave it out, or make fewer of them"
            )
    names = (*selection.features, *(name for column in categories for name in column.features))
    if not names:
        raise DataError(f"no feature is left: {', '.join(too_many)} have too many values to be categories")
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise DataError(f"two features are called '{twice}', a category and another column; rename that column")
    return names
