"""Fitted estimators and pipelines with the methods of scikit-learn."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from excir_dask.errors import ExcirError, ModelError
from excir_dask.models.callables import named_outputs
from excir_dask.models.naming import LoadRequest, class_names, resolve_columns
from excir_dask.models.pickles import dump_object, load_object
from excir_dask.models.scoring import Model, NamedOutputs, Predictor, digest


def from_object(estimator: Any, request: LoadRequest) -> Model:
    """A model from a fitted estimator.

    A margin is ``decision_function``, or ``predict`` of a regressor. A classifier without a decision function,
    such as a random forest, gives probabilities. Two classes have one output: that of the second, positive class.
    """
    method, predict_type = _method(estimator, request)
    names = getattr(estimator, "feature_names_in_", None)
    known = None if names is None else tuple(str(name) for name in names)
    columns = resolve_columns(known, getattr(estimator, "n_features_in_", None), request)
    payload = dump_object(estimator, request.source)
    model = Model(
        kind="scikit-learn",
        payload=payload,
        sha256=request.sha256 or digest(payload),
        columns=columns,
        categories=(),
        names=None,
        predict_type=predict_type,
        input_type="float64" if known is None else "frame",
        details=(("class", type(estimator).__name__), ("method", method)),
        source=request.source,
        options=(("method", method),),
    )
    return replace(model, names=_names(model))


def predictor(model: Model) -> Predictor:
    """Open the payload: a function that scores a block."""
    estimator = load_object(model.payload, model.source)
    _use_one_thread(estimator)
    method = dict(model.options)["method"]
    function = getattr(estimator, method)
    classes = getattr(estimator, "classes_", None)

    def score(data: Any) -> NamedOutputs:
        try:
            returned = function(data)
        except Exception as error:
            raise ModelError(
                f"{model.source}.{method} raised {type(error).__name__} on {len(data)} rows: {error}"
            ) from error
        if isinstance(returned, list):  # predict_proba of several targets
            raise ModelError(
                f"{model.source}.{method} returned a list of {len(returned)} arrays; "
                "wrap it in a function that returns one target"
            )
        names, values = named_outputs(returned, len(data), f"{model.source}.{method}")
        if method == "predict":
            return ("prediction",) if len(values) == 1 else names, values
        if method == "predict_proba" and len(values) == 2:
            values = np.ascontiguousarray(values[1:])
        named = None if classes is None else class_names(classes, len(values))
        return named or (("score",) if len(values) == 1 else names), values

    return score


def _method(estimator: Any, request: LoadRequest) -> tuple[str, str]:
    """The method to call, and the type of its values."""
    is_classifier = hasattr(estimator, "classes_")
    if request.predict_type == "probability":
        if not hasattr(estimator, "predict_proba"):
            raise ModelError(f"{request.source} has no predict_proba; use predict_type='margin'")
        return "predict_proba", "probability"
    if hasattr(estimator, "decision_function"):
        return "decision_function", "margin"
    if hasattr(estimator, "predict_proba"):
        return "predict_proba", "probability"
    if is_classifier or not _is_regressor(estimator):
        raise ModelError(
            f"{request.source} predicts labels, which have no order to explain; pass a function that returns numbers"
        )
    return "predict", "margin"


def _is_regressor(estimator: Any) -> bool:
    try:
        from sklearn.base import is_regressor
    except ImportError:  # an estimator of another library
        return True
    try:
        return bool(is_regressor(estimator))
    except AttributeError:  # it has no scikit-learn tags
        return True


def _names(model: Model) -> tuple[str, ...] | None:
    """Names from a row of zeros; None if the model refuses it, for instance a pipeline that takes text."""
    import pandas as pd

    row: Any = np.zeros((1, len(model.columns or ())))
    if model.input_type == "frame":
        row = pd.DataFrame(row, columns=list(model.columns or ()))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.score(row)[0]
    except ExcirError:
        return None


def _use_one_thread(estimator: Any) -> None:
    """Set n_jobs to 1, because dask runs one task per thread already. The estimator is a copy of this process."""
    settings = estimator.get_params() if hasattr(estimator, "get_params") else {}
    jobs = {name: 1 for name, value in settings.items() if name.split("__")[-1] == "n_jobs" and value is not None}
    if jobs:
        estimator.set_params(**jobs)
