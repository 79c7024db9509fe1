"""A reader of Thrift's compact protocol, for the fields of Parquet footers and page headers that pyarrow hides.

https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from __future__ import annotations

from collections.abc import Iterator

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)

_MAX_DEPTH = 64
"""nested values; Parquet has fewer than ten levels"""


class ThriftError(ValueError):
    """The bytes are cut off or are not Thrift."""


class CompactReader:
    """Reads values one after another.

    Parameters
    ----------
    data : bytes
    position : int
        Offset of the first value; each read advances it.
    """

    def __init__(self, data: bytes, position: int = 0) -> None:
        self.data = data
        self.position = position

    def fields(self, number: int = 0) -> Iterator[tuple[int, int]]:
        """Number and type of each field of a struct. The caller must read or skip each value before the next field.

        ``number`` is that of the preceding field, to continue inside a struct.
        """
        while header := self._byte():
            number = number + (header >> 4) if header >> 4 else self.integer()
            yield number, header & 0x0F

    def items(self) -> Iterator[int]:
        """The type of each item of a list. The caller must read or skip each item before the next."""
        header = self._byte()
        count = header >> 4 if header >> 4 < 15 else self._varint()
        for _ in range(count):
            yield header & 0x0F

    def integer(self) -> int:
        """An i16, i32 or i64."""
        value = self._varint()
        return (value >> 1) ^ -(value & 1)  # zigzag

    def skip(self, kind: int, depth: int = 0, in_container: bool = False) -> None:
        """Skip a value. A boolean takes a byte in a container, and none as a field of a struct."""
        if depth > _MAX_DEPTH:
            raise ThriftError(f"values are nested more than {_MAX_DEPTH} levels deep")
        if I16 <= kind <= I64:
            self._varint()
        elif kind in (TRUE, FALSE):
            self._advance(1 if in_container else 0)
        elif kind == BYTE:
            self._advance(1)
        elif kind == DOUBLE:
            self._advance(8)
        elif kind == BINARY:
            self._advance(self._varint())
        elif kind in (LIST, SET):
            for item in self.items():
                self.skip(item, depth + 1, in_container=True)
        elif kind == MAP:
            count = self._varint()
            kinds = self._byte() if count else 0
            for _ in range(count):
                self.skip(kinds >> 4, depth + 1, in_container=True)
                self.skip(kinds & 0x0F, depth + 1, in_container=True)
        elif kind == STRUCT:
            for _, inner in self.fields():
                self.skip(inner, depth + 1)
        else:
            raise ThriftError(f"type {kind} does not exist")

    def _varint(self) -> int:
        value = shift = 0
        while (byte := self._byte()) >= 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
            if shift > 63:
                raise ThriftError("an integer takes more than ten bytes")
        return value | byte << shift

    def _byte(self) -> int:
        try:
            byte = self.data[self.position]
        except IndexError:
            raise ThriftError("the data end early") from None
        self.position += 1
        return byte

    def _advance(self, count: int) -> None:
        self.position += count
        if self.position > len(self.data):
            raise ThriftError("the data end early")
