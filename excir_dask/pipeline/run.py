"""One run in order: from a plan to what is measured of it, to scores, to an explanation."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from excir_dask.errors import NoRowsError
from excir_dask.graph.checkpoint import Checkpoint
from excir_dask.graph.lake_state import Settled
from excir_dask.graph.measure import Measurement, Request, measure
from excir_dask.graph.run import Runner
from excir_dask.kernels.settle import ColumnStats
from excir_dask.lake.footer_statistics import constant_columns, out_of_range_columns
from excir_dask.lake.prune import nothing_matches
from excir_dask.lake.snapshot import check_unchanged
from excir_dask.pipeline.groups import all_groups
from excir_dask.pipeline.inputs import Inputs
from excir_dask.pipeline.metadata import facts, output_table, provenance
from excir_dask.pipeline.options import ExplainOptions
from excir_dask.pipeline.scoring import score_table, warn_of_range
from excir_dask.pipeline.segments import most_segments, score_segments
from excir_dask.results.explanation import Explanation
from excir_dask.results.tables import group_table

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunResult:
    """An explanation, and what it was made from: a larger sample can reuse that."""

    explanation: Explanation
    measured: Measurement


def run(
    inputs: Inputs,
    options: ExplainOptions,
    runner: Runner,
    earlier: Measurement | None = None,
    checkpoint: Checkpoint | None = None,
    cache_fraction: float | None = None,
) -> RunResult:
    """Explain the rows of a plan.

    Parameters
    ----------
    inputs : Inputs
    options : ExplainOptions
    runner : Runner
    earlier : Measurement, optional
        Of a smaller sample by the same runner: what is known of its rows is reused.
    checkpoint : Checkpoint, optional
        Where states of finished slices are saved, and taken from.
    cache_fraction : float, optional
        Share of the rows that is read once and cached, for this run and for larger samples.
    """
    began, reference = time.perf_counter(), inputs.reference
    selection, sample = inputs.plan.selection, inputs.sample
    if inputs.outputs.model is not None and not runner.in_process:
        inputs.outputs.model.check_sendable()
    if not inputs.plan.spans:
        assert inputs.layout.where is not None, "only a filter leaves row groups out"
        raise NoRowsError(nothing_matches(inputs.layout.where, inputs.rows, inputs.sample.fraction))
    group_rows = None if inputs.groups.correlated is None else options.group_rows
    measured = measure(
        inputs.plan,
        inputs.layout,
        Request(
            options.centering,
            options.max_categories,
            group_rows or 0,
            most_segments=_most_segments(inputs),
            joint=options.dependence,
        ),
        runner,
        frames=inputs.frames,
        model=inputs.outputs.model,
        checkpoint=checkpoint,
        earlier=earlier,
        cache_fraction=cache_fraction,
        reference=None if reference is None else reference.state,
        known_segments=None if reference is None or reference.by is None else reference.by.states,
    )
    if inputs.snapshot is not None:
        check_unchanged(inputs.snapshot)
    features, outputs, sums, names = measured.features, measured.outputs, measured.sums, measured.features.names
    output_names = inputs.outputs.columns.names or outputs.names
    whole_groups = sample.whole_row_groups and sample.fraction < 1.0
    settled = Settled(features.stats, outputs.stats, sums)
    table = score_table(measured.lake, settled, output_names, whole_groups, options.rank_by)
    warn_of_range(table)
    constant = _constant(inputs, names, features.stats) if sample.fraction < 1.0 else []
    out_of_range = [] if inputs.snapshot is None else out_of_range_columns(inputs.snapshot, sample, inputs.layout.fixed)
    groups = all_groups(inputs.groups, selection, measured, table)
    of_outputs, by = output_table(output_names, inputs.outputs, outputs.stats), None
    if measured.closest_segments is not None:
        by = score_segments(measured.closest_segments, of_outputs, groups, whole_groups, options.rank_by)
        by = replace(by, source=measured.segments)
    explanation = Explanation(
        features=table,
        groups=group_table(table, groups, options.rank_by),
        outputs=of_outputs,
        facts=facts(inputs, measured, constant, out_of_range, output_names, options),
        provenance=provenance(inputs, measured, began),
        source=measured.lake,
        by=by,
    )
    return RunResult(explanation, measured)


def _most_segments(inputs: Inputs) -> int:
    selection = inputs.plan.selection
    outputs = len(selection.outputs) or selection.model_outputs
    return most_segments(len(selection.features), outputs, inputs.plan.budget)


def _constant(inputs: Inputs, names: Sequence[str], features: ColumnStats) -> list[str]:
    """Features that do not vary in the sample because they do not vary at all."""
    in_sample = [name for name, same in zip(names, features.constant | (features.n == 0), strict=True) if same]
    return constant_columns(inputs.lake, inputs.snapshot, in_sample)
