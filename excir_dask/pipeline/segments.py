"""The tables of segments, from their states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from excir_dask.graph.segment_states import SegmentStates
from excir_dask.pipeline.metadata import output_figures
from excir_dask.pipeline.scoring import score_table
from excir_dask.results.segments import Segments, segment_groups

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

    features, of_outputs = [], []
    for name, lake in zip(states.names, states.lakes, strict=True):
        table = score_table(lake, lake.settled, list(outputs["output"]), whole_units, rank_by)
        table.insert(0, "segment", name)
        features.append(table)
        of_outputs.append(outputs.assign(**output_figures(lake.settled.outputs)))
        of_outputs[-1].insert(0, "segment", name)
    joined = pd.concat(features, ignore_index=True)
    return Segments(
        joined, segment_groups(joined, groups, rank_by), pd.concat(of_outputs, ignore_index=True), source=states
    )  # fmt: skip
