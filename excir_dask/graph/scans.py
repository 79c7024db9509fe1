"""The two scans over the slices of a plan.

Everything outside this folder sees :class:`Scans`: ask for the statistics of the columns, then for the sums at some
centres. How many times the rows are read for that is decided here.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from excir_dask.graph.run import Runner
from excir_dask.graph.tree import Graph, Key, merge_tree
from excir_dask.kernels.centers import Centers, ColumnStats, concatenate, describe
from excir_dask.kernels.refine import Vicinities, concatenate_vicinities, doubtful, gather, merge_vicinities, refined
from excir_dask.kernels.summaries import ColumnSummary, merge_column, summarise
from excir_dask.kernels.sums import OutputSide, Sums, co_movement, concatenate_sums, count_below, merge_sums
from excir_dask.kernels.trim import TrimmedSums, concatenate_trimmed, merge_trimmed, trim, with_trimmed
from excir_dask.lake.plan import Plan, Slice
from excir_dask.lake.read import Layout, RowCounts, read_slice
from excir_dask.lake.retry import retrying

State = TypeVar("State")
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class SliceSummary:
    """State of scan 1: what the rows and columns of a slice looked like."""

    counts: RowCounts
    """zero unless the slice leads its span"""
    features: tuple[ColumnSummary, ...]
    outputs: tuple[ColumnSummary, ...]
    """empty unless the slice leads its span"""


@dataclass(frozen=True)
class LakeStats:
    """What scan 1 brings home."""

    counts: RowCounts
    features: ColumnStats
    outputs: ColumnStats


class Scans:
    """Two scans of a plan by a runner.

    Parameters
    ----------
    plan : Plan
    layout : Layout
    runner : Runner
    frames : sequence, optional
        For each span of rows, the piece of a DataFrame it stands for (a delayed partition, or the piece itself).
    """

    def __init__(self, plan: Plan, layout: Layout, runner: Runner, frames: Sequence[Any] | None = None):
        self.plan = plan
        self.layout = layout
        self.runner = runner
        self.frames = frames
        # keys are shared by everybody on a cluster: no two runs may meet
        self.token = uuid.uuid4().hex

    def statistics(self, centering: str) -> LakeStats:
        """Scan 1, and one more look at the rows where a trimmed centre asks for it."""
        graph, roots = self._graph(
            "summarise", _summarise_slice, merge_summaries, concatenate_summaries, centering == "mean"
        )
        described = []
        for block, root in enumerate(roots):
            described.append((f"excir-quantiles-{self.token}", block))
            graph[described[-1]] = (_describe, root, centering)
        parts: list[LakeStats] = self._run(graph, described, "summarise", "scan 1: quantiles")
        stats = LakeStats(parts[0].counts, concatenate([part.features for part in parts]), parts[0].outputs)
        stats = self._refined(stats, centering)
        if centering == "trimmed" and np.isnan([*stats.features.trimmed, *stats.outputs.trimmed]).any():
            return self._trimmed(stats)
        return stats

    def sums(self, features: Centers, outputs: Centers) -> Sums:
        """Scan 2: co-movement sums at the given centres."""
        graph, roots = self._graph("sum", _sum_slice, merge_sums, concatenate_sums, features, outputs)
        parts: list[Sums] = self._run(graph, roots, "sum", "scan 2: co-movement")
        return concatenate_sums(parts)

    def _refined(self, stats: LakeStats, centering: str) -> LakeStats:
        """One more look at the columns whose quantiles the digests leave too uncertain; most lakes have none."""
        features, outputs = doubtful(stats.features, centering), doubtful(stats.outputs, centering)
        if not (features.any() or outputs.any()):
            return stats
        merge, beside = partial(_both, merge_vicinities), partial(_both, concatenate_vicinities)
        looked_at = (stats.features.thresholds, features, stats.outputs.thresholds, outputs)
        graph, roots = self._graph("refine", _refine_slice, merge, beside, *looked_at)
        found = beside(self._run(graph, roots, "refine", "a closer look"))
        return replace(
            stats,
            features=refined(stats.features, centering, features, found[0]),
            outputs=refined(stats.outputs, centering, outputs, found[1]),
        )

    def _trimmed(self, stats: LakeStats) -> LakeStats:
        merge, beside = partial(_both, merge_trimmed), partial(_both, concatenate_trimmed)
        graph, roots = self._graph("trim", _trim_slice, merge, beside, stats.features, stats.outputs)
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
        *shared: object,
    ) -> tuple[Graph, list[Key]]:
        """Tasks that scan every slice and merge the states of each column block; the keys of the merged states."""
        graph: Graph = {}
        names = [f"excir-{verb}-{self.token}", f"excir-{verb}-merge-{self.token}", f"excir-{verb}-beside-{self.token}"]
        common = []
        for i, value in enumerate([self.layout, *shared]):
            common.append((f"excir-{verb}-shared-{self.token}", i))
            graph[common[-1]] = value
        roots = []
        for block, spans in enumerate(self.plan.blocks):
            leaves: list[Key] = []
            for number, slices in enumerate(spans):
                keys = []
                for i, piece in enumerate(slices):
                    keys.append((names[0], block, number, i))
                    graph[keys[-1]] = (_scan_slice, scan, piece, self._frame(graph, number), *common)
                if len(keys) > 1:
                    graph[(names[2], block, number)] = (beside, keys)
                    leaves.append((names[2], block, number))
                else:
                    leaves.append(keys[0])
            roots.append(merge_tree(graph, leaves, merge, names[1], block))
        return graph, roots

    def _frame(self, graph: Graph, number: int) -> Any:
        """The key of a span's piece of a DataFrame, whose tasks are added to the graph; None for files."""
        if self.frames is None:
            return None
        frame = self.frames[number]
        if hasattr(frame, "__dask_graph__"):
            if frame.key not in graph:  # partitions share one graph: it is added once, not once a partition
                graph.update(frame.__dask_graph__())
            return frame.key
        key = (f"excir-frame-{self.token}", number)
        graph[key] = frame
        return key

    def _run(self, graph: Graph, keys: Sequence[Key], verb: str, label: str) -> list[Any]:
        work = {
            (f"excir-{verb}-{self.token}", block, number, i): max(piece.rows * (piece.stop - piece.start), 1)
            for block, spans in enumerate(self.plan.blocks)
            for number, slices in enumerate(spans)
            for i, piece in enumerate(slices)
        }
        try:
            return self.runner.run(graph, keys, work, label)
        finally:
            self.layout.open_files.close()


