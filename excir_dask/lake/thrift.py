"""The parts of Thrift's compact protocol that Parquet's footers and page headers need, for what pyarrow does not show.

https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from __future__ import annotations

from collections.abc import Iterator

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)

_DEEPEST = 64
"""structs inside each other; Parquet has less than ten"""


class ThriftError(ValueError):
    """The bytes end too early, or are not Thrift."""


class Compact:
    """Reads a value after the other.

    Parameters
    ----------
    data : bytes
    at : int
        Where to begin; moves on with what is read.
    """

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at

    def fields(self, number: int = 0) -> Iterator[tuple[int, int]]:
        """Number and type of each field of a struct. Each value must be read or skipped before the next one.

        ``number`` is that of the field before, to go on inside a struct.
        """
        while header := self._byte():
            number = number + (header >> 4) if header >> 4 else self.integer()
            yield number, header & 0x0F

    def items(self) -> Iterator[int]:
        """The type of each item of a list, as often as there are items, which must be read or skipped."""
        header = self._byte()
        count = header >> 4 if header >> 4 < 15 else self._varint()
        for _ in range(count):
            yield header & 0x0F

    def integer(self) -> int:
        """An i16, i32 or i64."""
        coded = self._varint()
        return (coded >> 1) ^ -(coded & 1)

    def skip(self, kind: int, depth: int = 0, inside: bool = False) -> None:
        """Pass over a value. ``inside`` a list or map a truth value has a byte of its own."""
        if depth > _DEEPEST:
            raise ThriftError(f"structs are nested more than {_DEEPEST} deep")
        if I16 <= kind <= I64:
            self._varint()
        elif kind in (TRUE, FALSE):
            self._move(1 if inside else 0)
        elif kind == BYTE:
            self._move(1)
        elif kind == DOUBLE:
            self._move(8)
        elif kind == BINARY:
            self._move(self._varint())
        elif kind in (LIST, SET):
            for item in self.items():
                self.skip(item, depth + 1, inside=True)
        elif kind == MAP:
            count = self._varint()
            kinds = self._byte() if count else 0
            for _ in range(count):
                self.skip(kinds >> 4, depth + 1, inside=True)
                self.skip(kinds & 0x0F, depth + 1, inside=True)
        elif kind == STRUCT:
            for _, inner in self.fields():
                self.skip(inner, depth + 1)
        else:
            raise ThriftError(f"there is no type {kind}")

    def _varint(self) -> int:
        found = shift = 0
        while (byte := self._byte()) >= 0x80:
            found |= (byte & 0x7F) << shift
            shift += 7
            if shift > 63:
                raise ThriftError("an integer takes more than ten bytes")
        return found | byte << shift

    def _byte(self) -> int:
        try:
            found = self.data[self.at]
        except IndexError:
            raise ThriftError("the bytes end too early") from None
        self.at += 1
        return found

    def _move(self, count: int) -> None:
        self.at += count
        if self.at > len(self.data):
            raise ThriftError("the bytes end too early")
