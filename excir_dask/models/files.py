"""Model files: reading them, telling what they are, and the rule about pickles."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

from excir_dask.errors import ModelError

PICKLES = (".pkl", ".pickle", ".joblib", ".sav")
KNOWN = "an XGBoost model (.ubj, .json), a LightGBM model (text) or an ONNX model (.onnx)"

# how files begin that are given by mistake
_PICKLED = (b"\x80", b"ccopy_reg\n", b"x\x01", b"x\x5e", b"x\x9c", b"x\xda")
"""how pickles begin, and those that joblib packs with zlib"""

_BEGINNINGS = (
    (b"PAR1", "a Parquet file"),
    (b"ARROW1", "an Arrow file"),
    (b"\x89PNG", "a PNG image"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"%PDF", "a PDF file"),
    (b"CBM1", "a CatBoost model; save it with format='onnx'"),
    (b"binf", "an XGBoost model in the old binary format; load it with the version that saved it and save it as .ubj"),
    (b"bs64", "an XGBoost model in the old text format; load it with the version that saved it and save it as .ubj"),
    (b"PK\x03\x04", "a zip archive; a skops file is loaded with skops.io.load and passed as an object"),
    (b"\x1f\x8b", "a gzip archive; unpack it first"),
    (b"<", "HTML or XML"),
    (b"version https://git-lfs", "a pointer of git-lfs; run git lfs pull"),
)


def read_model_file(path: Path) -> bytes:
    """All bytes of a model file."""
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        hint = "; a model must be a file of this machine: download it first" if ":/" in str(path) else ""
        raise ModelError(f"there is no model file '{path}'{hint}; expected {KNOWN}") from error
    except IsADirectoryError as error:
        inside = sorted(entry.name for entry in path.iterdir())[:5]
        raise ModelError(f"'{path}' is a directory ({', '.join(inside) or 'empty'}); name the model's file") from error
    except OSError as error:
        raise ModelError(f"the model file '{path}' cannot be read: {error.strerror or error}") from error
    if not content:
        raise ModelError(f"the model file '{path}' is empty; expected {KNOWN}")
    return content


def recognise(path: Path, content: bytes) -> str:
    """The kind of a model file by its bytes, or "pickle"."""
    if path.suffix.lower() in PICKLES or content.startswith(_PICKLED):
        return "pickle"
    if content.startswith((b"tree\n", b"tree\r\n")):
        return "lightgbm"
    if content.lstrip().startswith(b"{"):
        return "xgboost"
    # ONNX has no magic; field 1 of a ModelProto, its version, comes first
    if content.startswith(b"\x08") or (path.suffix.lower() == ".onnx" and looks_like(content).startswith("binary")):
        return "onnx"
    raise ModelError(f"'{path}' is no model that can be used: it looks like {looks_like(content)}; expected {KNOWN}")


def looks_like(content: bytes) -> str:
    """A few words on what a file is that is not a model.

    >>> looks_like(b"PAR1....")
    'a Parquet file'
    """
    for beginning, words in _BEGINNINGS:
        if content.startswith(beginning):
            return words
    start = content[:32]
    if all(byte in (9, 10, 13) or 32 <= byte < 127 for byte in start):
        return f"text that begins {start.decode('ascii')!r}"
    return f"binary data that begins {start[:8].hex(' ')}"


def unpickle(path: Path, content: bytes, allow: bool) -> Any:
    """The object in a pickle or joblib file, only where the caller allows that its code runs."""
    if not allow:
        raise ModelError(
            f"'{path}' is a pickle, and loading it would run whatever code is in it; convert it where it was made: "
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
            f"'{path}' cannot be unpickled: {type(error).__name__}: {error}; use the versions of the libraries "
            "that wrote it, or convert it there"
        ) from error