def merge_summaries(parts: Sequence[SliceSummary]) -> SliceSummary:
    return SliceSummary(
        sum((part.counts for part in parts), RowCounts()),
        tuple(merge_column(column) for column in zip(*(part.features for part in parts), strict=True)),
        tuple(merge_column(column) for column in zip(*(part.outputs for part in parts), strict=True)),
    )


def concatenate_summaries(parts: Sequence[SliceSummary]) -> SliceSummary:
    return SliceSummary(
        sum((part.counts for part in parts), RowCounts()),
        tuple(column for part in parts for column in part.features),
        tuple(column for part in parts for column in part.outputs),
    )


def _both(combine: Callable[[list[Any]], Any], parts: Sequence[tuple[Any, Any]]) -> tuple[Any, Any]:
    """Combine the features' states, and those of the outputs, which are None where a slice does not lead its span."""
    outputs = [part[1] for part in parts if part[1] is not None]
    return combine([part[0] for part in parts]), combine(outputs) if outputs else None


def _scan_slice(scan: Callable[..., State], piece: Slice, frame: Any, layout: Layout, *shared: Any) -> State:
    """A slice's state; a read that fails in a way that may pass is tried again."""
    return retrying(lambda: scan(piece, frame, layout, *shared))


def _summarise_slice(piece: Slice, frame: Any, layout: Layout, with_total: bool) -> SliceSummary:
    states = []
    for block in read_slice(piece, layout, frame):
        features = tuple(summarise(x, block.weights, with_total) for x in block.columns)
        outputs = tuple(summarise(y, block.weights, with_total) for y in block.outputs) if piece.lead else ()
        states.append(SliceSummary(block.counts if piece.lead else RowCounts(), features, outputs))
    return merge_summaries(states)


def _sum_slice(piece: Slice, frame: Any, layout: Layout, features: Centers, outputs: Centers) -> Sums:
    mine = features.subset(slice(piece.start, piece.stop))
    states = []
    for block in read_slice(piece, layout, frame):
        side = OutputSide(block.outputs, outputs, block.weights)
        below = np.zeros(outputs.thresholds.shape)
        if piece.lead:
            for k, y in enumerate(block.outputs):
                below[k] = count_below(y, outputs.thresholds[k], side)
        states.append(co_movement(block.columns, side, mine, below))
    return merge_sums(states)


def _trim_slice(
    piece: Slice, frame: Any, layout: Layout, features: ColumnStats, outputs: ColumnStats
) -> tuple[TrimmedSums, TrimmedSums | None]:
    mine = features.subset(slice(piece.start, piece.stop))
    states = []
    for block in read_slice(piece, layout, frame):
        inner = trim(block.columns, mine.q25, mine.q75, block.weights)
        states.append((inner, trim(block.outputs, outputs.q25, outputs.q75, block.weights) if piece.lead else None))
    return _both(merge_trimmed, states)


def _refine_slice(
    piece: Slice,
    frame: Any,
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
    for block in read_slice(piece, layout, frame, features):
        inner = gather(block.columns, thresholds[mine], block.weights)
        around = gather(block.outputs[outputs], output_thresholds[outputs], block.weights) if piece.lead else None
        states.append((inner, around))
    return _both(merge_vicinities, states)


def _describe(state: SliceSummary, centering: str) -> LakeStats:
    return LakeStats(state.counts, describe(state.features, centering), describe(state.outputs, centering))
