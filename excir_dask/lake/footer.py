"""Read the footer of one file, including which columns are encrypted.

pyarrow does not list encrypted columns, and aborts the whole process when asked about one.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from excir_dask.common.wording import one_line
from excir_dask.lake.checksums import HEADER_BYTES, first_page_offset, has_checksum
from excir_dask.lake.thrift import LIST, STRUCT, CompactReader, ThriftError

_TAIL_BYTES = 2**16
"""bytes to read from the end of a file, as pyarrow does"""

_SIGNATURE_BYTES = 28
"""length of the signature after a plaintext footer with encrypted columns"""

_ROW_GROUPS, _ALGORITHM = 4, 8
"""fields of FileMetaData"""

_COLUMNS = 1
"""field of RowGroup"""

_CRYPTO = 8
"""field of ColumnChunk that only encrypted columns have"""

_ALGORITHM_START = re.compile(rb"[\x1c\x2c\x3c\x4c](?=[\x1c\x2c][\x00\x18\x28\x31\x32\x38])")
"""field 8 of FileMetaData, a union of two structs, as Thrift writes it after any of the fields 4 to 7"""


@dataclass(frozen=True)
class Footer:
    """What a file says about itself."""

    schema: pa.Schema
    row_groups: tuple[int, ...]
    """rows of each"""
    encrypted: tuple[str, ...] = ()
    """columns that cannot be read without keys, in whole or in part"""
    checksums: bool | None = None
    """whether the first page has a checksum; None if unknown"""


def read_footer(source: pa.NativeFile, look_for_checksums: bool = False) -> Footer:
    """Read the footer of an open file, in one or two reads as pyarrow does.

    If the first page is not among those bytes, ``look_for_checksums`` costs one small read more.
    """
    size = source.size()
    tail, length = _read_tail(source, size)
    try:  # of bytes that have arrived: no error of it passes
        file = pq.ParquetFile(pa.BufferReader(tail))
        metadata, paths = file.metadata, file.reader.column_paths
        encrypted = tuple(dict.fromkeys(paths[leaf][0] for leaf in sorted(encrypted_leaves(tail[-length:-8]))))
        schema = metadata.schema.to_arrow_schema()
        row_groups = tuple(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups))
        offset = None if encrypted else first_page_offset(metadata)  # pyarrow aborts on an encrypted column
    except (OSError, IndexError, ThriftError) as error:
        raise ValueError(one_line(error)) from error
    if min(row_groups, default=0) < 0:
        raise ValueError(f"a row group has {min(row_groups)} rows")
    checksums = None
    if offset is not None and 0 <= offset < size:
        start = size - len(tail)
        if offset >= start:
            checksums = has_checksum(tail[offset - start : offset - start + HEADER_BYTES])
        elif look_for_checksums:
            checksums = has_checksum(source.read_at(HEADER_BYTES, offset))
    return Footer(schema, row_groups, encrypted, checksums)


def _read_tail(source: pa.NativeFile, size: int) -> tuple[bytes, int]:
    """The end of a file, from the footer on or before it, and the footer's length with its length field and magic."""
    tail = source.read_at(min(_TAIL_BYTES, size), max(size - _TAIL_BYTES, 0))
    if tail[-4:] == b"PARE":
        raise ValueError("its footer is encrypted; write a copy without encryption")
    length = struct.unpack("<I", tail[-8:-4])[0] + 8 if tail[-4:] == b"PAR1" and len(tail) >= 8 else 0
    if not 8 < length <= size:  # pyarrow raises the error for it
        return source.read_at(size, 0), 8
    if length > len(tail):
        tail = source.read_at(length - len(tail), size - length) + tail
    return tail, length


def encrypted_leaves(footer: bytes) -> set[int]:
    """Indices of the encrypted columns among the leaves of the schema.

    Only signed footers are parsed: parsing takes 20 us or more per column chunk.
    """
    if not _is_signed(footer):
        return set()
    leaves: set[int] = set()
    reader = CompactReader(footer)
    for field, kind in reader.fields():
        if (field, kind) == (_ROW_GROUPS, LIST):
            for _ in reader.items():
                leaves |= _encrypted_chunks(reader)
        else:
            reader.skip(kind)
        if field >= _ALGORITHM:
            break
    return leaves


def _encrypted_chunks(reader: CompactReader) -> set[int]:
    """Indices of the encrypted column chunks of the row group at the reader's position."""
    leaves: set[int] = set()
    for field, kind in reader.fields():
        if (field, kind) != (_COLUMNS, LIST):
            reader.skip(kind)
            continue
        for leaf, _ in enumerate(reader.items()):
            for chunk_field, chunk_kind in reader.fields():
                if chunk_field == _CRYPTO:
                    leaves.add(leaf)
                reader.skip(chunk_kind)
    return leaves


def _is_signed(footer: bytes) -> bool:
    """Whether a footer ends with an encryption algorithm, at most one more field, and a signature."""
    for match in _ALGORITHM_START.finditer(footer):
        reader = CompactReader(footer, match.end())
        try:
            reader.skip(STRUCT)
            for _, kind in reader.fields(_ALGORITHM):
                reader.skip(kind)
        except ThriftError:
            continue
        if len(footer) - reader.position == _SIGNATURE_BYTES:
            return True
    return False
