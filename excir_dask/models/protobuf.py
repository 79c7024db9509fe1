"""Protobuf's wire format, as far as ONNX files need it."""

from __future__ import annotations

from collections.abc import Iterator


def fields(message: bytes) -> Iterator[tuple[int, int | bytes, int, int]]:
    """Number, value, start and end of each field. A value is an integer, or bytes (text, a message, a packed list).

    Raises ValueError if the message is not protobuf.
    """
    position = 0
    while position < len(message):
        start = position
        tag, position = _read_varint(message, position)
        wire_type = tag & 7
        if wire_type == 0:
            value, position = _read_varint(message, position)
            yield tag >> 3, value, start, position
            continue
        if wire_type == 2:
            size, position = _read_varint(message, position)
        elif wire_type in (1, 5):
            size = 8 if wire_type == 1 else 4
        else:
            raise ValueError(f"byte {position} is not protobuf")
        if position + size > len(message):
            raise ValueError(f"a field of {size} bytes starts at byte {position} of {len(message)}")
        yield tag >> 3, message[position : position + size], start, position + size
        position += size


def values(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of each field."""
    return ((number, value) for number, value, _, _ in fields(message))


def unpack_integers(packed: bytes) -> Iterator[int]:
    """The integers of a packed list."""
    position = 0
    while position < len(packed):
        value, position = _read_varint(packed, position)
        yield value


def encode_field(number: int, value: bytes) -> bytes:
    """A field that holds a text or a message."""
    return _encode_varint(number << 3 | 2) + _encode_varint(len(value)) + value


def _read_varint(message: bytes, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if position >= len(message):
            raise ValueError(f"it ends within a number at byte {position}")
        byte = message[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
    raise ValueError(f"byte {position} is not protobuf")


def _encode_varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    return bytes([*encoded, value])
