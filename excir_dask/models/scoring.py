"""A model as it travels to the workers, and the predictors that each process keeps open."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from excir_dask.errors import ModelError

Scored = tuple[tuple[str, ...], NDArray[Any]]
"""names of the outputs, and their values in the shape (outputs, rows)"""
Predictor = Callable[[Any], Scored]

# each has a function predictor(model) that opens the payload
KINDS = {
    "xgboost": "xgboost_models",
    "lightgbm": "lightgbm_models",
    "onnx": "onnx_models",
    "scikit-learn": "sklearn_models",
    "callable": "callables",
}
KEPT = 4
"""predictors that a process keeps open: one run has one model, but a worker serves several runs"""

_lock = threading.Lock()
_open: OrderedDict[tuple[Any, ...], Predictor] = OrderedDict()


@dataclass(frozen=True)
class Model:
    """What to score blocks of rows with: plain values and bytes, so that it pickles and fits into one task."""

    kind: str
    """one of KINDS"""
    payload: bytes = field(repr=False)
    """what the workers open: UBJ, LightGBM's text, ONNX, or a cloudpickle"""
    sha256: str
    """of the file as the user has it, with an ONNX model's weights in other files; of the payload of an object"""
    columns: tuple[str, ...] | None
    """columns that it takes, in its order; None: it takes whatever is explained"""
    categories: tuple[tuple[str, tuple[Any, ...] | None], ...]
    """categorical columns and the values they may have, None where the model knows only codes"""
    names: tuple[str, ...] | None
    """of its outputs; None where only calling it tells"""
    predict_type: str
    """"margin", "probability", "as exported" (ONNX) or "as returned" (callables)"""
    wants: str
    """"float32" or "float64": a matrix (rows, columns) with NaN for missing; "frame": a pandas DataFrame"""
    details: tuple[tuple[str, Any], ...]
    """for the manifest, such as the objective and the number of trees"""
    source: str = "the model"
    """what messages call it: the file's path, or the object's class"""
    options: tuple[tuple[str, Any], ...] = ()
    """what its kind alone understands; hashable, and equal to itself after pickling (no NaN)"""

    def score(self, data: Any) -> Scored:
        """Names of the outputs, and their values as a C-ordered array of shape (outputs, rows).

        ``data`` is what ``wants`` says. The predictor is opened once in each process; calls may come from
        several threads at once, and each uses one thread.
        """
        data = self._checked(data)
        if len(data) == 0 and self.names is not None:  # not every library takes an empty block
            return self.names, np.empty((len(self.names), 0))
        return open_predictor(self)(data)

    def _checked(self, data: Any) -> Any:
        if self.wants == "frame":
            if self.columns is None or tuple(data.columns) == self.columns:
                return data
            absent = [name for name in self.columns if name not in data.columns]
            if absent:
                raise ModelError(f"{self.source} takes column '{absent[0]}', which is not among {list(data.columns)}")
            return data[list(self.columns)]
        matrix = np.ascontiguousarray(data, dtype=self.wants)
        width = len(self.columns or ())
        if matrix.ndim != 2 or matrix.shape[1] != width:
            raise ModelError(f"{self.source} takes {width} columns, but the block has the shape {matrix.shape}")
        return matrix


def digest(content: bytes) -> str:
    """SHA-256 as hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def open_predictor(model: Model) -> Predictor:
    """The open predictor of a model, opened once in each process."""
    key = (
        model.kind, model.sha256, model.predict_type, model.columns, model.options,
        model.names, model.wants, model.categories,
    )  # fmt: skip
    with _lock:  # held while opening, so that threads that start together wait for one instead of opening many
        if key not in _open:
            _open[key] = import_module(f"excir_dask.models.{KINDS[model.kind]}").predictor(model)
            while len(_open) > KEPT:
                _open.popitem(last=False)
        _open.move_to_end(key)
        return _open[key]


def outputs_first(values: Any, rows: int, source: str) -> NDArray[Any]:
    """Values that came back from a model, of shape (rows,) or (rows, outputs), as numbers (outputs, rows)."""
    array = np.asarray(values)
    if array.dtype not in (np.float32, np.float64):
        try:
            array = _numbers(array) if array.dtype == object else array.astype(np.float64, casting="same_kind")
        except (TypeError, ValueError) as error:
            first = f"the first is {array.ravel()[0]!r}" if array.size else "there are none"
            raise ModelError(f"{source} returned {array.dtype} values, not numbers; {first}") from error
    matrix = array[:, None] if array.ndim == 1 else array
    if matrix.ndim != 2 or len(matrix) != rows or matrix.shape[1] == 0:
        expected = f"({rows},) or ({rows}, outputs)"
        raise ModelError(f"{source} returned an array of shape {array.shape} for {rows} rows; expected {expected}")
    return np.ascontiguousarray(matrix.T)


def _numbers(array: NDArray[Any]) -> NDArray[np.float64]:
    """Numbers that came as objects; pandas' marks of missing values become NaN."""
    import pandas as pd

    if any(isinstance(value, str | bytes) for value in array.ravel()):  # numpy would read numbers out of text
        raise TypeError("text")
    return np.where(pd.isna(array), np.nan, array).astype(np.float64)
