"""One run in order: from a plan to what is measured of it, to scores, to an explanation."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from excir_dask.errors import NoRowsError
from excir_dask.graph.checkpoint import Checkpoint
from excir_dask.graph.measure import Measurement, Request, measure
from excir_dask.graph.run import Runner
from excir_dask.kernels.dependence import depend
from excir_dask.kernels.scores import Scores, score
from excir_dask.kernels.settle import ColumnStats
from excir_dask.lake.footer_statistics import constant_columns, out_of_range_columns
from excir_dask.lake.prune import nothing_matches
from excir_dask.lake.snapshot import check_unchanged
from excir_dask.pipeline.groups import all_groups
from excir_dask.pipeline.inputs import Inputs
from excir_dask.pipeline.metadata import facts, output_table, provenance
from excir_dask.pipeline.options import ExplainOptions
from excir_dask.results.explanation import Explanation
from excir_dask.results.tables import feature_table, group_table

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
    began = time.perf_counter()
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
        Request(options.centering, options.max_categories, group_rows or 0, options.dependence),
        runner,
        frames=inputs.frames,
        model=inputs.outputs.model,
        checkpoint=checkpoint,
        earlier=earlier,
        cache_fraction=cache_fraction,
        reference=inputs.reference,
    )
    if inputs.snapshot is not None:
        check_unchanged(inputs.snapshot)
    features, outputs, sums, names = measured.features, measured.outputs, measured.sums, measured.features.names
    output_names = inputs.outputs.columns.names or outputs.names
    whole_groups = sample.whole_row_groups and sample.fraction < 1.0
    scores = score(sums, features.stats, outputs.stats, measured.row_groups, whole_groups)
    _warn_of_range(scores, names, output_names)
    dependence = depend(measured.lake.joint, scores.rows)
    table = feature_table(
        names, output_names, features.stats, outputs.stats, sums, scores, dependence, options.rank_by
    )  # fmt: skip
    constant = _constant(inputs, names, features.stats) if sample.fraction < 1.0 else []
    out_of_range = [] if inputs.snapshot is None else out_of_range_columns(inputs.snapshot, sample, inputs.layout.fixed)
    groups = all_groups(inputs.groups, selection, measured, table)
    explanation = Explanation(
        features=table,
        groups=group_table(table, groups, options.rank_by),
        outputs=output_table(output_names, inputs.outputs, outputs.stats),
        facts=facts(inputs, measured, constant, out_of_range, output_names, options),
        provenance=provenance(inputs, measured, began),
        source=measured.lake,
    )
    return RunResult(explanation, measured)


def _constant(inputs: Inputs, names: Sequence[str], features: ColumnStats) -> list[str]:
    """Features that do not vary in the sample because they do not vary at all."""
    in_sample = [name for name, same in zip(names, features.constant | (features.n == 0), strict=True) if same]
    return constant_columns(inputs.lake, inputs.snapshot, in_sample)


def _warn_of_range(scores: Scores, names: Sequence[str], output_names: Sequence[str]) -> None:
    pairs = np.argwhere(scores.out_of_range)
    if pairs.size:
        k, j = pairs[0]
        others = f" (and {len(pairs) - 1} more)" if len(pairs) > 1 else ""
        log.warning(
            "column '%s' times output '%s' is too large or too small to square%s, so its error is unknown and it is "
            "flagged 'out of range'; multiply one of them by a constant (scores do not change by that), "
            "or leave extreme values out",
            names[j], output_names[k], others,
        )  # fmt: skip
