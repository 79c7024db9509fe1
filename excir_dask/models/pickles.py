"""Pickles: files that users trust, and objects on their way to workers."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

from excir_dask.errors import ModelError

_SUFFIXES = (".pkl", ".pickle", ".joblib", ".sav")

_SIGNATURES = (b"\x80", b"ccopy_reg\n", b"x\x01", b"x\x5e", b"x\x9c", b"x\xda")
"""of pickles, and of those that joblib compressed with zlib"""


def is_pickle_file(path: Path, content: bytes) -> bool:
    return path.suffix.lower() in _SUFFIXES or content.startswith(_SIGNATURES)


def load_pickle_file(path: Path, content: bytes, allow: bool) -> Any:
    """The object in a pickle or joblib file, if the caller allows its code to run."""
    if not allow:
        raise ModelError(
            f"'{path}' is a pickle, and loading it would run any code in it; convert it where it was made: "
            'XGBoost model.save_model("model.ubj"), LightGBM model.booster_.save_model("model.txt"), '
            "scikit-learn skl2onnx.to_onnx(...), or skops.io.dump and pass the loaded object, "
            "or pass model.decision_function in Python; if you trust the file, allow pickles "
            "(allow_pickle=True, --allow-pickle)"
        )
    try:
        try:
            import joblib
        except ImportError:
            return pickle.loads(content)
        return joblib.load(io.BytesIO(content))  # reads plain and compressed pickles too
    except Exception as error:
        raise ModelError(
            f"'{path}' cannot be unpickled: {type(error).__name__}: {error}; use the library versions that wrote it, "
            "or convert it there"
        ) from error


def dump_object(model: Any, source: str) -> bytes:
    """An object as bytes; functions of scripts and notebooks are pickled by value."""
    import cloudpickle

    try:
        return bytes(cloudpickle.dumps(model))
    except Exception as error:
        raise ModelError(
            f"{source} cannot be pickled, so it cannot be sent to workers: {type(error).__name__}: {error}; "
            "create locks, sessions and open files inside the function, or run on the threads of this machine"
        ) from error


def load_object(payload: bytes, source: str) -> Any:
    """An object from the bytes that :func:`dump_object` made in the client process."""
    try:
        return pickle.loads(payload)
    except Exception as error:
        raise ModelError(
            f"{source} cannot be unpickled on the worker: {type(error).__name__}: {error}; "
            "install the packages that it imports there"
        ) from error
