"""The few facts of an ONNX graph that onnxruntime does not tell: class labels, and what a ZipMap takes in.

Reads protobuf's wire format directly, because the package ``onnx`` is not needed for anything else here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

# numbers of fields in onnx.proto
_MODEL_GRAPH = 7
_GRAPH_NODE, _GRAPH_OUTPUT = 1, 12
_NODE_INPUT, _NODE_OUTPUT, _NODE_KIND, _NODE_ATTRIBUTE = 1, 2, 4, 5
_ATTRIBUTE_NAME, _ATTRIBUTE_INTS, _ATTRIBUTE_STRINGS = 1, 8, 9
_VALUE_NAME = 1
_LABELS = ("classlabels_strings", "classlabels_ints", "classlabels_int64s")


@dataclass(frozen=True)
class Graph:
    """What the nodes of a graph say about its classes."""

    labels: tuple[str, ...]
    """of its last classifier or ZipMap; empty where there is none"""
    zipmaps: tuple[tuple[str, str], ...]
    """(output, input) of each ZipMap, which turns a tensor into one dict a row"""


def read_graph(content: bytes) -> Graph:
    """Labels and ZipMaps of a model. Raises ValueError where the content is no ONNX."""
    labels: tuple[str, ...] = ()
    zipmaps = []
    for model_field, graph in _pairs(content):
        if model_field != _MODEL_GRAPH or not isinstance(graph, bytes):
            continue
        for graph_field, node in _pairs(graph):
            if graph_field != _GRAPH_NODE or not isinstance(node, bytes):
                continue
            fields = [(number, value) for number, value in _pairs(node) if isinstance(value, bytes)]
            for number, value in fields:
                if number == _NODE_ATTRIBUTE:
                    labels = _labels(value) or labels
            if (_NODE_KIND, b"ZipMap") in fields:
                ends = dict(reversed(fields))
                zipmaps.append((ends[_NODE_OUTPUT].decode(), ends[_NODE_INPUT].decode()))
    return Graph(labels, tuple(zipmaps))


def with_output(content: bytes, name: str) -> bytes:
    """The model with one more output, a tensor that it computes already.

    Protobuf merges a message that occurs twice, so a second graph with nothing but the output is added at the end.
    """
    return content + field(_MODEL_GRAPH, field(_GRAPH_OUTPUT, field(_VALUE_NAME, name.encode())))


def _labels(attribute: bytes) -> tuple[str, ...]:
    name = b""
    found: list[str] = []
    for number, value in _pairs(attribute):
        if number == _ATTRIBUTE_NAME and isinstance(value, bytes):
            name = value
        elif number == _ATTRIBUTE_STRINGS and isinstance(value, bytes):
            found.append(value.decode("utf-8"))
        elif number == _ATTRIBUTE_INTS:
            numbers = [value] if isinstance(value, int) else list(_packed(value))
            found += [str(integer - (1 << 64) if integer >> 63 else integer) for integer in numbers]
    return tuple(found) if name.decode("utf-8", "replace") in _LABELS else ()


def _pairs(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    return ((number, value) for number, value, _, _ in fields(message))


def fields(message: bytes) -> Iterator[tuple[int, int | bytes, int, int]]:
    """Number and value of each field (an integer, or bytes of a text, message or packed list); its begin and end.

    Raises ValueError where the message is no protobuf.
    """
    place = 0
    while place < len(message):
        begin = place
        tag, place = _varint(message, place)
        kind = tag & 7
        if kind == 0:
            value, place = _varint(message, place)
            yield tag >> 3, value, begin, place
            continue
        if kind == 2:
            size, place = _varint(message, place)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError(f"byte {place} is not protobuf")
        if place + size > len(message):
            raise ValueError(f"a field of {size} bytes begins at {place} of {len(message)}")
        yield tag >> 3, message[place : place + size], begin, place + size
        place += size


def _packed(message: bytes) -> Iterator[int]:
    place = 0
    while place < len(message):
        value, place = _varint(message, place)
        yield value


def _varint(message: bytes, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(message):
            raise ValueError(f"it ends within a number at byte {place}")
        byte = message[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
    raise ValueError(f"byte {place} is not protobuf")


def field(number: int, value: bytes) -> bytes:
    """A field that holds a text or a message."""
    return _as_varint(number << 3 | 2) + _as_varint(len(value)) + value


def _as_varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])
