"""Encode frames with categorical columns as the matrices that tree libraries take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from excir_dask.errors import ModelError

if TYPE_CHECKING:
    import pandas as pd

    from excir_dask.models.scoring import Model


def encode(model: Model, frame: pd.DataFrame, dtype: str) -> NDArray[Any]:
    """A frame as a matrix (rows, columns): categories become the model's codes, and missing values NaN."""
    known = dict(model.categories)
    columns = model.columns or ()
    matrix = np.empty((len(frame), len(columns)), dtype)
    for index, name in enumerate(columns):
        values = known.get(name)
        if values is None:
            matrix[:, index] = _numbers(frame[name], name, model.source)
        else:
            matrix[:, index] = _codes(frame[name], name, values, model.source)
    return matrix


def _codes(column: pd.Series, name: str, values: tuple[Any, ...], source: str) -> NDArray[np.float64]:
    import pandas as pd

    # looks up each distinct value once; as objects, 1 and "1" differ in every pandas version
    positions, uniques = pd.factorize(column)
    distinct = np.asarray(uniques, dtype=object)
    codes = pd.Index(values, dtype=object).get_indexer(pd.Index(distinct, dtype=object)).astype(np.float64)
    if (codes < 0).any():
        unknown = distinct[codes < 0][0]
        shown = ", ".join(repr(value) for value in values[:8]) + (", …" if len(values) > 8 else "")
        raise ModelError(
            f"{source} does not know the value {unknown!r} of column '{name}'; it was trained with {shown}; "
            "leave such rows out, or write the values as in training"
        )
    return np.append(codes, np.nan)[positions]  # factorize codes missing values as -1: the last


def _numbers(column: pd.Series, name: str, source: str) -> NDArray[np.float64]:
    try:
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise ModelError(
            f"{source} needs numbers in column '{name}', but it has dtype {column.dtype}; convert it first"
        ) from error
