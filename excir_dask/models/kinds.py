"""The kinds of models. A new one is a module like :mod:`lightgbm_models` and an entry of ``KINDS``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from excir_dask.models.magic import is_unknown_binary
from excir_dask.models.per_process import PerProcess


def _never(*_: Any) -> bool:
    return False


@dataclass(frozen=True)
class ModelKind:
    """How to recognise a model, and where to load it."""

    module: str
    """module of this package with ``predictor(model)``, and ``from_file`` or ``from_object`` for what it recognises"""
    is_file: Callable[[Path, bytes], bool] = _never
    """recognises a file by its name and content"""
    is_object: Callable[[Any], bool] = _never
    """recognises a model in memory"""
    file: str | None = None
    """what messages call a file of this kind"""

    def load(self) -> Any:
        """Import the module. It imports the model's library only when a model needs it."""
        return import_module(f"excir_dask.models.{self.module}")


def packages(model: Any) -> set[str]:
    """Packages of an object's classes: enough to recognise its library without importing it."""
    return {part.__module__.split(".")[0] for part in type(model).__mro__}


def _is_xgboost_file(path: Path, content: bytes) -> bool:
    return content.lstrip().startswith(b"{")  # JSON and UBJSON


def _is_lightgbm_file(path: Path, content: bytes) -> bool:
    return content.startswith((b"tree\n", b"tree\r\n"))


def _is_onnx_file(path: Path, content: bytes) -> bool:
    # ONNX has no signature; the first field of a ModelProto is its version
    return content.startswith(b"\x08") or (path.suffix.lower() == ".onnx" and is_unknown_binary(content))


def _is_estimator(model: Any) -> bool:
    return hasattr(model, "predict") and (hasattr(model, "n_features_in_") or hasattr(model, "feature_names_in_"))


def _is_function(model: Any) -> bool:
    return (callable(model) and not isinstance(model, type)) or isinstance(model, PerProcess)


KINDS: dict[str, ModelKind] = {
    "xgboost": ModelKind(
        "xgboost_models",
        is_file=_is_xgboost_file,
        is_object=lambda model: "xgboost" in packages(model),
        file="an XGBoost model (.ubj, .json)",
    ),
    "lightgbm": ModelKind(
        "lightgbm_models",
        is_file=_is_lightgbm_file,
        is_object=lambda model: "lightgbm" in packages(model),
        file="a LightGBM model (text)",
    ),
    "onnx": ModelKind("onnx_models", is_file=_is_onnx_file, file="an ONNX model (.onnx)"),
    "scikit-learn": ModelKind("sklearn_models", is_object=_is_estimator),
    "callable": ModelKind("callables", is_object=_is_function),
}
"""the first kind that recognises a file or object loads it"""


def known_files() -> str:
    """The kinds of files, for messages.

    >>> known_files()
    'an XGBoost model (.ubj, .json), a LightGBM model (text) or an ONNX model (.onnx)'
    """
    *others, last = [kind.file for kind in KINDS.values() if kind.file]
    return f"{', '.join(others)} or {last}"
