"""Scores of one run, as the sections show them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from excir_dask import explain


def scored(frame: pd.DataFrame, output: Any, **options: Any) -> pd.DataFrame:
    """The feature table of one output, by feature, in the order of the frame's columns."""
    made = frame.assign(output=np.asarray(output, dtype=np.float64))
    found = explain(made, output="output", progress=False, **options)
    return found.of().set_index("feature").loc[list(frame.columns)]
