"""Models to score the lake with: :func:`load_model` takes files, model objects and functions alike."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from excir_dask.errors import ModelError, UsageError, nearest
from excir_dask.models import callables, lightgbm_models, onnx_models, sklearn_models, xgboost_models
from excir_dask.models.files import read_model_file, recognise, unpickle
from excir_dask.models.naming import Asked
from excir_dask.models.scoring import Model, digest

__all__ = ["PREDICT_TYPES", "Model", "load_model"]

PREDICT_TYPES = ("margin", "probability")


def load_model(
    model: Any,
    *,
    predict_type: str = "margin",
    columns: Sequence[str] | None = None,
    allow_pickle: bool = False,
) -> Model:
    """Make a model ready to score blocks of rows.

    Parameters
    ----------
    model : path, model object or callable
        A file of XGBoost (.ubj, .json), LightGBM (text) or ONNX; a fitted model of XGBoost, LightGBM or
        scikit-learn; or a function of a pandas DataFrame.
    predict_type : {"margin", "probability"}
        What to explain. An ONNX file gives what was exported, a function what it returns.
    columns : list of str, optional
        Columns of a model that does not name its own, in the order of training.
    allow_pickle : bool
        Load pickle and joblib files, which runs the code that is in them.

    Returns
    -------
    Model

    Examples
    --------
    >>> import pandas as pd
    >>> model = load_model(lambda frame: 2 * frame["a"])
    >>> model.score(pd.DataFrame({"a": [1.0, 2.0]}))
    (('a',), array([[2., 4.]]))
    """
    if predict_type not in PREDICT_TYPES:
        raise UsageError(
            f"predict_type is {predict_type!r}{nearest(str(predict_type), PREDICT_TYPES)} "
            f"(one of {', '.join(PREDICT_TYPES)})"
        )
    if isinstance(columns, str):
        raise UsageError(f"columns is the text {columns!r}; pass a list of column names in training order")
    named = None if columns is None else tuple(str(name) for name in columns)
    if not isinstance(model, str | os.PathLike):
        return _from_object(model, Asked(_describe(model), None, predict_type, named))
    path = Path(model)
    content = read_model_file(path)
    asked = Asked(str(path), digest(content), predict_type, named)
    kind = recognise(path, content)
    if kind == "pickle":
        return _from_object(unpickle(path, content, allow_pickle), asked)
    if kind == "lightgbm":
        return lightgbm_models.from_file(content, asked)
    if kind == "onnx":
        return onnx_models.from_file(content, asked, path.parent)
    return xgboost_models.from_file(content, asked)


def _from_object(model: Any, asked: Asked) -> Model:
    # by the names of its classes' modules, so that no library is imported that the model does not come from
    origins = {part.__module__.split(".")[0] for part in type(model).__mro__}
    if "xgboost" in origins:
        return xgboost_models.from_object(model, asked)
    if "lightgbm" in origins:
        return lightgbm_models.from_object(model, asked)
    if hasattr(model, "predict") and (hasattr(model, "n_features_in_") or hasattr(model, "feature_names_in_")):
        return sklearn_models.from_object(model, asked)
    if callable(model) and not isinstance(model, type):
        return callables.from_object(model, asked)
    if "sklearn" in origins:
        raise ModelError(f"{asked.source} is not fitted; call fit first")
    hint = "; the booster is in its item 'booster'" if isinstance(model, dict) and "booster" in model else ""
    raise UsageError(
        f"a model is a file, a fitted model of XGBoost, LightGBM or scikit-learn, or a function of a DataFrame, "
        f"not {asked.source}{hint}"
    )


def _describe(model: Any) -> str:
    """What messages call an object: the function's name, or its class."""
    name = getattr(model, "__qualname__", None)
    return name if isinstance(name, str) else type(model).__name__
