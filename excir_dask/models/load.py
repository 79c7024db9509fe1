"""Load models: :func:`load_model` takes files, model objects and functions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from excir_dask.errors import ModelError, UsageError, nearest
from excir_dask.models.files import kind_of_file, read_model_file
from excir_dask.models.kinds import KINDS, packages
from excir_dask.models.naming import LoadRequest
from excir_dask.models.pickles import is_pickle_file, load_pickle_file
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
    """Load a model that scores blocks of rows.

    Parameters
    ----------
    model : path, model object or callable
        A file of XGBoost (.ubj, .json), LightGBM (text) or ONNX; a fitted model of XGBoost, LightGBM or
        scikit-learn; or a function of a pandas DataFrame.
    predict_type : {"margin", "probability"}
        What to explain. An ONNX file gives what was exported, and a function what it returns.
    columns : list of str, optional
        Columns of a model that does not name its own, in training order.
    allow_pickle : bool
        Load pickle and joblib files, which runs the code in them.

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
        raise UsageError(f"columns is the string {columns!r}; pass a list of column names in training order")
    names = None if columns is None else tuple(str(name) for name in columns)
    if not isinstance(model, str | os.PathLike):
        return _from_object(model, LoadRequest(_describe(model), None, predict_type, names))
    path = Path(model)
    content = read_model_file(path)
    request = LoadRequest(str(path), digest(content), predict_type, names, path.parent)
    if is_pickle_file(path, content):
        return _from_object(load_pickle_file(path, content, allow_pickle), request)
    loaded: Model = kind_of_file(path, content).load().from_file(content, request)
    return loaded


def _from_object(model: Any, request: LoadRequest) -> Model:
    for kind in KINDS.values():
        if kind.is_object(model):
            loaded: Model = kind.load().from_object(model, request)
            return loaded
    if "sklearn" in packages(model):
        raise ModelError(f"{request.source} is not fitted; call fit first")
    hint = "; the booster is its item 'booster'" if isinstance(model, dict) and "booster" in model else ""
    raise UsageError(
        f"a model is a file, a fitted model of XGBoost, LightGBM or scikit-learn, or a function of a DataFrame, "
        f"not {request.source}{hint}"
    )


def _describe(model: Any) -> str:
    """What messages call an object: the name of the function, or the class."""
    name = getattr(model, "__qualname__", None)
    return name if isinstance(name, str) else type(model).__name__
