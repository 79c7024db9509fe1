"""Where the slices of a plan get their rows and outputs: files, pieces of a frame, cached rows, a model.

The tasks that make them are the same in every scan, and the runner keeps their results: a model sees no row twice, and
cached rows are read once. A larger sample reuses what a smaller one had.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from excir_dask.graph.checkpoint import Checkpoint, digest
from excir_dask.graph.states import reused
from excir_dask.graph.tasks import cache_rows, score_span
from excir_dask.graph.tree import Graph, Key
from excir_dask.lake.blocks import Layout
from excir_dask.lake.plan import Plan, Slice

if TYPE_CHECKING:
    from excir_dask.models.scoring import Model

SliceIndex = tuple[int, int, int]
"""of a slice: column block, span of rows, number side by side"""

SCORING = 10
"""times as long as reading a value, for a model to look at it"""


class Sources:
    """The rows and outputs of every slice.

    Parameters
    ----------
    plan : Plan
    layout : Layout
    token : str
        Part of the key of every task: no two runs on a cluster may share one.
    frames : sequence, optional
        For each span of rows, the piece of a DataFrame it stands for (a delayed partition, or the piece itself).
    model : Model, optional
        What makes the outputs, where they are not columns.
    checkpoint : Checkpoint, optional
        Where a model's outputs are saved.
    cache_fraction : float, optional
        Share of the rows that is read once and cached; at least that of the layout's sample.
    earlier : Sources, optional
        Of a smaller sample, by the same runner.
    """

    def __init__(
        self,
        plan: Plan,
        layout: Layout,
        token: str,
        *,
        frames: Sequence[Any] | None = None,
        model: Model | None = None,
        checkpoint: Checkpoint | None = None,
        cache_fraction: float | None = None,
        earlier: Sources | None = None,
    ):
        self.plan = plan
        self.layout = layout
        self.token = token
        self.frames = frames
        self.model = model
        self.checkpoint = checkpoint
        self.cache_fraction = cache_fraction
        self.earlier = earlier

    def add(self, graph: Graph) -> tuple[dict[SliceIndex, Key], list[Key]]:
        """Add the tasks; the keys of each slice's rows (None for its files), and of each span's outputs."""
        frames = [self.frame(graph, number) for number in range(self.plan.spans)]
        cached = self._add_cached_rows(graph)
        rows = {index: cached.get(index, frames[index[1]]) for index, _ in slice_indices(self.plan)}
        return rows, self._add_scores(graph, frames)

    def retained(self, spans: Sequence[int] | None = None) -> dict[Key, int]:
        """Keys whose results the runner keeps, with the work behind each: of this sample, and of smaller ones.

        ``spans`` are those whose rows are asked for, all by default.
        """
        found = self._retained_scores() | self._retained_rows()
        if spans is None:
            return found
        mine = {self._key("score", number) for number in spans}
        mine |= {self._key("cache", *index) for index, _ in slice_indices(self.plan) if index[1] in set(spans)}
        return {key: work for key, work in found.items() if key in mine}

    def _retained_scores(self) -> dict[Key, int]:
        if self.model is None:
            return {}
        before = {} if self.earlier is None else self.earlier._retained_scores()
        columns = SCORING * len(self.layout.model_columns)
        mine = {
            self._key("score", number): max(columns * slices[0].rows, 1)
            for number, slices in enumerate(self.plan.blocks[0])
            if not self._has_span(number)
        }
        return dict.fromkeys(before, 0) | mine

    def _retained_rows(self) -> dict[Key, int]:
        if self.cache_fraction is None:
            return {}
        before = {} if self.earlier is None else self.earlier._retained_rows()
        mine = {
            self._key("cache", *index): max(piece.rows * (piece.stop - piece.start), 1)
            for index, piece in slice_indices(self.plan)
            if not self._has_cached(index)
        }
        return dict.fromkeys(before, 0) | mine

    def _key(self, verb: str, *index: int) -> Key:
        return (f"excir-{verb}-{self.token}", *index)

    def _has_span(self, number: int) -> bool:
        """Whether all rows of a span were part of the smaller sample."""
        return self.earlier is not None and self.layout.sample.whole_row_groups and number < self.earlier.plan.spans

    def _has_cached(self, index: SliceIndex) -> bool:
        """Whether the smaller sample has cached all rows of a slice that this one needs."""
        if self.earlier is None or self.earlier.cache_fraction is None:
            return False
        same = self.earlier.cache_fraction == self.cache_fraction
        return self._has_span(index[1]) or (not self.layout.sample.whole_row_groups and same)

    def _add_scores(self, graph: Graph, frames: Sequence[Any]) -> list[Key]:
        """Tasks that show each span of rows to the model."""
        if self.model is None:
            return [None] * self.plan.spans
        common = shared(graph, self.token, "score", self.checkpoint, self.layout, self.model, self.plan.budget)
        state = state_name(self.checkpoint, self.layout, "score")
        before = [] if self.earlier is None else self.earlier._add_scores(graph, frames)
        for number, slices in enumerate(self.plan.blocks[0]):
            earlier = before[number] if number < len(before) else None
            graph[self._key("score", number)] = (
                (reused, earlier)
                if self._has_span(number)
                else (score_span, f"{state}-{number}", slices[0], frames[number], earlier, *common)
            )
        return [self._key("score", number) for number in range(self.plan.spans)]

    def _add_cached_rows(self, graph: Graph) -> dict[SliceIndex, Key]:
        """Tasks that read the rows of each slice that are cached."""
        if self.cache_fraction is None:
            return {}
        before = {} if self.earlier is None else self.earlier._add_cached_rows(graph)
        wanted = replace(self.layout, sample=replace(self.layout.sample, fraction=self.cache_fraction))
        (layout,) = shared(graph, self.token, "cache", wanted)
        for index, piece in slice_indices(self.plan):
            graph[self._key("cache", *index)] = (
                (reused, before[index]) if self._has_cached(index) else (cache_rows, piece, layout)
            )
        return {index: self._key("cache", *index) for index, _ in slice_indices(self.plan)}

    def frame(self, graph: Graph, number: int) -> Any:
        """The key of a span's piece of a DataFrame, whose tasks are added to the graph; None for files."""
        if self.frames is None:
            return None
        frame = self.frames[number]
        if hasattr(frame, "__dask_graph__"):
            if frame.key not in graph:  # partitions share one graph: it is added once, not once per partition
                graph.update(frame.__dask_graph__())
            return frame.key
        graph[self._key("frame", number)] = frame
        return self._key("frame", number)


def slice_indices(plan: Plan) -> Iterator[tuple[SliceIndex, Slice]]:
    """Every slice of a plan, with its index."""
    for block, spans in enumerate(plan.blocks):
        for number, slices in enumerate(spans):
            for i, piece in enumerate(slices):
                yield (block, number, i), piece


def shared(graph: Graph, token: str, verb: str, *values: object) -> list[Key]:
    """Keys of values that many tasks need: they travel once."""
    keys = [(f"excir-{verb}-shared-{token}", i) for i in range(len(values))]
    graph.update(zip(keys, values, strict=True))
    return keys


def state_name(checkpoint: Checkpoint | None, layout: Layout, verb: str, *given: object) -> str:
    """Begin of the names of a scan's states: what the scan was given is part of them."""
    if checkpoint is None:
        return verb
    sample = layout.sample
    return f"{verb}-{digest(sample.fraction, sample.seed, sample.by, *given)}"
