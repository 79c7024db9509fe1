"""Tiny data that every kind of model is trained on."""

from __future__ import annotations

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from skl2onnx import to_onnx
from sklearn.linear_model import LogisticRegression


@pytest.fixture(scope="session")
def table() -> pd.DataFrame:
    """Numbers with some missing, and two categorical columns."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(240, 3)), columns=["a", "b", "c"])
    frame.loc[::17, "b"] = np.nan
    frame["word"] = pd.Categorical(rng.choice(["low", "mid", "high"], 240))
    frame["size"] = pd.Categorical(rng.choice([10, 5, 40], 240))
    return frame


@pytest.fixture(scope="session")
def numbers(table: pd.DataFrame) -> pd.DataFrame:
    return table[["a", "b", "c"]]


@pytest.fixture(scope="session")
def complete(numbers: pd.DataFrame) -> pd.DataFrame:
    """Without missing values, for the models that take none."""
    return numbers.fillna(0.0)


@pytest.fixture(scope="session")
def target(table: pd.DataFrame) -> pd.Series:
    effect = table["word"].cat.codes + (table["size"].cat.codes == 1)
    return table["a"] - 2 * table["c"] + effect


@pytest.fixture(scope="session")
def binary(target: pd.Series) -> pd.Series:
    return (target > target.median()).astype(int)


@pytest.fixture(scope="session")
def three(target: pd.Series) -> pd.Series:
    return pd.qcut(target, 3, labels=False)


@pytest.fixture
def files(tmp_path, table, complete, binary):
    """One whole file of each kind."""
    booster = xgb.train(
        {"objective": "binary:logistic", "max_depth": 3}, xgb.DMatrix(table, binary, enable_categorical=True), 3
    )
    booster.save_model(tmp_path / "m.ubj")
    booster.save_model(tmp_path / "m.json")
    settings = {"objective": "binary", "num_leaves": 5, "verbosity": -1}
    lgb.train(settings, lgb.Dataset(table, binary), 3).save_model(tmp_path / "m.txt")
    X = complete.to_numpy(np.float32)
    (tmp_path / "m.onnx").write_bytes(
        to_onnx(LogisticRegression().fit(X, binary), X[:1], target_opset=17).SerializeToString()
    )
    return tmp_path
