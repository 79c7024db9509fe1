"""States as bytes that cannot run code when they are read back: JSON for the structure, raw numbers for the arrays.

A file is a line that names the format, the length of the JSON text, that text, the arrays one behind the other, and a
sha256 of it all. Only the kinds of states listed here come back, and every value comes back with the type it had.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from excir_dask.errors import DataError
from excir_dask.graph.slices import Asked, SliceSummary
from excir_dask.kernels.categories import Categories, CategoryCounts
from excir_dask.kernels.centers import Centers, ColumnStats
from excir_dask.kernels.refine import Vicinity
from excir_dask.kernels.rowsample import RowSample
from excir_dask.kernels.summaries import ColumnSummary
from excir_dask.kernels.sums import Sums
from excir_dask.kernels.trim import TrimmedSums
from excir_dask.lake.blocks import ModelOutputs, RowCounts

MAGIC = b"excir state 2\n"

KINDS: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        Asked, SliceSummary, ColumnSummary, CategoryCounts, RowSample, RowCounts, Sums, TrimmedSums, Vicinity,
        ModelOutputs, Centers, ColumnStats, Categories,
    )
}  # fmt: skip

_DTYPES = ("<f4", "<f8", "<i4", "<i8", "<u8", "|b1")


def freeze(state: Any) -> bytes:
    """A state as bytes; equal states give equal bytes.

    >>> thaw(freeze((1, "two", np.array([3.0]), None)))
    (1, 'two', array([3.]), None)
    """
    arrays = bytearray()
    text = json.dumps(_plain(state, arrays)).encode()
    body = b"".join([MAGIC, len(text).to_bytes(8, "little"), text, arrays])
    return body + hashlib.sha256(body).digest()


def thaw(content: bytes) -> Any:
    """The state; bytes that are not a whole one, or of another version, are a DataError."""
    body, digest = content[:-32], content[-32:]
    if not body.startswith(MAGIC) or hashlib.sha256(body).digest() != digest:
        raise DataError("it is damaged, cut off or of another version")
    start = len(MAGIC) + 8
    stop = start + int.from_bytes(body[len(MAGIC) : start], "little")
    try:
        return _state(json.loads(body[start:stop]), memoryview(body)[stop:])
    except (ValueError, TypeError, KeyError, RecursionError) as error:  # fields of another version, or a crafted file
        raise DataError(f"it does not hold a state: {type(error).__name__}: {error}") from error


def _plain(value: Any, arrays: bytearray) -> Any:
    if isinstance(value, np.ndarray):
        if value.dtype.str not in _DTYPES:
            raise TypeError(f"arrays of {value.dtype} are not part of states")
        found = {"array": value.dtype.str, "shape": list(value.shape), "at": len(arrays)}
        arrays += np.ascontiguousarray(value).tobytes()
        return found
    if is_dataclass(value) and type(value).__name__ in KINDS:
        content = {field.name: _plain(getattr(value, field.name), arrays) for field in fields(value)}
        return {"kind": type(value).__name__, "fields": content}
    if isinstance(value, tuple | list):
        return {"items": [_plain(item, arrays) for item in value]}
    if isinstance(value, np.bool_ | np.number) and not isinstance(value, np.complexfloating):
        return {"scalar": value.dtype.str, "value": _plain(value.item(), arrays)}
    if isinstance(value, float):
        return {"float": value.hex()}
    if value is None or isinstance(value, bool | int | str):
        return value
    raise TypeError(f"{type(value).__name__} is not part of states")


def _state(value: Any, raw: memoryview) -> Any:
    if not isinstance(value, dict):
        return value
    if "array" in value:
        if value["array"] not in _DTYPES:
            raise DataError(f"a state holds an array of {value['array']}")
        shape = tuple(value["shape"])
        count = int(np.prod(shape, dtype=np.int64))
        return np.frombuffer(raw, value["array"], count, value["at"]).reshape(shape).copy()
    if "kind" in value:
        content = {name: _state(item, raw) for name, item in value["fields"].items()}
        return KINDS[value["kind"]](**content)
    if "scalar" in value:
        return np.dtype(value["scalar"]).type(_state(value["value"], raw))
    if "items" in value:
        return tuple(_state(item, raw) for item in value["items"])
    return float.fromhex(value["float"])
