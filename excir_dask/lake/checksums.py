"""Checksums of data pages: whether a file has them, and the error for a mismatch.

pyarrow verifies the checksum of a page if its header has one. The footer does not say whether headers do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from excir_dask.errors import DataError
from excir_dask.lake.thrift import I32, CompactReader, ThriftError

if TYPE_CHECKING:
    import pyarrow.parquet as pq

HEADER_BYTES = 64
"""bytes of a page header to read: the checksum is the fourth field, after three integers"""

_MAGIC_BYTES = 4
"""at the start of a file"""

_TYPE, _CHECKSUM = 1, 4
"""fields of PageHeader"""


def is_mismatch(error: BaseException) -> bool:
    """Whether pyarrow read a page whose checksum does not match."""
    return isinstance(error, OSError) and "CRC checksum verification failed" in str(error)


def mismatch_error(file: str, columns: str) -> DataError:
    return DataError(
        f"{file} is damaged: a page of {columns} does not match its checksum; restore the file from a copy, rewrite or "
        "exclude it (--no-verify-checksums or verify_checksums=False reads it as it is)"
    )


def first_page_offset(metadata: pq.FileMetaData) -> int | None:
    """Offset of the first page; None in a file without rows.

    It follows the magic bytes. The footer says the same, but asking pyarrow for the metadata of a column whose
    statistics contradict its schema ends the process.
    """
    return _MAGIC_BYTES if metadata.num_columns and metadata.num_rows > 0 and metadata.num_row_groups else None


def has_checksum(header: bytes) -> bool | None:
    """Whether a page header has a checksum; None if the bytes are not a page header."""
    reader, first = CompactReader(header), True
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


def summarise(files: Sequence[bool | None], verified: bool) -> dict[str, Any]:
    """How many files have checksums, given what is known of each."""
    known = [has for has in files if has is not None]
    return {"verified": verified, "files_looked_at": len(known), "files_without": known.count(False)}
