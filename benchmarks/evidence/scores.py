"""Scores of one run, as the sections show them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from excir_dask import Explanation, explain


def scored(frame: pd.DataFrame, output: Any, **options: Any) -> pd.DataFrame:
    """The feature table of one output, by feature, in the order of the frame's columns."""
    made = frame.assign(output=np.asarray(output, dtype=np.float64))
    found = explain(made, output="output", progress=False, **options)
    table = found.of().set_index("feature").loc[list(frame.columns)]
    return table if "dependence" in table else table.assign(dependence=_dependence(found))


def _dependence(found: Explanation) -> np.ndarray:
    """Mutual information of 16 x 16 cells, corrected for bias, as a share of the output's entropy."""
    values = []
    for counts in found.state.state.pairs.joint[0]:
        rows = counts.sum()
        expected = counts.sum(1, keepdims=True) * counts.sum(0, keepdims=True) / rows
        seen = counts > 0
        information = np.sum(counts[seen] * np.log(counts[seen] / expected[seen])) / rows
        x, y = (counts.sum(1) > 0).sum(), (counts.sum(0) > 0).sum()
        share = counts.sum(0)[counts.sum(0) > 0] / rows
        bias, entropy = (x - 1) * (y - 1) / (2 * rows), -np.sum(share * np.log(share))
        values.append(max(information - bias, 0.0) / max(entropy, 1e-12))
    return np.array(values)
