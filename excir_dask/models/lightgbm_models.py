"""LightGBM models: text files, boosters and scikit-learn wrappers."""

from __future__ import annotations

from typing import Any

import numpy as np

from excir_dask.errors import ModelError
from excir_dask.models.encode import encode
from excir_dask.models.lightgbm_text import EXPECTED, categorical_columns, read_header
from excir_dask.models.naming import LoadRequest, class_names, numbered_names, resolve_columns
from excir_dask.models.scoring import Model, NamedOutputs, Predictor, digest, outputs_first

CLASSES = ("binary", "multiclass", "multiclassova")
PROBABILITIES = (*CLASSES, "cross_entropy")
# objectives whose margin is the prediction; others have a link function, such as the logarithm
IDENTITY = ("regression", "regression_l1", "huber", "fair", "quantile", "mape")
RANKING = ("lambdarank", "rank_xendcg")


def from_file(content: bytes, request: LoadRequest) -> Model:
    """A model from the text of a file, which has the trees up to the best iteration."""
    return _model(content, request, None)


def from_object(model: Any, request: LoadRequest) -> Model:
    """A model from a Booster or a wrapper; like its ``predict``, it stops at the best iteration."""
    lightgbm = _library(request.source)
    booster, classes = model, None
    if isinstance(model, lightgbm.LGBMModel):
        try:
            booster = model.booster_
        except Exception as error:
            raise ModelError(f"{request.source} is not fitted; call fit first") from error
        classes = getattr(model, "classes_", None)
    if not isinstance(booster, lightgbm.Booster):
        raise ModelError(f"{request.source} is neither a Booster nor an LGBMModel; pass one of those, or a saved file")
    return _model(booster.model_to_string().encode(), request, classes)  # without the trees after the best iteration


def predictor(model: Model) -> Predictor:
    """Open the payload: a function that scores a block."""
    booster = _open(model.payload, model.source)
    names, raw = model.names or (), model.predict_type == "margin"

    def score(data: Any) -> NamedOutputs:
        matrix = encode(model, data, "float64") if model.input_type == "frame" else data
        return names, outputs_first(booster.predict(matrix, raw_score=raw, num_threads=1), len(matrix), model.source)

    return score


def _model(text: bytes, request: LoadRequest, classes: Any) -> Model:
    header = read_header(text, request.source)
    objective = header.get("objective", "custom").split()[0]
    if request.predict_type == "probability" and objective not in PROBABILITIES:
        raise ModelError(
            f"{request.source} has the objective {objective}, which has no probabilities; use predict_type='margin'"
        )
    named = tuple(header["feature_names"].split())
    given = request.columns
    if named == tuple(f"Column_{index}" for index in range(len(named))):  # its names for the columns of an array
        columns = resolve_columns(None, len(named), request)
    elif given is not None and tuple(name.replace(" ", "_") for name in given) == named:
        columns = given  # LightGBM writes spaces as underscores
    else:
        columns = resolve_columns(named, len(named), request)
    categories = categorical_columns(text.decode("utf-8"), columns, request.source)
    booster = _open(text, request.source)
    try:  # with a row of missing values, to check that it can predict
        outputs = np.size(booster.predict(np.full((1, len(columns)), np.nan), raw_score=True, num_threads=1))
    except Exception as error:
        raise ModelError(f"{request.source} loads but cannot predict: {error}") from error
    return Model(
        kind="lightgbm",
        payload=text,
        sha256=request.sha256 or digest(text),
        columns=columns,
        categories=tuple(categories.items()),
        names=_names(objective, request, classes, outputs),
        predict_type=request.predict_type,
        input_type="frame" if any(values is not None for values in categories.values()) else "float64",
        details=(("objective", objective), ("rounds", booster.current_iteration()), ("trees", booster.num_trees())),
        source=request.source,
    )


def _open(text: bytes, source: str) -> Any:
    lightgbm = _library(source)
    try:
        return lightgbm.Booster(model_str=text.decode("utf-8"))
    except Exception as error:
        raise ModelError(f"{source} cannot be loaded: {error}; expected {EXPECTED}") from error


def _names(objective: str, request: LoadRequest, classes: Any, outputs: int) -> tuple[str, ...]:
    if objective in CLASSES and classes is not None:
        named = class_names(classes, outputs)
        if named is not None:
            return named
    if outputs > 1:
        return numbered_names(outputs)
    if objective in RANKING:
        return ("score",)
    return ("prediction",) if objective in IDENTITY else (request.predict_type,)


def _library(source: str) -> Any:
    try:
        import lightgbm
    except ImportError as error:
        raise ModelError(
            f"{source} is a LightGBM model, but LightGBM is not installed; pip install 'excir-dask[lightgbm]'"
        ) from error
    return lightgbm
