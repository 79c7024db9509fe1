"""Adaptive sampling: the sample grows until its top features are those of all rows with the given confidence.

Each step explains a sample that contains the previous one and reuses what is known of its rows: the model's outputs
and, up to a limit, the rows themselves. With row groups, a step reads only the new ones, once. Single rows are spread
over the whole lake, so the first step caches as many as it may and later steps draw from the cache. If they need more
and there is no model whose work could be saved, all rows are taken, because all must be read anyway. The costs in the
explanation are those of all steps.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from excir_dask.errors import NoRowsError
from excir_dask.graph.checkpoint import Checkpoint
from excir_dask.graph.run import RETAINED_BYTES, Runner
from excir_dask.kernels.uncertainty import DRAWS
from excir_dask.lake.cache import cache_bytes
from excir_dask.lake.footer_statistics import out_of_range_columns
from excir_dask.lake.frames import is_pandas
from excir_dask.lake.sample import SAMPLINGS, Sample
from excir_dask.pipeline.inputs import Inputs, resampled
from excir_dask.pipeline.options import ExplainOptions
from excir_dask.pipeline.run import RunResult, run
from excir_dask.results.explanation import Explanation
from excir_dask.results.metadata import AutoSampling, AutoStep

FIRST = 0.05
"""share of the rows that the first step takes"""

FIRST_ROWS = 2000
"""rows that the first step takes at least"""

FIRST_GROUPS = 12
"""row groups that the first step takes at least: fewer do not show how much they differ"""

LARGEST = 0.7
"""share above which all rows are taken instead: little would be saved"""

WORTHWHILE = 0.25
"""share above which all rows are taken if all are read anyway"""

EMPTY = 4.0
"""factor for the share after a sample without a usable row"""

HALVINGS = 4
"""shares to try for the next step, each between the previous one and the largest"""

ROUGH_DRAWS = 1000
"""simulated rankings that choose the next step"""

LEAST_GROUPS = 40
"""row groups that a lake must have for whole ones to be drawn, where there is no model"""

CACHED_BYTES = RETAINED_BYTES
"""decoded bytes to cache at most: beyond memory, reading Parquet again is twice as fast as reading a spilled copy"""


def run_adaptive(
    inputs: Inputs, options: ExplainOptions, runner: Runner, checkpoint: Checkpoint | None = None
) -> Explanation:
    """Explain a sample that is just large enough for the target; all rows if nothing less will do."""
    began, bytes_read, resumed = time.perf_counter(), 0, 0
    by = options.sampling or _sampling(inputs)
    share = _first(inputs, by)
    steps: list[AutoStep] = []
    found: RunResult | None = None
    asked: Inputs | None = None
    while True:
        share = 1.0 if share > LARGEST else round(share, 6)
        if share == 1.0 and SAMPLINGS[by].whole_row_groups and inputs.outputs.model is None:
            asked = found = None  # all rows, as a run without a sample has them, to the byte
        asked = resampled(inputs, Sample(share, inputs.sample.seed, by), asked)
        cached = _cache_fraction(asked)
        try:
            found = run(
                asked,
                options,
                runner,
                found.measured if found else None,
                checkpoint,
                cached if checkpoint is None else None,  # what a checkpoint has need not be read at all
            )
        except NoRowsError:
            if share == 1.0:
                raise
            found = None
            steps.append(AutoStep(fraction=share, rows=0, jaccard=0.0, probability=0.0))
            share *= EMPTY
            continue
        bytes_read += found.measured.bytes_read
        resumed += found.measured.resumed_states or 0
        k, jaccard, probability = _judge(found.explanation, options)
        used = found.explanation.facts.rows.used
        steps.append(AutoStep(fraction=share, rows=used, jaccard=jaccard, probability=probability))
        if share == 1.0 or probability >= options.confidence:
            break
        share = _next(found.explanation, options, share)
        if share > min(cached or 0.0, WORTHWHILE) and _reads_everything(asked):
            share = 1.0
    auto = AutoSampling(target_jaccard=options.target_jaccard, confidence=options.confidence, k=k, steps=tuple(steps))
    seconds = round(time.perf_counter() - began, 3)
    return replace(
        found.explanation,
        facts=replace(found.explanation.facts, auto=auto),
        provenance=replace(
            found.explanation.provenance,
            bytes_read=bytes_read,
            resumed_states=None if checkpoint is None else resumed,
            seconds=seconds,
        ),
    )


def _sampling(inputs: Inputs) -> str:
    """Whole row groups save reading; single rows save the work of a model, whose outputs are reused."""
    if inputs.outputs.model is not None or inputs.snapshot is None:
        return "rows"
    if inputs.plan.row_groups < LEAST_GROUPS:
        return "rows"
    first = Sample(_first(inputs, "row-groups"), inputs.sample.seed, "row-groups")
    return "rows" if out_of_range_columns(inputs.snapshot, first, inputs.layout.fixed) else "row-groups"


def _first(inputs: Inputs, by: str) -> float:
    """Share of the rows for the first step."""
    share = max(FIRST, FIRST_ROWS / inputs.plan.rows) if inputs.plan.rows else FIRST
    if SAMPLINGS[by].whole_row_groups and inputs.snapshot is not None:
        share = max(share, FIRST_GROUPS / max(inputs.plan.row_groups, 1))
    return min(share, 1.0)


def _reads_everything(inputs: Inputs) -> bool:
    """Whether all rows must be read for any sample, and reading is what takes the time."""
    return not inputs.sample.whole_row_groups and inputs.outputs.model is None and not is_pandas(inputs.lake)


def _cache_fraction(inputs: Inputs) -> float | None:
    """Share of the rows to cache, at least that of the sample; None: too much to be cached."""
    if (
        inputs.snapshot is None
        or inputs.layout.by
        or (inputs.outputs.model is not None and not inputs.sample.whole_row_groups)
    ):
        return None  # a frame is in memory already, and rows for a model are read only once
    size = cache_bytes(inputs.plan, inputs.plan.rows)
    if size is None:
        return None
    if inputs.sample.whole_row_groups:
        return 1.0 if size <= CACHED_BYTES else None
    if size <= CACHED_BYTES:
        return 1.0
    share = min(CACHED_BYTES / size, WORTHWHILE)
    return share if share >= inputs.sample.fraction else None


def _judge(
    explanation: Explanation, options: ExplainOptions, share: float | None = None, draws: int = DRAWS
) -> tuple[int, float, float]:
    """Size of the top, and Jaccard and probability of the least sure output.

    ``share`` asks what a larger sample would probably say.
    """
    outputs = explanation.outputs["output"]
    found = [explanation.stability(options.k, options.target_jaccard, output, share, draws) for output in outputs]
    # nothing is known of row groups that are out of the range of those read
    blind = bool(explanation.facts.out_of_range)
    jaccard, probability = (min(each.jaccard for each in found), min(each.probability for each in found))
    return found[0].k, round(jaccard, 6), 0.0 if blind else round(probability, 6)


def _next(explanation: Explanation, options: ExplainOptions, share: float) -> float:
    """About the smallest larger share that will probably do; 1.0 if little would be saved."""
    if explanation.facts.out_of_range:
        return 4.0 * share
    low, high = 2.0 * share, LARGEST
    if low > high or not _will_do(explanation, options, high):
        return 1.0
    for _ in range(HALVINGS):
        if _will_do(explanation, options, low):
            return low
        low = min(np.sqrt(low * high), high)
    return float(high)


def _will_do(explanation: Explanation, options: ExplainOptions, share: float) -> bool:
    return _judge(explanation, options, share, ROUGH_DRAWS)[2] >= options.confidence
