"""Models in the form that is sent to workers, and the predictors that each process keeps open."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from excir_dask.errors import ModelError
from excir_dask.models.kinds import KINDS

NamedOutputs = tuple[tuple[str, ...], NDArray[Any]]
"""names of the outputs, and their values of shape (outputs, rows)"""
Predictor = Callable[[Any], NamedOutputs]

MAX_OPEN_PREDICTORS = 4
"""per process: a run has one model, but a worker serves several runs"""

_lock = threading.Lock()
_open: OrderedDict[tuple[Any, ...], Predictor] = OrderedDict()


@dataclass(frozen=True)
class Model:
    """A model that scores blocks of rows: plain values and bytes, so it pickles and fits into one task.

    A function also stays in this process as it is: threads call it itself, only other processes get a copy.
    """

    kind: str
    """key of KINDS"""
    payload: bytes = field(repr=False)
    """what workers open: UBJ, LightGBM's text, ONNX, or a cloudpickle; empty if ``unsendable``"""
    sha256: str | None
    """of the user's file, with the weight files of an ONNX model; of the payload for an object; None without one"""
    columns: tuple[str, ...] | None
    """its inputs, in order; None if it takes whatever is explained"""
    categories: tuple[tuple[str, tuple[Any, ...] | None], ...]
    """categorical columns and their values; None if the model knows only codes"""
    names: tuple[str, ...] | None
    """of its outputs; None if they are known only after a call"""
    predict_type: str
    """"margin", "probability", "as exported" (ONNX) or "as returned" (callables)"""
    input_type: str
    """"float32" or "float64": a matrix (rows, columns) with NaN for missing; "frame": a pandas DataFrame"""
    details: tuple[tuple[str, Any], ...]
    """for the manifest, such as the objective and the number of trees"""
    source: str = "the model"
    """what messages call it: the path of the file, or the class of the object"""
    options: tuple[tuple[str, Any], ...] = ()
    """for its kind alone; hashable, and equal to itself after pickling (no NaN)"""
    function: Any = field(default=None, repr=False, compare=False)
    """the user's own function, in the process that loaded it; None elsewhere"""
    unsendable: str = ""
    """why it cannot be sent to other processes"""

    def __getstate__(self) -> dict[str, Any]:
        self.check_sendable()
        return {**self.__dict__, "function": None}

    def check_sendable(self) -> None:
        """Refuse a model that only this process can call."""
        if self.unsendable:
            raise ModelError(self.unsendable)

    def score(self, data: Any) -> NamedOutputs:
        """Names of the outputs, and their values as a C-ordered array of shape (outputs, rows).

        ``data`` is of the ``input_type``. Each process opens the predictor once. Several threads may call it at the
        same time; each call uses one thread.
        """
        data = self._checked(data)
        if len(data) == 0 and self.names is not None:  # some libraries refuse an empty block
            return self.names, np.empty((len(self.names), 0))
        return open_predictor(self)(data)

    def _checked(self, data: Any) -> Any:
        if self.input_type == "frame":
            if self.columns is None or tuple(data.columns) == self.columns:
                return data
            missing = [name for name in self.columns if name not in data.columns]
            if missing:
                raise ModelError(f"{self.source} takes column '{missing[0]}', which is not among {list(data.columns)}")
            return data[list(self.columns)]
        matrix = np.ascontiguousarray(data, dtype=self.input_type)
        width = len(self.columns or ())
        if matrix.ndim != 2 or matrix.shape[1] != width:
            raise ModelError(f"{self.source} takes {width} columns, but the block has the shape {matrix.shape}")
        return matrix


def digest(content: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def open_predictor(model: Model) -> Predictor:
    """The predictor of a model, opened once per process."""
    if model.function is not None:  # not by its digest: another function with the same pickle is another one
        predictor: Predictor = KINDS[model.kind].load().predictor(model)
        return predictor
    key = (
        model.kind, model.sha256, model.predict_type, model.columns, model.options,
        model.names, model.input_type, model.categories,
    )  # fmt: skip
    with _lock:  # while opening too, so that threads that start together open one predictor, not many
        if key not in _open:
            _open[key] = KINDS[model.kind].load().predictor(model)
            while len(_open) > MAX_OPEN_PREDICTORS:
                _open.popitem(last=False)
        _open.move_to_end(key)
        return _open[key]


def outputs_first(values: Any, rows: int, source: str) -> NDArray[Any]:
    """A model's return value, of shape (rows,) or (rows, outputs), as numbers of shape (outputs, rows)."""
    array = np.asarray(values)
    if array.dtype not in (np.float32, np.float64):
        try:
            array = _numbers(array) if array.dtype == object else array.astype(np.float64, casting="same_kind")
        except (TypeError, ValueError) as error:
            first = f", for instance {array.ravel()[0]!r}" if array.size else ""
            raise ModelError(f"{source} returned {array.dtype} values{first}; expected numbers") from error
    matrix = array[:, None] if array.ndim == 1 else array
    if matrix.ndim != 2 or len(matrix) != rows or matrix.shape[1] == 0:
        expected = f"({rows},) or ({rows}, outputs)"
        raise ModelError(f"{source} returned an array of shape {array.shape} for {rows} rows; expected {expected}")
    return np.ascontiguousarray(matrix.T)


def _numbers(array: NDArray[Any]) -> NDArray[np.float64]:
    """Numbers in an object array; the missing values of pandas become NaN."""
    import pandas as pd

    if any(isinstance(value, str | bytes) for value in array.ravel()):  # numpy would parse numbers in text
        raise TypeError("text")
    return np.where(pd.isna(array), np.nan, array).astype(np.float64)
