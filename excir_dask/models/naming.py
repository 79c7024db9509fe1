"""Names of a model's columns and outputs, from the model or from what was asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from excir_dask.errors import ModelError


@dataclass(frozen=True)
class Asked:
    """What load_model was asked for, beside the model itself."""

    source: str
    """what messages call the model"""
    sha256: str | None
    """of the file; None where an object was given"""
    predict_type: str
    columns: tuple[str, ...] | None


def numbered(count: int) -> tuple[str, ...]:
    """Names for outputs that have none.

    >>> numbered(3)
    ('0', '1', '2')
    """
    return tuple(str(k) for k in range(count))


def class_names(classes: Any, count: int) -> tuple[str, ...] | None:
    """Names of ``count`` outputs after the classes: one output of two classes is the second, the positive one.

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


def settle_columns(known: tuple[str, ...] | None, count: int | None, asked: Asked) -> tuple[str, ...]:
    """The columns of a model: those that it names, or those given where it has no names."""
    given, source = asked.columns, asked.source
    if given is not None and len(set(given)) < len(given):
        raise ModelError(f"model_columns names a column twice: {', '.join(given)}")
    if known is None:
        if given is None:
            number = "its" if count is None else f"the {count}"
            raise ModelError(
                f"{source} does not name its columns; name them with model_columns (--model-columns): "
                f"{number} names in training order"
            )
        if count is not None and len(given) != count:
            raise ModelError(
                f"{source} takes {count} columns, but model_columns names {len(given)}: {', '.join(given)}"
            )
        return given
    if given is not None and given != known:
        place = next((k for k, (a, b) in enumerate(zip(known, given, strict=False)) if a != b), None)
        difference = (
            f"it takes {len(known)} columns and model_columns names {len(given)}"
            if place is None
            else f"column {place} is '{known[place]}' for it and '{given[place]}' in model_columns"
        )
        raise ModelError(f"{source} names its columns itself: {difference}; leave model_columns out")
    return known
