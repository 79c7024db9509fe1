"""LightGBM models: text files, boosters, and the scikit-learn wrappers."""

from __future__ import annotations

from typing import Any

import numpy as np

from excir_dask.errors import ModelError
from excir_dask.models.encode import encode
from excir_dask.models.lightgbm_text import EXPECTED, categorical_columns, read_header
from excir_dask.models.naming import Asked, class_names, numbered, settle_columns
from excir_dask.models.scoring import Model, Predictor, Scored, digest, outputs_first

CLASSES = ("binary", "multiclass", "multiclassova")
PROBABILITIES = (*CLASSES, "cross_entropy")
# the margin of these is the prediction itself; others have a link between the two, such as the logarithm
IDENTITY = ("regression", "regression_l1", "huber", "fair", "quantile", "mape")
RANKING = ("lambdarank", "rank_xendcg")


def from_file(content: bytes, asked: Asked) -> Model:
    """A model from the text of a file, which holds the trees up to the best iteration only."""
    return _model(content, asked, None)


def from_object(model: Any, asked: Asked) -> Model:
    """A model from a Booster or a wrapper; as its own ``predict`` does, it stops at the best iteration."""
    lightgbm = _library(asked.source)
    booster, classes = model, None
    if isinstance(model, lightgbm.LGBMModel):
        try:
            booster = model.booster_
        except Exception as error:
            raise ModelError(f"{asked.source} is not fitted; call fit first") from error
        classes = getattr(model, "classes_", None)
    if not isinstance(booster, lightgbm.Booster):
        raise ModelError(f"{asked.source} is no Booster and no LGBMModel; pass one of those, or a file that it saved")
    return _model(booster.model_to_string().encode(), asked, classes)  # leaves out what follows the best iteration


def predictor(model: Model) -> Predictor:
    """Open the payload: a function from a block to the outputs."""
    booster = _open(model.payload, model.source)
    names, raw = model.names or (), model.predict_type == "margin"

    def score(data: Any) -> Scored:
        matrix = encode(model, data, "float64") if model.wants == "frame" else data
        return names, outputs_first(booster.predict(matrix, raw_score=raw, num_threads=1), len(matrix), model.source)

    return score


def _model(text: bytes, asked: Asked, classes: Any) -> Model:
    header = read_header(text, asked.source)
    objective = header.get("objective", "custom").split()[0]
    if asked.predict_type == "probability" and objective not in PROBABILITIES:
        raise ModelError(
            f"{asked.source} has the objective {objective}, which gives no probabilities; use predict_type='margin'"
        )
    named = tuple(header["feature_names"].split())
    given = asked.columns
    if named == tuple(f"Column_{place}" for place in range(len(named))):  # what it calls the columns of an array
        columns = settle_columns(None, len(named), asked)
    elif given is not None and tuple(name.replace(" ", "_") for name in given) == named:
        columns = given  # LightGBM writes spaces as underscores
    else:
        columns = settle_columns(named, len(named), asked)
    categories = categorical_columns(text.decode("utf-8"), columns, asked.source)
    booster = _open(text, asked.source)
    try:  # a row of missing values shows that it can predict at all
        outputs = np.size(booster.predict(np.full((1, len(columns)), np.nan), raw_score=True, num_threads=1))
    except Exception as error:
        raise ModelError(f"{asked.source} was loaded but cannot predict: {error}") from error
    return Model(
        kind="lightgbm",
        payload=text,
        sha256=asked.sha256 or digest(text),
        columns=columns,
        categories=tuple(categories.items()),
        names=_names(objective, asked, classes, outputs),
        predict_type=asked.predict_type,
        wants="frame" if any(values is not None for values in categories.values()) else "float64",
        details=(("objective", objective), ("rounds", booster.current_iteration()), ("trees", booster.num_trees())),
        source=asked.source,
    )


def _open(text: bytes, source: str) -> Any:
    lightgbm = _library(source)
    try:
        return lightgbm.Booster(model_str=text.decode("utf-8"))
    except Exception as error:
        raise ModelError(f"{source} cannot be loaded: {error}; expected {EXPECTED}") from error


def _names(objective: str, asked: Asked, classes: Any, outputs: int) -> tuple[str, ...]:
    if objective in CLASSES and classes is not None:
        named = class_names(classes, outputs)
        if named is not None:
            return named
    if outputs > 1:
        return numbered(outputs)
    if objective in RANKING:
        return ("score",)
    return ("prediction",) if objective in IDENTITY else (asked.predict_type,)


def _library(source: str) -> Any:
    try:
        import lightgbm
    except ImportError as error:
        raise ModelError(
            f"{source} is a LightGBM model, and LightGBM is not installed: pip install 'excir-dask[lightgbm]'"
        ) from error
    return lightgbm
