"""Read model files and recognise their kind."""

from __future__ import annotations

from pathlib import Path

from excir_dask.errors import ModelError
from excir_dask.models.kinds import KINDS, ModelKind, known_files
from excir_dask.models.magic import describe_content


def read_model_file(path: Path) -> bytes:
    """The content of a model file."""
    try:
        if not (path.is_file() or path.is_dir()) and path.exists():  # reading a pipe may never end
            raise ModelError(f"'{path}' is a pipe, a socket or a device; save the model in a file, and name that")
        content = path.read_bytes()
    except FileNotFoundError as error:
        hint = "; models are read from local files: download it first" if ":/" in str(path) else ""
        raise ModelError(f"the model file '{path}' does not exist{hint}; expected {known_files()}") from error
    except IsADirectoryError as error:
        inside = sorted(entry.name for entry in path.iterdir())[:5]
        raise ModelError(f"'{path}' is a directory ({', '.join(inside) or 'empty'}); name the model file") from error
    except OSError as error:
        raise ModelError(f"the model file '{path}' cannot be read: {error.strerror or error}") from error
    if not content:
        raise ModelError(f"the model file '{path}' is empty; expected {known_files()}")
    return content


def kind_of_file(path: Path, content: bytes) -> ModelKind:
    """The kind of a model file that is not a pickle."""
    for kind in KINDS.values():
        if kind.is_file(path, content):
            return kind
    raise ModelError(
        f"'{path}' is not a model file: it looks like {describe_content(content)}; expected {known_files()}"
    )
