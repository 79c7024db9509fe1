"""As many rows as it takes: the sample grows until the top features are surely those of all rows.

Each step explains a sample that holds the one before, and takes over what is known of its rows: what a model said of
them, and, up to a limit, the rows themselves. A step by row groups reads only those that are new, once for both scans.
Single rows are drawn from all over the lake, so the first step holds as many as it may, and later ones take theirs from
those; where they want more, and there is no model to be spared, all rows are taken, because all must be read anyway.
What all steps took together is what the explanation tells.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from excir_dask.attempt import Attempt, Settings, attempt
from excir_dask.errors import UsageError
from excir_dask.explanation import Explanation
from excir_dask.graph.checkpoint import Checkpoint
from excir_dask.graph.run import KEPT_BYTES, Runner
from excir_dask.inputs import Inputs, resampled
from excir_dask.lake.frames import is_pandas
from excir_dask.lake.held import held_bytes
from excir_dask.lake.sample import Sample

FIRST = 0.05
"""share of the rows that the first step takes"""

FIRST_ROWS = 2000
"""rows that the first step takes at least"""

FIRST_GROUPS = 12
"""row groups that the first step takes at least: fewer do not tell how much they differ"""

LARGEST = 0.7
"""share beyond which all rows are taken instead: little would be saved"""

LEAST_GROUPS = 40
"""row groups from which on whole row groups are drawn where there is no model"""


HELD_BYTES = KEPT_BYTES
"""decoded rows that are held at most: from a disk, reading Parquet again is twice as fast as reading those"""


@dataclass(frozen=True)
class Goal:
    """When a sample is enough."""

    jaccard: float = 0.9
    """of the top k with that of all rows"""
    confidence: float = 0.95
    """probability that it is met"""
    k: int = 8

    def __post_init__(self) -> None:
        for name, value in (("target_jaccard", self.jaccard), ("confidence", self.confidence)):
            if not 0.0 < value <= 1.0:
                raise UsageError(f"{name} is {value}; it must be above 0 and at most 1")
        if self.k < 1:
            raise UsageError(f"k is {self.k}; it must be at least 1")


def grow(
    inputs: Inputs,
    settings: Settings,
    runner: Runner,
    goal: Goal,
    sampling: str | None,
    checkpoint: Checkpoint | None = None,
) -> Explanation:
    """Explain a sample that is as large as the goal asks for; all rows if nothing less will do."""
    by = sampling or _sampling(inputs)
    share = min(max(FIRST, FIRST_ROWS / max(inputs.rows, 1)), 1.0)
    if by == "row-groups" and inputs.snapshot is not None:
        groups = sum(1 for file in inputs.snapshot.files for rows in file.row_groups if rows)
        share = min(max(share, FIRST_GROUPS / max(groups, 1)), 1.0)
    steps: list[dict[str, Any]] = []
    found: Attempt | None = None
    asked: Inputs | None = None
    spent: dict[str, Any] = {"seconds": 0.0, "bytes_read": 0}  # of all steps together
    while True:
        share = 1.0 if share > LARGEST else round(share, 6)
        asked = resampled(inputs, Sample(share, inputs.sample.seed, by), asked)
        held = _held(asked)
        # what a checkpoint has need not be read at all
        hold = None if checkpoint is not None else held
        found = attempt(asked, settings, runner, found.scans if found else None, checkpoint, hold)
        for name in spent:
            spent[name] += found.explanation.provenance[name]
        step = _judge(found.explanation, goal)
        steps.append({"fraction": share, "rows": found.explanation.facts["rows"]["used"], **step})
        if share == 1.0 or step["probability"] >= goal.confidence:
            break
        share = _next(found.explanation, goal, share)
        if share > (held or 0.0) and _reads_everything(asked):
            share = 1.0
    auto = {"target_jaccard": goal.jaccard, "confidence": goal.confidence, "k": goal.k, "steps": steps}
    return replace(
        found.explanation,
        facts={**found.explanation.facts, "auto": auto},
        provenance={**found.explanation.provenance, **spent},
    )


def _sampling(inputs: Inputs) -> str:
    """Whole row groups save reading; single rows save a model's work, and what it said of them can be kept."""
    if inputs.outputs.model is not None or inputs.snapshot is None:
        return "rows"
    groups = sum(len(file.row_groups) for file in inputs.snapshot.files)
    return "row-groups" if groups >= LEAST_GROUPS else "rows"


def _reads_everything(inputs: Inputs) -> bool:
    """Whether all rows must be read for any sample, and reading is what takes the time."""
    return inputs.sample.by == "rows" and inputs.outputs.model is None and not is_pandas(inputs.lake)


def _held(inputs: Inputs) -> float | None:
    """Share of the rows to hold, at least that of the sample; None: too much to be held."""
    if inputs.snapshot is None or (inputs.outputs.model is not None and inputs.sample.by == "rows"):
        return None  # a frame is there already, and a model's rows are read for it alone
    size = held_bytes(inputs.plan, inputs.plan.rows)
    if size is None:
        return None
    if inputs.sample.by == "row-groups":
        return 1.0 if size <= HELD_BYTES else None
    share = min(HELD_BYTES / size, 1.0)
    return share if share >= inputs.sample.fraction else None


def _judge(explanation: Explanation, goal: Goal, share: float | None = None) -> dict[str, float]:
    """The least sure output; ``share`` asks what a larger sample would probably say."""
    found = [explanation.stability(goal.k, goal.jaccard, output, share) for output in explanation.outputs["output"]]
    return {
        "jaccard": round(min(each.jaccard for each in found), 6),
        "probability": round(min(each.probability for each in found), 6),
    }


def _next(explanation: Explanation, goal: Goal, share: float) -> float:
    """The smallest of some larger shares that will probably do."""
    for wanted in np.minimum(share * np.array([2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0]), 1.0):
        if wanted > LARGEST:
            break
        if _judge(explanation, goal, float(wanted))["probability"] >= goal.confidence:
            return float(wanted)
    return 1.0
