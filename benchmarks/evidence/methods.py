"""Other ways to rank a model's features, each on the same rows: ``(model, frame, y) -> score per column``, high first.

All explain the margin of a class model, or the prediction of a number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import xgboost
from sklearn.feature_selection import mutual_info_classif, mutual_info_regression

from evidence.fit import Floats, is_classes, margins

PDP_ROWS, PDP_POINTS = 500, 10
HSIC_ROWS = 500
PERMUTATIONS = 3


def tree_gain(model: Any, frame: pd.DataFrame, y: Any) -> Floats:
    """Mean gain of the splits by a column; 0 if there is none."""
    gains = model.get_booster().get_score(importance_type="gain")
    return np.array([gains.get(name, 0.0) for name in frame.columns])


def mean_shap(model: Any, frame: pd.DataFrame, y: Any) -> Floats:
    """Mean of the absolute exact TreeSHAP values."""
    values = model.get_booster().predict(xgboost.DMatrix(frame, nthread=1), pred_contribs=True)
    return np.abs(np.asarray(values, dtype=np.float64)[:, :-1]).mean(axis=0)


def permutation(model: Any, frame: pd.DataFrame, y: Any) -> Floats:
    """Rise of the loss (log loss, squared error) when a column's values are shuffled; three shuffles."""
    random = np.random.default_rng(0)
    before = _loss(model, frame, y)
    found = []
    for name in frame.columns:
        shuffled = (frame.assign(**{name: random.permutation(frame[name].to_numpy())}) for _ in range(PERMUTATIONS))
        found.append(np.mean([_loss(model, made, y) for made in shuffled]) - before)
    return np.array(found)


def _loss(model: Any, frame: pd.DataFrame, y: Any) -> float:
    margin = margins(model, frame)
    if is_classes(y):
        return float(np.mean(np.logaddexp(0.0, np.where(y == 1, -margin, margin))))
    return float(np.mean((margin - y) ** 2))


def pdp_variance(model: Any, frame: pd.DataFrame, y: Any) -> Floats:
    """Standard deviation of the partial dependence at ten quantiles, over 500 rows."""
    background = frame.sample(min(PDP_ROWS, len(frame)), random_state=0)
    found = []
    for name in frame.columns:
        points = np.nanquantile(frame[name].to_numpy(), np.linspace(0.05, 0.95, PDP_POINTS))
        curve = [margins(model, background.assign(**{name: point})).mean() for point in points]
        found.append(np.std(curve))
    return np.array(found)


def mi_label(model: Any, frame: pd.DataFrame, y: Any) -> Floats:
    """Mutual information with the label, by nearest neighbours (scikit-learn)."""
    measure = mutual_info_classif if is_classes(y) else mutual_info_regression
    return np.asarray(measure(_filled(frame), y, random_state=0))


def mi_prediction(model: Any, frame: pd.DataFrame, y: Any) -> Floats:
    """Mutual information with the model's output, by nearest neighbours (scikit-learn)."""
    return np.asarray(mutual_info_regression(_filled(frame), margins(model, frame), random_state=0))


def surrogate(model: Any, frame: pd.DataFrame, y: Any) -> Floats:
    """Absolute coefficients of a linear model of the output on standardised columns."""
    X = _filled(frame).to_numpy()
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
    design = np.column_stack([np.ones(len(X)), X])
    return np.abs(np.linalg.lstsq(design, margins(model, frame), rcond=None)[0][1:])


def hsic(model: Any, frame: pd.DataFrame, y: Any) -> Floats:
    """Hilbert-Schmidt independence criterion with the output on 500 rows, as a correlation of two Gaussian kernels."""
    rows = _filled(frame.sample(min(HSIC_ROWS, len(frame)), random_state=0))
    output = _kernel(margins(model, rows))
    found = []
    for name in frame.columns:
        kernel = _kernel(rows[name].to_numpy())
        size = np.sqrt(np.sum(kernel**2) * np.sum(output**2))
        found.append(np.sum(kernel * output) / size if size > 0 else 0.0)
    return np.array(found)


def _kernel(values: Floats) -> Floats:
    """Centred Gaussian kernel; its width is the median distance between different values."""
    distance = np.abs(values[:, None] - values[None, :])
    width = np.median(distance[distance > 0]) if np.any(distance > 0) else 1.0
    kernel = np.exp(-0.5 * (distance / width) ** 2)
    return kernel - kernel.mean(axis=0) - kernel.mean(axis=1)[:, None] + kernel.mean()


def _filled(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.fillna(frame.median())


METHODS: dict[str, Callable[[Any, pd.DataFrame, Any], Floats]] = {
    "mean |SHAP|": mean_shap,
    "tree gain": tree_gain,
    "permutation": permutation,
    "PDP spread": pdp_variance,
    "MI with label": mi_label,
    "MI with prediction": mi_prediction,
    "linear surrogate": surrogate,
    "HSIC": hsic,
}
