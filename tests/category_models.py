"""A model of a column of categories, for the tests of several kinds of models."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

from excir_dask import Explanation

stores_categories = pytest.mark.skipif(
    not hasattr(xgb.Booster, "get_categories"), reason="XGBoost stores categories since 3.1"
)


def cir(explanation: Explanation) -> pd.Series:
    """Scores of the first output by feature."""
    return explanation.of().set_index("feature")["cir"]


def categorical(values: pd.Series) -> tuple[pd.DataFrame, xgb.XGBRegressor]:
    """A frame with a number ``x`` and the categories ``k``, and a model of both."""
    frame = pd.DataFrame({"x": np.random.default_rng(3).standard_normal(len(values)), "k": values.astype("category")})
    return frame, xgb.XGBRegressor(n_estimators=4, enable_categorical=True).fit(frame, frame["x"])
