"""The footer of one file: what pyarrow reads of it, and which columns are encrypted, which pyarrow does not say.

pyarrow ends the whole process when it is asked about a column whose metadata are encrypted.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from excir_dask.lake.checksums import HEADER_BYTES, first_page, has_checksum
from excir_dask.lake.thrift import LIST, STRUCT, Compact, ThriftError

_TAIL = 2**16
"""bytes at the end of a file that are read at once, as pyarrow does"""

_SIGNATURE = 28
"""bytes behind a plaintext footer of a file with encrypted columns"""

_ROW_GROUPS, _ALGORITHM = 4, 8
"""fields of FileMetaData"""

_COLUMNS = 1
"""field of RowGroup"""

_CRYPTO = 8
"""field of ColumnChunk that only encrypted columns have"""

_ALGORITHM_BEGINS = re.compile(rb"[\x1c\x2c\x3c\x4c](?=[\x1c\x2c][\x00\x18\x28\x31\x32\x38])")
"""field 8 of FileMetaData, a union of two structs, as Thrift writes it behind any of the fields 4 to 7"""


@dataclass(frozen=True)
class Footer:
    """What is known of a file without reading its data."""

    schema: pa.Schema
    row_groups: tuple[int, ...]
    """rows of each"""
    encrypted: tuple[str, ...] = ()
    """columns that cannot be read without keys, in whole or in part"""
    checksums: bool | None = None
    """whether the first page carries a checksum; None where that is not known"""


def read_footer(source: pa.NativeFile, look_for_checksums: bool = False) -> Footer:
    """Read the footer of an open file in the one or two reads that pyarrow would take.

    Where its first page is not among those bytes, ``look_for_checksums`` takes a small read more.
    """
    size = source.size()
    tail = source.read_at(min(_TAIL, size), max(size - _TAIL, 0))
    if tail[-4:] == b"PARE":
        raise ValueError("its footer is encrypted (write a copy that is not)")
    length = struct.unpack("<I", tail[-8:-4])[0] + 8 if tail[-4:] == b"PAR1" and len(tail) >= 8 else 0
    if not 8 < length <= size:  # let pyarrow say what is wrong
        length, tail = 8, source.read_at(size, 0)
    elif length > len(tail):
        tail = source.read_at(length - len(tail), size - length) + tail
    file = pq.ParquetFile(pa.BufferReader(tail))
    metadata, paths = file.metadata, file.reader.column_paths
    encrypted = tuple(dict.fromkeys(paths[leaf][0] for leaf in sorted(encrypted_leaves(tail[-length:-8]))))
    checksums = None
    start = None if encrypted else first_page(metadata)  # pyarrow must not be asked about an encrypted column
    if start is not None and 0 <= start < size:
        known = size - len(tail)
        if start >= known:
            checksums = has_checksum(tail[start - known : start - known + HEADER_BYTES])
        elif look_for_checksums:
            checksums = has_checksum(source.read_at(HEADER_BYTES, start))
    return Footer(
        metadata.schema.to_arrow_schema(),
        tuple(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)),
        encrypted,
        checksums,
    )


def encrypted_leaves(footer: bytes) -> set[int]:
    """Places of the encrypted columns of a plaintext footer, among the leaves of its schema.

    Going through a whole footer takes 20 us or more per column chunk, so it is done for signed footers alone.
    """
    if not _is_signed(footer):
        return set()
    found: set[int] = set()
    reader = Compact(footer)
    for field, kind in reader.fields():
        if (field, kind) == (_ROW_GROUPS, LIST):
            for _ in reader.items():
                found |= _encrypted_chunks(reader)
        else:
            reader.skip(kind)
        if field >= _ALGORITHM:
            break
    return found


def _encrypted_chunks(reader: Compact) -> set[int]:
    """Of one row group."""
    found: set[int] = set()
    for field, kind in reader.fields():
        if (field, kind) != (_COLUMNS, LIST):
            reader.skip(kind)
            continue
        for place, _ in enumerate(reader.items()):
            for inner, inner_kind in reader.fields():
                if inner == _CRYPTO:
                    found.add(place)
                reader.skip(inner_kind)
    return found


def _is_signed(footer: bytes) -> bool:
    """Whether a footer ends with an encryption algorithm, at most a field more, and a signature behind it."""
    for match in _ALGORITHM_BEGINS.finditer(footer):
        reader = Compact(footer, match.end())
        try:
            reader.skip(STRUCT)
            for _, kind in reader.fields(_ALGORITHM):
                reader.skip(kind)
        except ThriftError:
            continue
        if len(footer) - reader.at == _SIGNATURE:
            return True
    return False
