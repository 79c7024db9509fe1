"""The tables of segments, from their states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from excir_dask.graph.segment_states import SegmentStates
from excir_dask.kernels.dependence import depend
from excir_dask.kernels.scores import score
from excir_dask.pipeline.metadata import output_figures
from excir_dask.results.segments import Segments, segment_groups
from excir_dask.results.tables import feature_table

if TYPE_CHECKING:
    import pandas as pd

MOST = 1000
"""segments that are told apart"""

PAIR_BYTES = 8 * 2**10
"""state of a segment's column, and of each output"""

STATES = 10
"""states that are in memory together while they are merged"""

MEMORY = 4
"""budgets that the states of segments may take together"""


def most_segments(features: int, outputs: int, budget: int) -> int:
    """How many segments fit into memory."""
    return max(min(MOST, MEMORY * budget // segment_bytes(features, outputs)), 2)


def segment_bytes(features: int, outputs: int) -> int:
    """Memory of one segment: its part of the reference, and states that are being merged."""
    return PAIR_BYTES * (features + outputs) * (2 + STATES * outputs)


def score_segments(
    states: SegmentStates,
    outputs: pd.DataFrame,
    groups: Mapping[str, Sequence[str]],
    whole_units: bool,
    rank_by: str,
) -> Segments:
    """Scores and groups of every segment.

    Parameters
    ----------
    states : SegmentStates
    outputs : DataFrame
        Those of all rows.
    groups : mapping name -> features
        The same for every segment.
    whole_units : bool
        The rows are a sample of whole row groups.
    rank_by : str
    """
    import pandas as pd

    settled, names = states.settled, list(states.names)
    stats = settled.features, settled.outputs
    scores = score(settled.sums, *stats, states.spans.units, whole_units)
    features = feature_table(
        states.feature_names, list(outputs["output"]), *stats, settled.sums, scores,
        depend(states.joint, scores.rows, *(each.q75 - each.q25 for each in stats)), rank_by=rank_by, segments=names,
    )  # fmt: skip
    of_outputs = pd.concat([outputs] * len(names))
    of_outputs = of_outputs.reset_index(drop=True).assign(**output_figures(settled.outputs))
    of_outputs.insert(0, "segment", np.repeat(np.array(names, dtype=object), len(outputs)))
    return Segments(features, segment_groups(features, groups, rank_by), of_outputs, source=states)
