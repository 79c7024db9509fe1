"""What onnxruntime does not tell about an ONNX graph: class labels, and the inputs of ZipMap nodes.

Reads the file directly: nothing else here needs the package ``onnx``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from excir_dask.models.protobuf import encode_field, unpack_integers, values

# field numbers in onnx.proto
_MODEL_GRAPH = 7
_GRAPH_NODE, _GRAPH_OUTPUT = 1, 12
_NODE_INPUT, _NODE_OUTPUT, _NODE_OPERATOR, _NODE_ATTRIBUTE = 1, 2, 4, 5
_ATTRIBUTE_NAME, _ATTRIBUTE_INTS, _ATTRIBUTE_STRINGS = 1, 8, 9
_VALUE_NAME = 1
_LABELS = ("classlabels_strings", "classlabels_ints", "classlabels_int64s")


@dataclass(frozen=True)
class Graph:
    """What the nodes of a graph say about its classes."""

    labels: tuple[str, ...]
    """of its last classifier or ZipMap; empty if there is none"""
    zipmaps: tuple[tuple[str, str], ...]
    """(output, input) of each ZipMap, which turns a tensor into one dict per row"""


def read_graph(content: bytes) -> Graph:
    """Labels and ZipMaps of a model. Raises ValueError if the content is not ONNX."""
    labels: tuple[str, ...] = ()
    zipmaps = []
    for node in _nodes(content):
        parts = [(number, value) for number, value in values(node) if isinstance(value, bytes)]
        for number, value in parts:
            if number == _NODE_ATTRIBUTE:
                labels = _labels(value) or labels
        if (_NODE_OPERATOR, b"ZipMap") in parts:
            first = dict(reversed(parts))
            zipmaps.append((first[_NODE_OUTPUT].decode(), first[_NODE_INPUT].decode()))
    return Graph(labels, tuple(zipmaps))


def with_output(content: bytes, name: str) -> bytes:
    """The model with a tensor that it computes as one more output.

    Protobuf merges a message that occurs twice, so a second graph with nothing but the output is appended.
    """
    return content + encode_field(_MODEL_GRAPH, encode_field(_GRAPH_OUTPUT, encode_field(_VALUE_NAME, name.encode())))


def _nodes(content: bytes) -> Iterator[bytes]:
    for number, graph in values(content):
        if number == _MODEL_GRAPH and isinstance(graph, bytes):
            for graph_number, node in values(graph):
                if graph_number == _GRAPH_NODE and isinstance(node, bytes):
                    yield node


def _labels(attribute: bytes) -> tuple[str, ...]:
    name = b""
    labels: list[str] = []
    for number, value in values(attribute):
        if number == _ATTRIBUTE_NAME and isinstance(value, bytes):
            name = value
        elif number == _ATTRIBUTE_STRINGS and isinstance(value, bytes):
            labels.append(value.decode("utf-8"))
        elif number == _ATTRIBUTE_INTS:
            integers = [value] if isinstance(value, int) else list(unpack_integers(value))
            labels += [str(integer - (1 << 64) if integer >> 63 else integer) for integer in integers]
    return tuple(labels) if name.decode("utf-8", "replace") in _LABELS else ()
