"""The scans over the slices of a plan: statistics of the columns first, then the sums at some centres.

:mod:`excir_dask.graph.measure` puts them in order; :mod:`excir_dask.graph.sources` says where the rows come from.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from excir_dask.graph.checkpoint import Checkpoint
from excir_dask.graph.progress import Work
from excir_dask.graph.run import Runner
from excir_dask.graph.sources import Sources, shared, slice_indices, state_name
from excir_dask.graph.states import Cost, Outcome, Reduction, combine, combined, total_cost
from excir_dask.graph.summary_scan import (
    LakeStats,
    SummaryRequest,
    describe_state,
    merge_category_columns,
    samples,
    summaries,
)
from excir_dask.graph.sums_scan import SUMS, TRIMMED, VICINITIES
from excir_dask.graph.tasks import count_categories, scan_slice
from excir_dask.graph.tree import Graph, Key, merge_tree
from excir_dask.kernels.categories import MOST_VALUES
from excir_dask.kernels.centers import CENTERINGS, Centers, concatenate
from excir_dask.kernels.refine import doubtful, doubtful_outputs, refined
from excir_dask.kernels.rowsample import concatenate_samples, draw_threshold
from excir_dask.kernels.sums import RowSums, Sums, concatenate_sums
from excir_dask.kernels.trim import with_trimmed

log = logging.getLogger(__name__)

Columns = TypeVar("Columns")
Span = TypeVar("Span")


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

    def statistics(self, centering: str, max_categories: int = 0, sample_rows: int = 0) -> LakeStats:
        """Statistics of all columns; some of them take more than one look at the rows.

        Parameters
        ----------
        centering : str
        max_categories : int
            Categories of a column that become features; the others become one feature together.
        sample_rows : int
            Rows to return to the client as they are.
        """
        request = SummaryRequest(centering, max_categories, sample_rows, draw_threshold(sample_rows, self.plan.rows))
        graph, roots = self._graph(summaries(request), request, first=True)
        describe = partial(describe_state, categoricals=self.layout.categoricals, request=request)
        described = []
        for block, root in enumerate(roots):
            described.append((f"excir-quantiles-{self.token}", block))
            graph[described[-1]] = (combine, describe, [root])
        found = self._run(graph, described, "summarise", "scan 1: quantiles", first=True)
        (rows,) = [rows for _, _, rows in found if rows is not None]
        picked = [sample for _, sample, _ in found if sample is not None]
        stats = LakeStats(
            rows, concatenate([features for features, _, _ in found]), concatenate_samples(picked) if picked else None
        )
        stats = self._refined(self._sampled(stats, sample_rows), centering)
        trimmed = [*stats.features.trimmed, *stats.rows.outputs.trimmed]
        return self._trimmed(stats) if CENTERINGS[centering].needs_trimmed and np.isnan(trimmed).any() else stats

    def sums(self, features: Centers, outputs: Centers, stats: LakeStats) -> tuple[Sums, RowSums]:
        """Co-movement sums at the given centres, of the features and then of the indicators; and those of the rows."""
        found, span = self._scan(SUMS, features, outputs, stats.rows.categories)
        return concatenate_sums([found, span.indicators]), span.rows

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

    def _sampled(self, stats: LakeStats, wanted: int) -> LakeStats:
        """One more look where so many rows do not count that too few of them were picked."""
        counts = stats.rows.counts
        if stats.sample is None or stats.sample.draws.size >= min(wanted, counts.used):
            return stats
        share = counts.used / max(counts.sampled, 1)
        threshold = draw_threshold(int(wanted / share), self.plan.rows)
        return replace(stats, sample=self._scan(samples(wanted), wanted, threshold)[0])

    def _refined(self, stats: LakeStats, centering: str) -> LakeStats:
        """One more look at the columns whose quantiles the digests leave too uncertain; most lakes have none."""
        features, outputs = doubtful(stats.features, centering), doubtful_outputs(stats.rows.outputs, centering)
        if not (features.any() or outputs.any()):
            return stats
        around = (stats.features.thresholds, features, stats.rows.outputs.thresholds, outputs)
        found, of_outputs = self._scan(VICINITIES, *around)
        return LakeStats(
            replace(stats.rows, outputs=refined(stats.rows.outputs, centering, outputs, of_outputs)),
            refined(stats.features, centering, features, found),
            stats.sample,
        )

    def _trimmed(self, stats: LakeStats) -> LakeStats:
        found, of_outputs = self._scan(TRIMMED, stats.features, stats.rows.outputs)
        rows = replace(stats.rows, outputs=with_trimmed(stats.rows.outputs, of_outputs))
        return LakeStats(rows, with_trimmed(stats.features, found), stats.sample)

    def _scan(self, reduction: Reduction[Columns, Span], *given: object) -> tuple[Columns, Span]:
        """The states of all slices as one."""
        graph, roots = self._graph(reduction, *given)
        merged = reduction.concatenate(self._run(graph, roots, reduction.verb, reduction.label))
        return merged.columns, merged.span  # type: ignore[return-value]  # one column block leads

    def _graph(self, reduction: Reduction[Any, Any], *given: object, first: bool = False) -> tuple[Graph, list[Key]]:
        """Tasks that scan every slice and merge the states of each column block; the keys of the merged states."""
        graph: Graph = {}
        name = f"excir-{reduction.verb}"
        common = shared(graph, self.token, reduction.verb, first, self.checkpoint, self.layout, *given)
        state = state_name(self.checkpoint, self.layout, reduction.verb, *given)
        rows, scores = self.sources.add(graph)
        roots = []
        for block, spans in enumerate(self.plan.blocks):
            leaves: list[Key] = []
            for number, slices in enumerate(spans):
                keys = []
                for i, piece in enumerate(slices):
                    keys.append((f"{name}-{self.token}", block, number, i))
                    of_slice = (f"{state}-{block}-{number}-{i}", piece, rows[(block, number, i)], scores[number])
                    graph[keys[-1]] = (scan_slice, reduction, *of_slice, *common)
                if len(keys) > 1:
                    leaves.append((f"{name}-concatenate-{self.token}", block, number))
                    graph[leaves[-1]] = (combine, reduction.concatenate, keys)
                else:
                    leaves.append(keys[0])
            roots.append(merge_tree(graph, leaves, combined(reduction.merge), f"{name}-merge-{self.token}", block))
        return graph, roots

    def _run(self, graph: Graph, keys: Sequence[Key], verb: str, label: str, first: bool = False) -> list[Any]:
        """Values of some keys; what they cost is added up."""
        tasks = {
            (f"excir-{verb}-{self.token}", *index): max(piece.rows * (piece.stop - piece.start), 1)
            for index, piece in slice_indices(self.plan)
        }
        size = 8 * sum(tasks.values())
        slices, retained = len(tasks), self.sources.retained()
        if first:
            tasks |= retained
        began = time.perf_counter()
        try:
            work = Work(tasks, self.plan.rows, size if self.plan.rows else 0)
            found: list[Outcome[Any]] = self.runner.run(graph, keys, work, label, list(retained))
        finally:
            self.layout.open_files.close()
            log.debug("%s: %d slices in %.1f s", label, slices, time.perf_counter() - began)
        cost = total_cost(found)
        if cost.rejected and self.checkpoint is not None:
            log.warning(
                "%d states in %s could not be used and were computed again, for instance %s",
                cost.rejected, self.checkpoint.folder, cost.reason,
            )  # fmt: skip
        self.cost += cost
        return [each.value for each in found]
