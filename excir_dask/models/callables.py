"""Functions of a pandas DataFrame as models."""

from __future__ import annotations

from typing import Any

from excir_dask.errors import ModelError
from excir_dask.models.naming import LoadRequest, numbered_names, resolve_columns
from excir_dask.models.per_process import PerProcess
from excir_dask.models.pickles import dump_object, load_object
from excir_dask.models.scoring import Model, NamedOutputs, Predictor, digest, outputs_first


def from_object(function: Any, request: LoadRequest) -> Model:
    """A model from a function. The object of a bound method such as ``model.predict_proba`` may name the columns."""
    owner = function if hasattr(function, "feature_names_in_") else getattr(function, "__self__", None)
    known = getattr(owner, "feature_names_in_", None)
    columns = request.columns
    if known is not None or columns is not None:
        columns = resolve_columns(None if known is None else tuple(str(name) for name in known), None, request)
    payload, unsendable = b"", ""
    try:
        payload = dump_object(function, request.source)
    except ModelError as error:  # threads of this process can call it all the same
        if isinstance(function, PerProcess):
            raise
        unsendable = str(error)
    return Model(
        kind="callable",
        payload=payload,
        sha256=request.sha256 or (None if unsendable else digest(payload)),
        columns=columns,
        categories=(),
        names=None,
        predict_type="as returned",
        input_type="frame",
        details=(("function", request.source),),
        source=request.source,
        function=None if isinstance(function, PerProcess) else function,
        unsendable=unsendable,
    )


def predictor(model: Model) -> Predictor:
    """The function itself where it is, or else the copy in the payload."""
    function = load_object(model.payload, model.source) if model.function is None else model.function
    if isinstance(function, PerProcess):
        function = _made(function, model.source)

    def score(frame: Any) -> NamedOutputs:
        try:
            returned = function(frame)
        except Exception as error:
            hint = "; it gets the numeric columns: name those that it takes, text included, in model_columns"
            raise ModelError(
                f"{model.source} raised {type(error).__name__} on a DataFrame of {len(frame)} rows with the columns "
                f"{', '.join(map(str, list(frame.columns)[:8]))}: {error}{hint if model.columns is None else ''}"
            ) from error
        return named_outputs(_in_row_order(returned, frame, model.source), len(frame), model.source)

    return score


def _made(factory: PerProcess, source: str) -> Any:
    try:
        function = factory.make()
    except Exception as error:
        raise ModelError(f"{source} could not be made here: {type(error).__name__}: {error}") from error
    if not callable(function):
        raise ModelError(f"{source} made {type(function).__name__}; it must return a function of a DataFrame")
    return function


def _in_row_order(returned: Any, frame: Any, source: str) -> Any:
    """The return value in the order of the block's rows; masked values become NaN."""
    import numpy as np
    import pandas as pd

    if isinstance(returned, np.ma.MaskedArray):
        return np.where(np.ma.getmaskarray(returned), np.nan, np.ma.getdata(returned).astype(np.float64))
    if (
        not isinstance(returned, pd.Series | pd.DataFrame)
        or returned.index.equals(frame.index)
        or len(returned) != len(frame)
    ):
        return returned
    if returned.index.equals(pd.RangeIndex(len(frame))):  # a new index: the rows are in order
        return returned
    if returned.index.is_unique and frame.index.is_unique and frame.index.isin(returned.index).all():
        return returned.reindex(frame.index)
    raise ModelError(f"{source} returned rows with another index than its argument; return them in the same order")


def named_outputs(returned: Any, rows: int, source: str) -> NamedOutputs:
    """Names and values of the outputs, from an array, Series or DataFrame."""
    import pandas as pd

    if not hasattr(returned, "__array__") and not isinstance(returned, list | tuple):
        raise ModelError(
            f"{source} returned {type(returned).__name__}; expected an array, Series or DataFrame of {rows} rows"
        )
    values = outputs_first(returned, rows, source)
    if isinstance(returned, pd.DataFrame):
        names = tuple(str(name) for name in returned.columns)
    elif isinstance(returned, pd.Series) and returned.name is not None:
        names = (str(returned.name),)
    else:
        names = ("output",) if len(values) == 1 else numbered_names(len(values))
    if len(set(names)) < len(names):
        raise ModelError(f"{source} returned outputs with the same name: {', '.join(names)}; rename one")
    return names, values
