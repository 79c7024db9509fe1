"""One run in order: from a plan to what is measured of it, to scores, to an explanation."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from excir_dask.errors import DataError
from excir_dask.graph.checkpoint import Checkpoint
from excir_dask.graph.lake_state import Settled
from excir_dask.graph.measure import Measurement, Request, measure
from excir_dask.graph.run import Runner
from excir_dask.kernels.recenter import Sums
from excir_dask.kernels.settle import ColumnStats
from excir_dask.lake.footer_statistics import constant_columns, out_of_range_columns
from excir_dask.lake.snapshot import check_unchanged
from excir_dask.pipeline.groups import all_groups
from excir_dask.pipeline.inputs import Inputs
from excir_dask.pipeline.metadata import facts, output_table, provenance
from excir_dask.pipeline.options import ExplainOptions
from excir_dask.pipeline.segments import most_segments, score_segments, score_table
from excir_dask.results.explanation import Explanation
from excir_dask.results.tables import group_table


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
    group_rows = None if inputs.groups.correlated is None else options.group_rows
    measured = measure(
        inputs.plan,
        inputs.layout,
        Request(options.centering, options.max_categories, group_rows or 0, _most_segments(inputs)),
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
    _check_range(sums, names, output_names)
    whole_groups = sample.whole_row_groups and sample.fraction < 1.0
    settled = Settled(features.stats, outputs.stats, sums)
    table = score_table(names, output_names, settled, measured.row_groups, whole_groups, options.rank_by)
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
        facts=facts(
            inputs, measured, constant, out_of_range, output_names,
            fraction=sample.fraction, sampling=sample.by, seed=sample.seed, weights=selection.weight,
            centering=options.centering, rank_by=options.rank_by,
            categoricals=options.categoricals, max_categories=options.max_categories,
            group_correlated=inputs.groups.correlated, group_rows=group_rows,
            by=selection.by,
        ),
        provenance=provenance(inputs, measured, began),
        source=measured.lake,
        by=by,
    )  # fmt: skip
    return RunResult(explanation, measured)


def _most_segments(inputs: Inputs) -> int:
    selection = inputs.plan.selection
    outputs = len(selection.outputs) or selection.model_outputs
    return most_segments(len(selection.features), outputs, inputs.plan.budget)


def _constant(inputs: Inputs, names: Sequence[str], features: ColumnStats) -> list[str]:
    """Features that do not vary in the sample because they do not vary at all."""
    in_sample = [name for name, same in zip(names, features.constant | (features.n == 0), strict=True) if same]
    return constant_columns(inputs.lake, inputs.snapshot, in_sample)


def _check_range(sums: Sums, names: Sequence[str], output_names: Sequence[str]) -> None:
    large = ~np.isfinite(sums.squares + sums.denominator)
    small = (sums.denominator > 0) & (sums.squares == 0)
    if (large | small).any():
        k, j = np.argwhere(large | small)[0]
        size, cure = ("large", "divide") if large[k, j] else ("small", "multiply")
        raise DataError(
            f"column '{names[j]}' times output '{output_names[k]}' is too {size} to square; "
            f"{cure} one of them by a constant (scores do not change by that)"
        )
