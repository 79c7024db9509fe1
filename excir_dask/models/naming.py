"""Names of a model's columns and outputs, from the model or from the user."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from excir_dask.errors import ModelError


@dataclass(frozen=True)
class LoadRequest:
    """The arguments of load_model, except the model itself."""

    source: str
    """what messages call the model"""
    sha256: str | None
    """of the file; None for an object"""
    predict_type: str
    columns: tuple[str, ...] | None
    folder: Path = Path()
    """of the file, in which its other files are"""


def matched_columns(wanted: Sequence[str], lake: Collection[str]) -> tuple[str, ...]:
    """The columns of a model under the lake's names.

    skl2onnx and LightGBM write ``_`` for characters that they do not take. A name that the lake lacks stands for the
    one column that becomes it in that way.

    >>> matched_columns(["sepal_length__cm_", "age"], ["sepal length (cm)", "age"])
    ('sepal length (cm)', 'age')
    """
    found: dict[str, list[str]] = {}
    for name in lake:
        if name not in wanted:
            for replaced in (r"\W", r"\s"):
                found.setdefault(re.sub(replaced, "_", name, flags=re.ASCII), []).append(name)
    columns = []
    for name in wanted:
        candidates = set(found.get(name, ())) if name not in lake else set()
        columns.append(candidates.pop() if len(candidates) == 1 else name)
    return tuple(columns)


def numbered_names(count: int) -> tuple[str, ...]:
    """Names for outputs that have none.

    >>> numbered_names(3)
    ('0', '1', '2')
    """
    return tuple(str(k) for k in range(count))


def class_names(classes: Any, count: int) -> tuple[str, ...] | None:
    """Names of ``count`` outputs from the classes; a single output of two classes is the second, positive one.

    >>> class_names(["no", "yes"], 1)
    ('yes',)
    >>> class_names(["no", "yes"], 3) is None
    True
    """
    names = tuple(str(name) for name in classes)
    if len(set(names)) < len(names):
        return None
    if count == 1 and len(names) == 2:
        return names[1:]
    return names if len(names) == count else None


def resolve_columns(known: tuple[str, ...] | None, count: int | None, request: LoadRequest) -> tuple[str, ...]:
    """The columns of a model: those that it names, or those given if it names none."""
    given, source = request.columns, request.source
    if given is not None and len(set(given)) < len(given):
        raise ModelError(f"model_columns names a column twice: {', '.join(given)}")
    if known is None:
        if given is None:
            number = "its" if count is None else f"the {count}"
            raise ModelError(
                f"{source} does not name its columns; pass model_columns (--model-columns): "
                f"{number} names in training order"
            )
        if count is not None and len(given) != count:
            raise ModelError(
                f"{source} takes {count} columns, but model_columns names {len(given)}: {', '.join(given)}"
            )
        return given
    if given is not None and given != known:
        index = next((k for k, (a, b) in enumerate(zip(known, given, strict=False)) if a != b), None)
        difference = (
            f"it takes {len(known)} columns and model_columns names {len(given)}"
            if index is None
            else f"column {index} is '{known[index]}' in the model but '{given[index]}' in model_columns"
        )
        raise ModelError(f"{source} names its own columns: {difference}; leave model_columns out")
    return known
