"""Fitted estimators with scikit-learn's methods, pipelines among them."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from excir_dask.errors import ExcirError, ModelError
from excir_dask.models.callables import from_pickle, named_outputs, to_pickle
from excir_dask.models.naming import Asked, class_names, settle_columns
from excir_dask.models.scoring import Model, Predictor, Scored, digest


def from_object(estimator: Any, asked: Asked) -> Model:
    """A model from a fitted estimator.

    A margin is ``decision_function``, or ``predict`` of a regressor. A classifier without a decision function,
    such as a random forest, gives probabilities. Two classes have one output: the second, positive class.
    """
    method, predict_type = _method(estimator, asked)
    found = getattr(estimator, "feature_names_in_", None)
    known = None if found is None else tuple(str(name) for name in found)
    columns = settle_columns(known, getattr(estimator, "n_features_in_", None), asked)
    payload = to_pickle(estimator, asked.source)
    model = Model(
        kind="scikit-learn",
        payload=payload,
        sha256=asked.sha256 or digest(payload),
        columns=columns,
        categories=(),
        names=None,
        predict_type=predict_type,
        wants="float64" if known is None else "frame",
        details=(("class", type(estimator).__name__), ("method", method)),
        source=asked.source,
        options=(("method", method),),
    )
    return replace(model, names=_names(model))


def predictor(model: Model) -> Predictor:
    """Open the payload: a function from a block to the outputs."""
    estimator = from_pickle(model)
    _use_one_thread(estimator)
    method = dict(model.options)["method"]
    function = getattr(estimator, method)
    classes = getattr(estimator, "classes_", None)

    def score(data: Any) -> Scored:
        try:
            found = function(data)
        except Exception as error:
            raise ModelError(
                f"{model.source}.{method} raised {type(error).__name__} on {len(data)} rows: {error}"
            ) from error
        if isinstance(found, list):  # predict_proba of several targets at once
            raise ModelError(f"{model.source}.{method} returned a list of {len(found)} arrays; explain one target")
        names, values = named_outputs(found, len(data), f"{model.source}.{method}")
        if method == "predict":
            return ("prediction",) if len(values) == 1 else names, values
        if method == "predict_proba" and len(values) == 2:
            values = np.ascontiguousarray(values[1:])
        named = None if classes is None else class_names(classes, len(values))
        return named or (("score",) if len(values) == 1 else names), values

    return score


def _method(estimator: Any, asked: Asked) -> tuple[str, str]:
    """The method to call, and what its values are."""
    classifies = hasattr(estimator, "classes_")
    if asked.predict_type == "probability":
        if not hasattr(estimator, "predict_proba"):
            raise ModelError(f"{asked.source} has no predict_proba; use predict_type='margin'")
        return "predict_proba", "probability"
    if hasattr(estimator, "decision_function"):
        return "decision_function", "margin"
    if hasattr(estimator, "predict_proba"):
        return "predict_proba", "probability"
    if classifies or not _regresses(estimator):
        raise ModelError(
            f"{asked.source} gives labels, which have no order to explain; pass a function that returns numbers"
        )
    return "predict", "margin"


def _regresses(estimator: Any) -> bool:
    try:
        from sklearn.base import is_regressor
    except ImportError:  # an estimator of another library, on its own
        return True
    try:
        return bool(is_regressor(estimator))
    except AttributeError:  # it has no tags
        return True


def _names(model: Model) -> tuple[str, ...] | None:
    """Names from a row of zeros; a pipeline that wants text, for instance, tells them only when it is called."""
    import pandas as pd

    row: Any = np.zeros((1, len(model.columns or ())))
    if model.wants == "frame":
        row = pd.DataFrame(row, columns=list(model.columns or ()))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.score(row)[0]
    except ExcirError:
        return None


def _use_one_thread(estimator: Any) -> None:
    """Dask runs one task a thread already. The estimator is this process's own copy."""
    settings = estimator.get_params() if hasattr(estimator, "get_params") else {}
    jobs = {name: 1 for name, value in settings.items() if name.split("__")[-1] == "n_jobs" and value is not None}
    if jobs:
        estimator.set_params(**jobs)
