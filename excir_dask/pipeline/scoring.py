"""From what a lake was reduced to, at the final centres, to the table of its features."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from excir_dask.graph.lake_state import LakeState, Settled
from excir_dask.kernels.dependence import depend
from excir_dask.kernels.scores import score
from excir_dask.results.tables import feature_table

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger(__name__)


def score_table(
    lake: LakeState, settled: Settled, outputs: Sequence[str], whole_units: bool, rank_by: str
) -> pd.DataFrame:
    """Scores of all features; ``whole_units`` says that the rows are a sample of whole row groups."""
    stats = settled.features, settled.outputs
    scores = score(settled.sums, *stats, lake.span.units, whole_units)
    dependence = depend(lake.joint, scores.rows, *(each.q75 - each.q25 for each in stats))
    return feature_table(lake.names, outputs, *stats, settled.sums, scores, dependence, rank_by=rank_by)


def warn_of_range(table: pd.DataFrame) -> None:
    """Name the first feature whose products with an output, or their squares, are no numbers."""
    found = table[table["flag"].str.contains("out of range")]
    if len(found):
        others = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        log.warning(
            "column '%s' times output '%s' is too large or too small to square%s, so its error is unknown and it is "
            "flagged 'out of range'; multiply one of them by a constant (scores do not change by that), "
            "or leave extreme values out",
            found["feature"].iloc[0], found["output"].iloc[0], others,
        )  # fmt: skip
