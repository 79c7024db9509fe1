"""Tiny data that every kind of model is trained on."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest


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
