"""Functions of a pandas DataFrame as models, and what they may return."""

from __future__ import annotations

import pickle
from typing import Any

from excir_dask.errors import ModelError
from excir_dask.models.naming import Asked, numbered, settle_columns
from excir_dask.models.scoring import Model, Predictor, Scored, digest, outputs_first


def from_object(function: Any, asked: Asked) -> Model:
    """A model from a function; the model of a bound method such as ``model.predict_proba`` may name the columns."""
    owner = function if hasattr(function, "feature_names_in_") else getattr(function, "__self__", None)
    found = getattr(owner, "feature_names_in_", None)
    columns = asked.columns
    if found is not None or columns is not None:
        columns = settle_columns(None if found is None else tuple(str(name) for name in found), None, asked)
    payload = to_pickle(function, asked.source)
    return Model(
        kind="callable",
        payload=payload,
        sha256=asked.sha256 or digest(payload),
        columns=columns,
        categories=(),
        names=None,
        predict_type="as returned",
        wants="frame",
        details=(("function", asked.source),),
        source=asked.source,
    )


def predictor(model: Model) -> Predictor:
    """Open the payload: a function from a block to the outputs."""
    function = from_pickle(model)

    def score(frame: Any) -> Scored:
        try:
            found = function(frame)
        except Exception as error:
            raise ModelError(
                f"{model.source} raised {type(error).__name__} on a DataFrame of {len(frame)} rows with the columns "
                f"{', '.join(map(str, list(frame.columns)[:8]))}: {error}"
            ) from error
        return named_outputs(_in_order(found, frame, model.source), len(frame), model.source)

    return score


def _in_order(found: Any, frame: Any, source: str) -> Any:
    """Rows as the block has them: a Series or DataFrame may come back in another order; masked values are missing."""
    import numpy as np
    import pandas as pd

    if isinstance(found, np.ma.MaskedArray):
        return np.where(np.ma.getmaskarray(found), np.nan, np.ma.getdata(found).astype(np.float64))
    if not isinstance(found, pd.Series | pd.DataFrame) or found.index.equals(frame.index) or len(found) != len(frame):
        return found
    if found.index.equals(pd.RangeIndex(len(frame))):  # made anew: in the order of the rows
        return found
    if found.index.is_unique and frame.index.is_unique and frame.index.isin(found.index).all():
        return found.reindex(frame.index)
    raise ModelError(f"{source} returned rows with another index than the block's; return them in its order")


def named_outputs(found: Any, rows: int, source: str) -> Scored:
    """Names and values (outputs, rows) of an array, Series or DataFrame that came back for a block."""
    import pandas as pd

    if not hasattr(found, "__array__") and not isinstance(found, list | tuple):
        raise ModelError(
            f"{source} returned {type(found).__name__}; expected an array, Series or DataFrame of {rows} rows"
        )
    values = outputs_first(found, rows, source)
    if isinstance(found, pd.DataFrame):
        names = tuple(str(name) for name in found.columns)
    elif isinstance(found, pd.Series) and found.name is not None:
        names = (str(found.name),)
    else:
        names = ("output",) if len(values) == 1 else numbered(len(values))
    if len(set(names)) < len(names):
        raise ModelError(f"{source} returned two outputs of one name: {', '.join(names)}")
    return names, values


def to_pickle(model: Any, source: str) -> bytes:
    """The object as bytes; functions of scripts and notebooks go along by value."""
    import cloudpickle

    try:
        return bytes(cloudpickle.dumps(model))
    except Exception as error:
        raise ModelError(
            f"{source} cannot be pickled, and so not sent to workers: {type(error).__name__}: {error}; "
            "create locks, sessions and open files inside the function"
        ) from error


def from_pickle(model: Model) -> Any:
    """The object again, made by :func:`to_pickle` in the process that asked for the run."""
    try:
        return pickle.loads(model.payload)
    except Exception as error:
        raise ModelError(
            f"{model.source} cannot be unpickled on the worker: {type(error).__name__}: {error}; "
            "install there what it imports"
        ) from error
