"""Frames with categorical columns as the matrix of codes that tree libraries work on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from excir_dask.errors import ModelError

if TYPE_CHECKING:
    import pandas as pd

    from excir_dask.models.scoring import Model


def encode(model: Model, frame: pd.DataFrame, dtype: str) -> NDArray[Any]:
    """The matrix (rows, columns) of a frame: numbers as they are, categories as the model's codes, missing as NaN."""
    known = dict(model.categories)
    columns = model.columns or ()
    matrix = np.empty((len(frame), len(columns)), dtype)
    for place, name in enumerate(columns):
        values = known.get(name)
        if values is None:
            matrix[:, place] = _numbers(frame[name], name, model.source)
        else:
            matrix[:, place] = _codes(frame[name], name, values, model.source)
    return matrix


def _codes(column: pd.Series, name: str, values: tuple[Any, ...], source: str) -> NDArray[np.float64]:
    import pandas as pd

    # each distinct value is looked up once; comparing as objects keeps 1 and "1" apart in every pandas version
    positions, found = pd.factorize(column)
    distinct = np.asarray(found, dtype=object)
    codes = pd.Index(values, dtype=object).get_indexer(pd.Index(distinct, dtype=object)).astype(np.float64)
    if (codes < 0).any():
        unknown = distinct[codes < 0][0]
        shown = ", ".join(repr(value) for value in values[:8]) + (", …" if len(values) > 8 else "")
        raise ModelError(
            f"{source} does not know the value {unknown!r} of column '{name}'; it was trained with {shown}: "
            "leave such rows out, or make the values the same as in training"
        )
    return np.append(codes, np.nan)[positions]  # factorize marks missing values by -1: the last


def _numbers(column: pd.Series, name: str, source: str) -> NDArray[np.float64]:
    try:
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise ModelError(
            f"{source} takes column '{name}' as numbers, but it holds {column.dtype} values; convert them first"
        ) from error
