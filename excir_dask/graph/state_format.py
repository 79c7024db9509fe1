"""States as bytes that cannot run code when they are read back: JSON for the structure, packed numbers for the arrays.

A file has a line that names the format, the length of the JSON text, that text, the arrays one after the other, and a
sha256 of it all. Only the kinds of states listed here come back. Each kind has a version of its own, and every value
must have the type, and every array the dimensions, that its field declares: what comes back can be merged.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from excir_dask.errors import DataError, InternalError
from excir_dask.graph.category_scan import SpanCategories
from excir_dask.graph.lake_state import LakeState
from excir_dask.graph.packing import DTYPES, pack, unpack
from excir_dask.graph.pass_scan import PassColumns, PassRequest, PassSpan, References
from excir_dask.graph.pilot_scan import PilotColumns, PilotSpan
from excir_dask.graph.segment_scan import PilotRows, SegmentNames, SegmentReferences
from excir_dask.graph.segment_states import SegmentStates
from excir_dask.graph.states import SliceState
from excir_dask.kernels.atoms import Atoms
from excir_dask.kernels.categories import Categories, CategoryCounts
from excir_dask.kernels.reference import Reference
from excir_dask.kernels.rowsample import RowSample
from excir_dask.kernels.segment_state import SegmentColumns, SegmentSpans
from excir_dask.kernels.state import ColumnState, PairState, State
from excir_dask.kernels.summaries import ColumnSummary
from excir_dask.lake.blocks import ModelOutputs, RowCounts

MAGIC = b"excir state 5\n"

KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        SliceState, PilotColumns, PilotSpan, Atoms, ColumnSummary, SpanCategories, CategoryCounts, Categories,
        References, Reference, PassRequest, PassColumns, PassSpan, State, ColumnState, PairState, RowSample, RowCounts,
        ModelOutputs, LakeState, PilotRows, SegmentNames, SegmentReferences, SegmentColumns,
        SegmentSpans, SegmentStates,
    )
}  # fmt: skip
"""name -> type; each has a VERSION, to be raised whenever its fields or their meaning change"""

_CRAFTED = (
    ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError, OSError, MemoryError,
)  # fmt: skip
"""what reading a file raises that somebody made up"""


def freeze(state: Any) -> bytes:
    """A state as bytes; equal states give equal bytes.

    >>> thaw(freeze((1, "two", np.array([3.0]), None)))
    (1, 'two', array([3.]), None)
    """
    arrays = bytearray()
    text = json.dumps(_plain(state, arrays)).encode()
    head = b"".join([MAGIC, len(text).to_bytes(8, "little"), text])
    digest = hashlib.sha256(head)
    digest.update(arrays)
    return b"".join([head, arrays, digest.digest()])


def thaw(content: bytes, whole: bool = False, known: Sequence[Reference] = ()) -> Any:
    """The state; bytes that are not a whole one, or of another version, are a DataError.

    Parameters
    ----------
    content : bytes
    whole : bool
        These are known to be the bytes that were written: no digest is computed.
    known : sequence of Reference
        Taken in place of those with the same ids, whose arrays are not unpacked: they are half of a state.
    """
    body = memoryview(content)[:-32]
    if not content.startswith(MAGIC) or not (whole or hashlib.sha256(body).digest() == content[-32:]):
        raise DataError("it is damaged, cut off or of another version")
    start = len(MAGIC) + 8
    stop = start + int.from_bytes(body[len(MAGIC) : start], "little")
    try:
        return _state(json.loads(bytes(body[start:stop])), body[stop:], {each.id: each for each in known})
    except _CRAFTED as error:
        raise DataError(f"it does not hold a state: {type(error).__name__}: {error}") from error


def _plain(value: Any, arrays: bytearray) -> Any:
    if isinstance(value, np.ndarray):
        how, packed = pack(value)
        found = {**how, "at": len(arrays), "size": len(packed)}
        arrays += packed
        return found
    if is_dataclass(value) and type(value).__name__ in KINDS:
        try:
            _check_fields(value)
        except DataError as error:
            raise InternalError(f"a state that could not be read again: {error}") from error
        content = {field.name: _plain(getattr(value, field.name), arrays) for field in fields(value)}
        kind = type(value).__name__
        return {"kind": kind, "version": KINDS[kind].VERSION, "fields": content}
    if isinstance(value, tuple | list):
        return {"items": [_plain(item, arrays) for item in value]}
    if isinstance(value, np.bool_ | np.number) and value.dtype.str in DTYPES:
        return {"scalar": value.dtype.str, "value": _plain(value.item(), arrays)}
    if isinstance(value, float):
        return {"float": value.hex()}
    if value is None or isinstance(value, bool | int | str):
        return value
    raise TypeError(f"{type(value).__name__} is not part of states")


def _state(value: Any, raw: memoryview, known: Mapping[str, Reference]) -> Any:
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return unpack(value, raw[value["at"] : value["at"] + value["size"]])
    if "kind" in value:
        kind, version = KINDS[value["kind"]], value.get("version")
        if version != kind.VERSION:
            raise DataError(f"it holds {kind.__name__} {version}, and this version of excir-dask reads {kind.VERSION}")
        if kind is Reference and value["fields"]["id"] in known:
            return known[value["fields"]["id"]]
        found = kind(**{name: _state(item, raw, known) for name, item in value["fields"].items()})
        _check_fields(found)
        return found
    if "scalar" in value:
        if value["scalar"] not in DTYPES:
            raise DataError(f"it holds a number of {value['scalar']}")
        return np.dtype(value["scalar"]).type(_state(value["value"], raw, known))
    if "items" in value:
        return tuple(_state(item, raw, known) for item in value["items"])
    return float.fromhex(value["float"])


@cache
def _hints(kind: str) -> dict[str, Any]:
    hints = get_type_hints(KINDS[kind], include_extras=True)
    return {field.name: hints[field.name] for field in fields(KINDS[kind])}


def _check_fields(state: Any) -> None:
    """Refuse a state whose fields are not what they declare; equal names of dimensions mean equal sizes."""
    kind = type(state).__name__
    sizes: dict[str, int] = {}
    for name, hint in _hints(kind).items():
        value = getattr(state, name)
        dimensions: list[str] = []
        if get_origin(hint) is Annotated:
            hint, *dimensions = get_args(hint)
        if not _is_a(value, hint):
            raise DataError(f"{name} of its {kind} is of another type: {type(value).__name__}")
        if dimensions:
            shape: tuple[int, ...] = value.shape if isinstance(value, np.ndarray) else (len(value),)
            expected = tuple(sizes.setdefault(each, size) for each, size in zip(dimensions, shape, strict=False))
            if len(dimensions) != len(shape) or expected != shape:
                raise DataError(f"{name} of its {kind} has the shape {shape}, not {dimensions}")


def _is_a(value: Any, hint: Any) -> bool:
    """Whether a value has a declared type; a type variable stands for any kind of state."""
    origin, arguments = get_origin(hint), get_args(hint)
    if isinstance(hint, TypeVar):
        return value is None or type(value).__name__ in KINDS
    if hasattr(origin, "__value__"):  # from numpy 2.5 on NDArray is a type alias
        return _is_a(value, origin.__value__[arguments])
    if origin in (Union, UnionType):
        return any(_is_a(value, each) for each in arguments)
    if origin is np.ndarray:
        return isinstance(value, np.ndarray) and np.issubdtype(value.dtype, get_args(arguments[1])[0])
    if origin is tuple and arguments[-1] is Ellipsis:
        return isinstance(value, tuple) and all(_is_a(item, arguments[0]) for item in value)
    if origin is tuple:
        return (
            isinstance(value, tuple)
            and len(value) == len(arguments)
            and all(_is_a(item, each) for item, each in zip(value, arguments, strict=True))
        )
    if hint is int:  # a bool is an int to Python, and no count to us
        return type(value) is int
    return isinstance(value, NoneType if hint is None else hint)
