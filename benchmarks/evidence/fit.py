"""The model of every section: XGBoost with 60 trees and otherwise its defaults, as in the published recipe."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xgboost
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

HELD_OUT = 0.3
Floats = NDArray[np.float64]


def named(X: Any) -> pd.DataFrame:
    """Columns f0000, f0001, ..."""
    return pd.DataFrame(X, columns=[f"f{j:04d}" for j in range(X.shape[1])])


def is_classes(y: Any) -> bool:
    """Whole numbers are classes."""
    return bool(np.issubdtype(y.dtype, np.integer))


def split(X: Any, y: Any, share: float = HELD_OUT) -> tuple[Any, Any, Any, Any]:
    """Rows to fit and rows held out, stratified by class: X of both, y of both."""
    found: tuple[Any, Any, Any, Any] = tuple(
        train_test_split(X, y, test_size=share, random_state=0, stratify=y if is_classes(y) else None)
    )
    return found


def fit(X: Any, y: Any, **params: Any) -> Any:
    """A model of all these rows."""
    kind = xgboost.XGBClassifier if is_classes(y) else xgboost.XGBRegressor
    return kind(n_estimators=60, tree_method="hist", random_state=0, n_jobs=1, **params).fit(X, y)


def quality(model: Any, X: Any, y: Any) -> float:
    """Accuracy of classes, R2 of numbers."""
    return float(model.score(X, y))


def margins(model: Any, X: pd.DataFrame) -> Floats:
    """(rows,) or (rows, classes) raw scores."""
    found = model.get_booster().inplace_predict(X, predict_type="margin")
    return np.asarray(found, dtype=np.float64)
