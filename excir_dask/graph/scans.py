"""The scans over the slices of a plan: statistics of the columns first, then the sums at some centres.

:mod:`excir_dask.graph.measure` puts them in order; :mod:`excir_dask.graph.sources` says where the rows come from.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from excir_dask.graph.checkpoint import Checkpoint
from excir_dask.graph.progress import Work
from excir_dask.graph.run import Runner
from excir_dask.graph.slices import (
    Asked,
    LakeStats,
    State,
    both,
    categories_of_slice,
    concatenate_summaries,
    describe_state,
    map_columns,
    merge_summaries,
    on_slice,
    pick_slice,
    refine_slice,
    sum_slice,
    summarise_slice,
    trim_slice,
)
from excir_dask.graph.sources import Sources, places, shared, state_name
from excir_dask.graph.tree import Graph, Key, merge_tree
from excir_dask.kernels.categories import MOST_VALUES, merge_categories
from excir_dask.kernels.centers import CENTERINGS, Centers, concatenate
from excir_dask.kernels.refine import concatenate_vicinities, doubtful, merge_vicinities, refined
from excir_dask.kernels.rowsample import RowSample, concatenate_samples, enough, merge_samples
from excir_dask.kernels.sums import Sums, concatenate_sums, merge_sums
from excir_dask.kernels.trim import concatenate_trimmed, merge_trimmed, with_trimmed
from excir_dask.lake.blocks import Layout
from excir_dask.lake.plan import Plan

if TYPE_CHECKING:
    from excir_dask.models.scoring import Model

log = logging.getLogger(__name__)


class Scans:
    """Two scans of a plan by a runner.

    Parameters
    ----------
    plan : Plan
    layout : Layout
    runner : Runner
    frames : sequence, optional
        For each span of rows, the piece of a DataFrame it stands for (a delayed partition, or the piece itself).
    model : Model, optional
        What makes the outputs, where they are not columns.
    earlier : Sources, optional
        Of a smaller sample of the same lake, by the same runner: rows that a model has seen are not shown to it again,
        and rows that are held are not read again.
    checkpoint : Checkpoint, optional
        Where the states of finished slices are kept.
    hold : float, optional
        Share of the rows that is read once and held; without it, every scan reads its slices again.
    """

    def __init__(
        self,
        plan: Plan,
        layout: Layout,
        runner: Runner,
        frames: Sequence[Any] | None = None,
        model: Model | None = None,
        earlier: Sources | None = None,
        checkpoint: Checkpoint | None = None,
        hold: float | None = None,
    ):
        self.plan = plan
        self.layout = layout
        self.runner = runner
        self.checkpoint = checkpoint
        # keys are shared by everybody on a cluster: no two runs may meet
        self.token = uuid.uuid4().hex
        self.sources = Sources(plan, layout, self.token, frames, model, checkpoint, hold, earlier)

    def statistics(self, centering: str, categories: int = 0, sample_rows: int = 0) -> LakeStats:
        """Scan 1, and one more look at the rows where a trimmed centre asks for it.

        Parameters
        ----------
        centering : str
        categories : int
            Features that a column of categories becomes, beside one for all others.
        sample_rows : int
            Rows to bring home as they are.
        """
        asked = Asked(centering, categories, sample_rows, enough(sample_rows, self.plan.rows))
        merge = partial(merge_summaries, sample_rows=sample_rows)
        graph, roots = self._graph("summarise", summarise_slice, merge, concatenate_summaries, asked)
        described = []
        for block, root in enumerate(roots):
            described.append((f"excir-quantiles-{self.token}", block))
            graph[described[-1]] = (describe_state, root, list(self.layout.categoricals), asked)
        parts: list[LakeStats] = self._run(graph, described, "summarise", "scan 1: quantiles")
        samples = [part.sample for part in parts if part.sample is not None]
        stats = replace(
            parts[0],
            features=concatenate([part.features for part in parts]),
            sample=concatenate_samples(samples) if samples else None,
        )
        stats = self._refined(self._sampled(stats, sample_rows), centering)
        if CENTERINGS[centering].needs_trimmed and np.isnan([*stats.features.trimmed, *stats.outputs.trimmed]).any():
            return self._trimmed(stats)
        return stats

    def sums(self, features: Centers, outputs: Centers, stats: LakeStats) -> Sums:
        """Scan 2: co-movement sums at the given centres, of the features and then of the indicators of categories."""
        merge, beside = partial(both, merge_sums), partial(both, concatenate_sums)
        graph, roots = self._graph("sum", sum_slice, merge, beside, features, outputs, stats.categories)
        found, others = beside(self._run(graph, roots, "sum", "scan 2: co-movement"))
        return concatenate_sums([found, others])

    def categories(self, columns: Mapping[str, int]) -> dict[str, dict[str, int] | None]:
        """Rows of every category of some columns, from a scan of nothing else; None where there are too many.

        ``columns`` says how many categories of each a model knows: twice as many can be counted.
        """
        layout = self.layout.only_categories(list(columns))
        limit = max(MOST_VALUES, 2 * max(columns.values(), default=0))
        if not layout.categoricals:
            return {}
        merge = partial(map_columns, partial(merge_categories, limit=limit))
        graph: Graph = {}
        common = shared(graph, self.token, "categories", layout, limit)
        leaves = []
        for number, slices in enumerate(self.plan.blocks[0]):
            leaves.append((f"excir-categories-{self.token}", 0, number, 0))
            frame = self.sources.frame(graph, number)
            graph[leaves[-1]] = (on_slice, categories_of_slice, "", slices[0], frame, None, None, *common)
        root = merge_tree(graph, leaves, merge, f"excir-categories-merge-{self.token}", 0)
        (found,) = self.runner.run(graph, [root], Work(dict.fromkeys(leaves, 1), self.plan.rows), "categories")
        layout.open_files.close()
        return {
            column: None if counts.too_many else dict(zip(counts.values, counts.rows.tolist(), strict=True))
            for column, counts in zip(layout.categoricals, found, strict=True)
        }

    def _sampled(self, stats: LakeStats, wanted: int) -> LakeStats:
        """One more look where so many rows do not count that too few of them came home."""
        if stats.sample is None or stats.sample.draws.size >= min(wanted, stats.counts.used):
            return stats
        share = stats.counts.used / max(stats.counts.sampled, 1)
        threshold = enough(int(wanted / share), self.plan.rows)
        merge = partial(merge_samples, limit=wanted)
        graph, roots = self._graph("pick", pick_slice, merge, concatenate_samples, wanted, threshold)
        parts: list[RowSample] = self._run(graph, roots, "pick", "rows for groups")
        return replace(stats, sample=concatenate_samples(parts))

    def _refined(self, stats: LakeStats, centering: str) -> LakeStats:
        """One more look at the columns whose quantiles the digests leave too uncertain; most lakes have none."""
        features, outputs = doubtful(stats.features, centering), doubtful(stats.outputs, centering)
        if not (features.any() or outputs.any()):
            return stats
        merge, beside = partial(both, merge_vicinities), partial(both, concatenate_vicinities)
        looked_at = (stats.features.thresholds, features, stats.outputs.thresholds, outputs)
        graph, roots = self._graph("refine", refine_slice, merge, beside, *looked_at)
        found = beside(self._run(graph, roots, "refine", "a closer look"))
        return replace(
            stats,
            features=refined(stats.features, centering, features, found[0]),
            outputs=refined(stats.outputs, centering, outputs, found[1]),
        )

    def _trimmed(self, stats: LakeStats) -> LakeStats:
        merge, beside = partial(both, merge_trimmed), partial(both, concatenate_trimmed)
        graph, roots = self._graph("trim", trim_slice, merge, beside, stats.features, stats.outputs)
        features, outputs = beside(self._run(graph, roots, "trim", "trimmed centres"))
        return replace(
            stats, features=with_trimmed(stats.features, features), outputs=with_trimmed(stats.outputs, outputs)
        )

    def _graph(
        self,
        verb: str,
        scan: Callable[..., State],
        merge: Callable[[list[State]], State],
        beside: Callable[[list[State]], State],
        *given: object,
    ) -> tuple[Graph, list[Key]]:
        """Tasks that scan every slice and merge the states of each column block; the keys of the merged states."""
        graph: Graph = {}
        names = [f"excir-{verb}-{self.token}", f"excir-{verb}-merge-{self.token}", f"excir-{verb}-beside-{self.token}"]
        common = shared(graph, self.token, verb, self.checkpoint, self.layout, *given)
        state = state_name(self.checkpoint, self.layout, verb, *given)
        rows, scores = self.sources.add(graph)
        roots = []
        for block, spans in enumerate(self.plan.blocks):
            leaves: list[Key] = []
            for number, slices in enumerate(spans):
                keys = []
                for i, piece in enumerate(slices):
                    keys.append((names[0], block, number, i))
                    name = f"{state}-{block}-{number}-{i}"
                    source = rows[(block, number, i)]
                    graph[keys[-1]] = (on_slice, scan, name, piece, source, scores[number], *common)
                if len(keys) > 1:
                    graph[(names[2], block, number)] = (beside, keys)
                    leaves.append((names[2], block, number))
                else:
                    leaves.append(keys[0])
            roots.append(merge_tree(graph, leaves, merge, names[1], block))
        return graph, roots

    def _run(self, graph: Graph, keys: Sequence[Key], verb: str, label: str) -> list[Any]:
        tasks = {
            (f"excir-{verb}-{self.token}", *place): max(piece.rows * (piece.stop - piece.start), 1)
            for place, piece in places(self.plan)
        }
        size = 8 * sum(tasks.values())
        slices, keep = len(tasks), self.sources.kept()
        if verb == "summarise":
            tasks |= keep
        began = time.perf_counter()
        try:
            work = Work(tasks, self.plan.rows, size if self.plan.rows else 0)
            return self.runner.run(graph, keys, work, label, list(keep))
        finally:
            self.layout.open_files.close()
            log.debug("%s: %d slices in %.1f s", label, slices, time.perf_counter() - began)
