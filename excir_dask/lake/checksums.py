"""Checksums of data pages: what a mismatch says, and whether a file carries any.

pyarrow verifies a page's checksum where its header has one. No footer says whether headers do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from excir_dask.errors import DataError
from excir_dask.lake.thrift import I32, Compact, ThriftError

if TYPE_CHECKING:
    import pyarrow.parquet as pq

HEADER_BYTES = 64
"""of a page header that are enough: the checksum is the fourth field, behind three integers"""

_TYPE, _CHECKSUM = 1, 4
"""fields of PageHeader"""


def failed(error: BaseException) -> bool:
    """Whether pyarrow read a page that does not have its checksum."""
    return isinstance(error, OSError) and "CRC checksum verification failed" in str(error)


def mismatch(file: str, columns: str) -> DataError:
    """The error for it."""
    return DataError(
        f"{file} is damaged: a page of {columns} does not have the checksum that it was written with; restore the file "
        "from a copy, write it again or leave it out (--no-verify-checksums, verify_checksums=False, reads it as it is)"
    )


def first_page(metadata: pq.FileMetaData) -> int | None:
    """Where the first page of the first column begins that has rows; None in a file without rows."""
    for group in range(metadata.num_row_groups if metadata.num_columns else 0):
        if metadata.row_group(group).num_rows:
            chunk = metadata.row_group(group).column(0)
            starts = [chunk.data_page_offset, *([chunk.dictionary_page_offset] if chunk.has_dictionary_page else [])]
            return int(min((start for start in starts if start), default=0)) or None
    return None


def has_checksum(header: bytes) -> bool | None:
    """Whether a page header has a checksum; None where the bytes are not a page header."""
    reader, first = Compact(header), True
    try:
        for field, kind in reader.fields():
            if first and (field, kind) != (_TYPE, I32):
                return None
            if field >= _CHECKSUM:
                return (field, kind) == (_CHECKSUM, I32)
            first = False
            reader.skip(kind)
    except ThriftError:
        pass
    return None


def count(carried: list[bool | None], verified: bool) -> dict[str, Any]:
    """How many files carry checksums, by what is known of each."""
    known = [one for one in carried if one is not None]
    return {"verified": verified, "files_looked_at": len(known), "files_without": known.count(False)}
