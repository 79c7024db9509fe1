"""Frozen records whose fields are arrays with one dimension of columns: parts of them, and several as one.

Fields that are not arrays are those of the first record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Found = TypeVar("Found", bound=DataclassInstance)
else:
    Found = TypeVar("Found")

Where = slice | NDArray[np.bool_] | NDArray[np.int64]


def arrays_of(record: DataclassInstance) -> dict[str, NDArray[Any]]:
    """Field -> array."""
    found = ((field.name, getattr(record, field.name)) for field in fields(record))
    return {name: value for name, value in found if isinstance(value, np.ndarray)}


def subset(record: Found, where: Where, axis: int = 0) -> Found:
    """Some of the columns."""
    return replace(record, **{name: array[_index(where, axis)] for name, array in arrays_of(record).items()})


def concatenated(parts: Sequence[Found], axis: int = 0) -> Found:
    """Neighbouring columns as one."""
    names = arrays_of(parts[0])
    return replace(parts[0], **{name: np.concatenate([getattr(p, name) for p in parts], axis=axis) for name in names})


def replaced(record: Found, where: Where, others: Found, axis: int = 0) -> Found:
    """The same with some of the columns taken from another record, in order."""
    arrays = {name: array.copy() for name, array in arrays_of(record).items()}
    for name, array in arrays.items():
        array[_index(where, axis)] = getattr(others, name)
    return replace(record, **arrays)


def per_pair(values: NDArray[Any], outputs: int, columns: int) -> NDArray[Any]:
    """Values of outputs beside arrays of shape (outputs, columns).

    Runs of columns may have outputs of their own, as segments do: all outputs of the first, then those of the next.
    """
    if values.size == outputs:
        return values[:, None]
    return np.repeat(values.reshape(-1, outputs).T, columns * outputs // values.size, axis=1)


def _index(where: Where, axis: int) -> tuple[Any, ...]:
    return (..., where) if axis == -1 else (*[slice(None)] * axis, where)
