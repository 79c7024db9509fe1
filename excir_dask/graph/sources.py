"""What the slices of a plan are made from: pieces of a frame, outputs of a model, rows that are held.

Their tasks are the same in every scan, and the runner keeps what they give: no row is shown to a model twice, and rows
that are held are read once. A larger sample takes over what a smaller one had.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from excir_dask.graph.checkpoint import Checkpoint, digest
from excir_dask.graph.slices import not_read, on_slice, score_span
from excir_dask.graph.tree import Graph, Key
from excir_dask.lake.blocks import Layout
from excir_dask.lake.plan import Plan, Slice
from excir_dask.lake.read import cache_slice

if TYPE_CHECKING:
    from excir_dask.models.scoring import Model

Place = tuple[int, int, int]
"""of a slice: column block, span of rows, number side by side"""

SCORING = 10
"""times that reading a value takes, for a model to look at it"""


class Sources:
    """The rows and outputs of every slice.

    Parameters
    ----------
    plan : Plan
    layout : Layout
    token : str
        What tells the keys of these tasks from those of any other run.
    frames : sequence, optional
        For each span of rows, the piece of a DataFrame it stands for (a delayed partition, or the piece itself).
    model : Model, optional
        What makes the outputs, where they are not columns.
    checkpoint : Checkpoint, optional
        Where outputs of a model are saved.
    hold : float, optional
        Share of the rows that is read once and held; at least that of the layout's sample.
    earlier : Sources, optional
        Of a smaller sample, by the same runner.
    """

    def __init__(
        self,
        plan: Plan,
        layout: Layout,
        token: str,
        frames: Sequence[Any] | None = None,
        model: Model | None = None,
        checkpoint: Checkpoint | None = None,
        hold: float | None = None,
        earlier: Sources | None = None,
    ):
        self.plan = plan
        self.layout = layout
        self.token = token
        self.frames = frames
        self.model = model
        self.checkpoint = checkpoint
        self.hold = hold
        self.earlier = earlier

    def add(self, graph: Graph) -> tuple[dict[Place, Key], list[Key]]:
        """Add the tasks; the keys of what each slice reads (None for its files), and of each span's outputs."""
        frames = [self.frame(graph, number) for number in range(self.plan.spans)]
        held = self._held(graph)
        read = {place: held.get(place, frames[place[1]]) for place, _ in places(self.plan)}
        return read, self._scores(graph, frames)

    def kept(self) -> dict[Key, int]:
        """Keys that the runner keeps, with the work behind each: of this sample, and of smaller ones inside it."""
        return self._kept_scores() | self._kept_rows()

    def _kept_scores(self) -> dict[Key, int]:
        if self.model is None:
            return {}
        before = {} if self.earlier is None else self.earlier._kept_scores()
        columns = SCORING * len(self.layout.model_columns)
        mine = {
            self._key("score", number): max(columns * slices[0].rows, 1)
            for number, slices in enumerate(self.plan.blocks[0])
            if not self._has_span(number)
        }
        return dict.fromkeys(before, 0) | mine

    def _kept_rows(self) -> dict[Key, int]:
        if self.hold is None:
            return {}
        before = {} if self.earlier is None else self.earlier._kept_rows()
        mine = {
            self._key("hold", *place): max(piece.rows * (piece.stop - piece.start), 1)
            for place, piece in places(self.plan)
            if not self._holds(place)
        }
        return dict.fromkeys(before, 0) | mine

    def _key(self, verb: str, *place: int) -> Key:
        return (f"excir-{verb}-{self.token}", *place)

    def _has_span(self, number: int) -> bool:
        """Whether all rows of a span were part of the smaller sample."""
        return self.earlier is not None and self.layout.sample.whole_row_groups and number < self.earlier.plan.spans

    def _holds(self, place: Place) -> bool:
        """Whether the smaller sample holds all rows of a slice that this one asks for."""
        if self.earlier is None or self.earlier.hold is None:
            return False
        return self._has_span(place[1]) or (not self.layout.sample.whole_row_groups and self.earlier.hold == self.hold)

    def _scores(self, graph: Graph, frames: Sequence[Any]) -> list[Key]:
        """Tasks that show each span of rows to the model."""
        if self.model is None:
            return [None] * self.plan.spans
        common = shared(graph, self.token, "score", self.checkpoint, self.layout, self.model, self.plan.budget)
        state = state_name(self.checkpoint, self.layout, "score")
        before = [] if self.earlier is None else self.earlier._scores(graph, frames)
        for number, slices in enumerate(self.plan.blocks[0]):
            earlier = before[number] if number < len(before) else None
            graph[self._key("score", number)] = (
                (not_read, earlier)
                if self._has_span(number)
                else (on_slice, score_span, f"{state}-{number}", slices[0], frames[number], earlier, *common)
            )
        return [self._key("score", number) for number in range(self.plan.spans)]

    def _held(self, graph: Graph) -> dict[Place, Key]:
        """Tasks that read the rows of each slice that are held."""
        if self.hold is None:
            return {}
        before = {} if self.earlier is None else self.earlier._held(graph)
        wanted = replace(self.layout, sample=replace(self.layout.sample, fraction=self.hold))
        common = shared(graph, self.token, "hold", None, wanted)
        for place, piece in places(self.plan):
            graph[self._key("hold", *place)] = (
                (not_read, before[place])
                if self._holds(place)
                else (on_slice, cache_slice, "", piece, None, None, *common)
            )
        return {place: self._key("hold", *place) for place, _ in places(self.plan)}

    def frame(self, graph: Graph, number: int) -> Any:
        """The key of a span's piece of a DataFrame, whose tasks are added to the graph; None for files."""
        if self.frames is None:
            return None
        frame = self.frames[number]
        if hasattr(frame, "__dask_graph__"):
            if frame.key not in graph:  # partitions share one graph: it is added once, not once a partition
                graph.update(frame.__dask_graph__())
            return frame.key
        graph[self._key("frame", number)] = frame
        return self._key("frame", number)


def places(plan: Plan) -> Iterator[tuple[Place, Slice]]:
    """Every slice of a plan, and where it stands."""
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
    """Begin of the names of a scan's states: what it was given is part of them."""
    if checkpoint is None:
        return verb
    sample = layout.sample
    return f"{verb}-{digest(sample.fraction, sample.seed, sample.by, *given)}"
