"""One call from a plan to everything that scores follow from.

:func:`measure` is the entry point of this folder. How often the rows are read for it, and in
what order, is decided behind it and is no part of its result.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from excir_dask.graph.checkpoint import Checkpoint
from excir_dask.graph.lake_state import LakeState
from excir_dask.graph.look import Request, look
from excir_dask.graph.run import Runner
from excir_dask.graph.scans import Scans
from excir_dask.graph.segment_states import SegmentStates
from excir_dask.graph.sources import Sources
from excir_dask.kernels.categories import Categories
from excir_dask.kernels.recenter import Sums
from excir_dask.kernels.rowsample import RowSample
from excir_dask.kernels.settle import ColumnStats
from excir_dask.lake.blocks import Layout, RowCounts
from excir_dask.lake.pilot import choose_pilot
from excir_dask.lake.plan import Plan
from excir_dask.models.checks import check_categories, known_categories

if TYPE_CHECKING:
    from excir_dask.models.scoring import Model

__all__ = ["MeasuredColumns", "Measurement", "Request", "measure"]


@dataclass(frozen=True)
class MeasuredColumns:
    """What is known of some columns, in order."""

    names: tuple[str, ...]
    stats: ColumnStats


@dataclass(frozen=True)
class Measurement:
    """Everything that scores follow from."""

    lake: LakeState
    """the state to keep: it merges with those of other rows, seen from the same reference"""
    features: MeasuredColumns
    """columns of numbers, then the 0/1 features of categories"""
    outputs: MeasuredColumns
    sums: Sums
    """at these centres"""
    sample: RowSample | None
    """rows of the columns of numbers; None where none were requested"""
    segments: SegmentStates | None
    """the states of the segments to keep; None where nobody asked"""
    closest_segments: SegmentStates | None
    """those that their scores follow from"""
    bytes_read: int
    """compressed bytes of the column chunks that were read"""
    resumed_states: int | None
    """states taken from the checkpoint; None without one"""
    sources: Sources
    """rows and model outputs that the runner still has, for a larger sample"""

    @property
    def rows(self) -> RowCounts:
        return self.lake.span.counts

    @property
    def row_groups(self) -> int:
        """Row groups with rows that count; 0 for a DataFrame."""
        return self.lake.span.units

    @property
    def categories(self) -> tuple[Categories, ...]:
        """Of each column of categories, those that are features."""
        return self.lake.categories

    @property
    def too_many(self) -> tuple[str, ...]:
        """Columns with too many categories."""
        return self.lake.too_many


def measure(
    plan: Plan,
    layout: Layout,
    request: Request,
    runner: Runner,
    *,
    frames: Sequence[Any] | None = None,
    model: Model | None = None,
    checkpoint: Checkpoint | None = None,
    earlier: Measurement | None = None,
    cache_fraction: float | None = None,
    reference: LakeState | None = None,
    known_segments: SegmentStates | None = None,
) -> Measurement:
    """Measure the rows of a plan.

    Parameters
    ----------
    plan : Plan
    layout : Layout
    request : Request
    runner : Runner
    frames : sequence, optional
        For each span of rows, the piece of a DataFrame it stands for (a delayed partition, or the piece itself).
    model : Model, optional
        What makes the outputs, where they are not columns.
    checkpoint : Checkpoint, optional
        Where states of finished slices are saved, and taken from.
    earlier : Measurement, optional
        Of a smaller sample of the same lake by the same runner: the model does not see its rows again, and cached rows
        are not read again.
    cache_fraction : float, optional
        Share of the rows that is read once and cached, at least that of the sample; None reads them again whenever they
        are needed.
    reference : LakeState, optional
        Of an earlier run: its rows and these are seen from the same provisional centres, so that both can be merged.
    known_segments : SegmentStates, optional
        Those of that run: this one has the same.
    """
    sources = Sources(
        plan,
        layout,
        uuid.uuid4().hex,
        frames=frames,
        model=model,
        checkpoint=checkpoint,
        cache_fraction=cache_fraction,
        earlier=None if earlier is None else earlier.sources,
    )
    scans = Scans(sources, runner, checkpoint)
    if model is not None and earlier is None:
        known = {column: len(values) for column, values in known_categories(model).items()}
        check_categories(model, scans.categories(known))
    whole_spans = model is not None or frames is not None or cache_fraction is not None
    found = look(scans, request, choose_pilot(plan, whole_spans), reference, known_segments)
    return Measurement(
        found.lake,
        MeasuredColumns(found.names, found.settled.features),
        MeasuredColumns(found.lake.span.output_names, found.settled.outputs),
        found.settled.sums,
        found.sample,
        found.segments,
        found.closest,
        scans.cost.bytes_read,
        None if checkpoint is None else scans.cost.resumed,
        sources,
    )
