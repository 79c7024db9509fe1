"""The part of a report about segments: a map of features and segments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from excir_dask.render.html.blocks import Block, Choice, Legend, Section

if TYPE_CHECKING:
    from excir_dask.results.explanation import Explanation

TOP, SEGMENTS, OUTPUTS = 20, 40, 12
"""most features, segments and outputs that are drawn"""


def segments(explanation: Explanation, signs: tuple[tuple[str, str], ...]) -> Section | None:
    """A map per output; None without segments."""
    from excir_dask.render.html.explanation_charts import side_by_side

    if explanation.by is None:
        return None
    names, table = explanation.by.names, explanation.segments
    shown = names[:SEGMENTS]
    panels: list[tuple[str, list[Block]]] = []
    for output in list(explanation.outputs["output"])[:OUTPUTS]:
        features = [str(name) for name in explanation.of(output)["feature"].head(TOP)]
        some = table[(table["output"] == output) & table["feature"].isin(features) & table["segment"].isin(shown)]
        scores = some.pivot(index="feature", columns="segment", values="cir").loc[features, shown]
        panels.append((output, [side_by_side(scores.to_numpy(dtype=np.float64), features, shown, "segment")]))
    by = " and ".join(explanation.facts.settings.by)
    lead = f"The first features of all rows, by {by}; segments with most rows come first."
    if len(names) > SEGMENTS:
        lead += f" {SEGMENTS} of {len(names):,} segments are drawn; segments.parquet has all of them."
    return Section("segments", "Segments side by side", [Legend(signs), Choice("Output", panels)], lead)
