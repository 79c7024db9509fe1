"""The scans over the slices of a plan: a pilot first, then the pass, and a closer look at what they left open.

:mod:`excir_dask.graph.measure` puts them in order; :mod:`excir_dask.graph.sources` says where the rows come from.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from excir_dask.graph.category_scan import CATEGORIES, merge_category_columns, samples
from excir_dask.graph.checkpoint import Checkpoint
from excir_dask.graph.pass_scan import PassColumns, PassRequest, PassSpan, References, passes
from excir_dask.graph.pilot_scan import PILOT, PilotResult, PilotSpan, refer
from excir_dask.graph.progress import Work
from excir_dask.graph.run import Runner
from excir_dask.graph.segment_scan import PILOT_VALUES, SegmentNames
from excir_dask.graph.sources import Sources, shared, slice_indices, state_name
from excir_dask.graph.states import Cost, Outcome, Reduction, combine, combined, total_cost
from excir_dask.graph.tasks import count_categories, scan_slice
from excir_dask.graph.tree import Graph, Key, merge_tree
from excir_dask.kernels.categories import MOST_VALUES, Categories, CategoryCounts
from excir_dask.kernels.reference import Reference, concatenate_references
from excir_dask.kernels.rowsample import RowSample
from excir_dask.kernels.segment_references import concatenate_segment_references
from excir_dask.lake.pilot import Pilot
from excir_dask.lake.plan import Plan

log = logging.getLogger(__name__)

Columns = TypeVar("Columns")
Span = TypeVar("Span")


@dataclass(frozen=True)
class PilotFound:
    """What a pilot says about where the quantiles are."""

    features: Reference
    segments: Reference | None
    """of the features in each segment; None where there are no segments"""
    span: PilotSpan


@dataclass(frozen=True)
class _Scan:
    """The tasks of one scan."""

    label: str
    name: str
    """of the tasks that scan slices"""
    token: str
    """part of all its keys; unique per scan, as workers may still hold results of earlier ones"""
    graph: Graph
    roots: list[Key]
    spans: Sequence[int] | None
    """of rows that it reads; None: all"""


class Scans:
    """Scans of a plan by a runner.

    Parameters
    ----------
    sources : Sources
        Of the plan's slices.
    runner : Runner
    checkpoint : Checkpoint, optional
        Where the states of finished slices are saved, and taken from.
    """

    def __init__(self, sources: Sources, runner: Runner, checkpoint: Checkpoint | None = None):
        self.sources = sources
        self.plan = sources.plan
        self.layout = sources.layout
        self.token = sources.token
        self.runner = runner
        self.checkpoint = checkpoint
        self.cost = Cost()
        """of all scans so far"""
        self._made = 0
        """scans so far"""
        self._counted: set[int] = set()
        """spans whose cached rows and model outputs are part of it"""

    def pilot(self, centering: str, pilot: Pilot, segments: SegmentNames | None = None) -> PilotFound:
        """What a part of the rows says about where the quantiles are, of all rows and of each segment."""
        scans = self if pilot.plan is None else self._of(pilot.plan)
        spans = None if pilot.plan is not None or pilot.complete else pilot.spans
        found = scans._refer(centering, pilot.complete, None, spans, segments)
        if scans is not self:
            self.cost += scans.cost
        return found

    def all_summaries(self, centering: str, wanted: NDArray[np.bool_]) -> tuple[Reference, PilotSpan]:
        """The same from all rows, for some of the features and for the outputs."""
        found = self._refer(centering, True, wanted, None)
        return found.features, found.span

    def _refer(
        self,
        centering: str,
        complete: bool,
        wanted: NDArray[np.bool_] | None,
        spans: Sequence[int] | None,
        segments: SegmentNames | None = None,
    ) -> PilotFound:
        widest = max(spans_[0][-1].stop - spans_[0][0].start for spans_ in self.plan.blocks)
        limit = PILOT_VALUES // max(widest, 1) // (self.plan.spans if spans is None else max(len(spans), 1))
        scan = self._scan(PILOT, wanted, segments, limit, spans=spans)
        count = 0 if segments is None else segments.count
        keys: list[Key] = []
        for block, root in enumerate(scan.roots):
            keys.append((f"excir-reference-{scan.token}", block))
            scan.graph[keys[-1]] = (
                combine, partial(refer, centering=centering, complete=complete, segments=count), [root],
            )  # fmt: skip
        found: list[PilotResult] = self._run(replace(scan, roots=keys))
        (span,) = [each.span for each in found if each.span is not None]
        by = [each.segments for each in found if each.segments is not None]
        return PilotFound(
            concatenate_references([each.columns for each in found]),
            concatenate_segment_references(by, count) if by else None,
            span,
        )

    def counted_categories(self) -> tuple[CategoryCounts, ...]:
        """How often each category, and then each segment, was met in the rows that count."""
        if not self.layout.categoricals and not self.layout.by:
            return ()
        columns: tuple[CategoryCounts, ...] = self._merged(CATEGORIES)[1].columns
        return columns

    def all_rows(
        self,
        references: References,
        categories: Sequence[Categories],
        request: PassRequest,
        wanted: NDArray[np.bool_] | None = None,
    ) -> tuple[PassColumns, PassSpan | None]:
        """The pass; ``wanted`` says which features it looks at, all by default and then the outputs too."""
        return self._merged(passes(request), references, wanted, tuple(categories), request)

    def picked_rows(self, limit: int, threshold: int) -> RowSample:
        """Rows with the smallest draws."""
        return self._merged(samples(limit), limit, threshold)[0]

    def _of(self, plan: Plan) -> Scans:
        """Scans of other slices of the same files."""
        return Scans(
            Sources(plan, self.layout, f"{self.token}-pilot", checkpoint=self.checkpoint), self.runner, self.checkpoint
        )

    def categories(self, columns: Mapping[str, int]) -> dict[str, dict[str, int] | None]:
        """Rows of every category of some columns, from a scan of nothing else; None where there are too many.

        ``columns`` says how many categories of each a model knows: twice as many can be counted.
        """
        layout = self.layout.only_categories(list(columns))
        limit = max(MOST_VALUES, 2 * max(columns.values(), default=0))
        if not layout.categoricals:
            return {}
        graph: Graph = {}
        common = shared(graph, self.token, "categories", layout, limit)
        leaves = []
        for number, slices in enumerate(self.plan.blocks[0]):
            leaves.append((f"excir-categories-{self.token}", 0, number, 0))
            graph[leaves[-1]] = (count_categories, slices[0], self.sources.frame(graph, number), *common)
        merge = combined(partial(merge_category_columns, limit=limit))
        root = merge_tree(graph, leaves, merge, f"excir-categories-merge-{self.token}", 0)
        (found,) = self.runner.run(graph, [root], Work(dict.fromkeys(leaves, 1), self.plan.rows), "categories")
        layout.open_files.close()
        self.cost += found.cost
        return {
            column: None if counts.too_many else dict(zip(counts.values, counts.rows.tolist(), strict=True))
            for column, counts in zip(layout.categoricals, found.value, strict=True)
        }

    def _merged(self, reduction: Reduction[Columns, Span], *given: object) -> tuple[Columns, Any]:
        """The states of all slices as one."""
        merged = reduction.concatenate(self._run(self._scan(reduction, *given)))
        return merged.columns, merged.span

    def _scan(self, reduction: Reduction[Any, Any], *given: object, spans: Sequence[int] | None = None) -> _Scan:
        """Tasks that scan slices and merge the states of each column block.

        ``spans`` are the spans of rows to scan, all by default. What was done for cached rows and a model's outputs
        counts in the first scan of their span.
        """
        self._made += 1
        token = f"{self.token}-{self._made}"
        graph: Graph = {}
        name = f"excir-{reduction.verb}"
        large = References, PassRequest
        sent = [self.runner.send(each, each.nbytes) if isinstance(each, large) else each for each in given]
        common = shared(graph, token, reduction.verb, self.checkpoint, self.layout, *sent)
        state = state_name(self.checkpoint, self.layout, reduction.verb, *given)
        rows, scores = self.sources.add(graph)
        roots = []
        for block, all_spans in enumerate(self.plan.blocks):
            leaves: list[Key] = []
            for number in range(self.plan.spans) if spans is None else spans:
                keys = []
                for i, piece in enumerate(all_spans[number]):
                    keys.append((f"{name}-{token}", block, number, i))
                    of_slice = (f"{state}-{block}-{number}-{i}", piece, rows[(block, number, i)], scores[number])
                    graph[keys[-1]] = (scan_slice, reduction, *of_slice, number not in self._counted, *common)
                if len(keys) > 1:
                    leaves.append((f"{name}-concatenate-{token}", block, number))
                    graph[leaves[-1]] = (combine, reduction.concatenate, keys)
                else:
                    leaves.append(keys[0])
            roots.append(merge_tree(graph, leaves, combined(reduction.merge), f"{name}-merge-{token}", block))
        return _Scan(reduction.label, f"{name}-{token}", token, graph, roots, spans)

    def _run(self, scan: _Scan) -> list[Any]:
        """Values of the roots; what they cost is added up."""
        spans = set(range(self.plan.spans) if scan.spans is None else scan.spans)
        tasks = {
            (scan.name, *index): max(piece.rows * (piece.stop - piece.start), 1)
            for index, piece in slice_indices(self.plan)
            if index[1] in spans
        }
        size = 8 * sum(tasks.values())
        slices, retained = len(tasks), self.sources.retained(scan.spans)
        fresh = spans - self._counted
        tasks |= self.sources.retained(sorted(fresh))
        began = time.perf_counter()
        try:
            work = Work(tasks, self.plan.rows, size if self.plan.rows else 0)
            found: list[Outcome[Any]] = self.runner.run(scan.graph, scan.roots, work, scan.label, list(retained))
        finally:
            self.layout.open_files.close()
            log.debug("%s: %d slices in %.1f s", scan.label, slices, time.perf_counter() - began)
        self._counted |= fresh
        cost = total_cost(found)
        if cost.rejected and self.checkpoint is not None:
            log.warning(
                "%d states in %s could not be used and were computed again, for instance %s",
                cost.rejected, self.checkpoint.folder, cost.reason,
            )  # fmt: skip
        self.cost += cost
        return [each.value for each in found]
