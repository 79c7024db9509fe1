"""Errors of reading a data file: they name the file and say whether another try may help."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import UnsupportedOperation

import pyarrow as pa

from excir_dask.common.wording import one_line
from excir_dask.errors import DataError, LakeChangedError, ReadError
from excir_dask.lake import checksums
from excir_dask.lake.plan import Fragment

_DAMAGED = re.compile(
    "page header|deserializ|thrift|corrupt|decompress|codec failed|unexpected end of stream|not yet implemented"
    "|ColumnMetaData|ColumnDescriptor|physical column type|parquet format|flatbuffers|data page|dictionary page",
    re.IGNORECASE,
)
"""pyarrow's messages for bytes that arrived complete but cannot be decoded"""
_TEXT_AS_CODES = re.compile("DictAccumulator")
"""what pyarrow says where it cannot decode text to codes"""
_NULL_VECTOR = re.compile("Expected all lists to be of size")
"""what pyarrow before 26 says where a vector is null"""


@contextmanager
def read_errors(
    fragment: Fragment, damaged_columns: Callable[[], str] | None = None, local: bool = False
) -> Iterator[None]:
    """Translate errors of pyarrow and the filesystem.

    A ReadError is transient, such as a broken connection. A LakeChangedError or DataError will not go away.
    ``damaged_columns`` names the columns with a checksum mismatch; it is called only after one. ``local`` says that the
    file is on this machine: then every error without a number of the system is pyarrow's own, about the content.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise LakeChangedError(f"{fragment.relative} was removed during the run; run again") from error
    except (PermissionError, UnsupportedOperation, pa.ArrowInvalid) as error:
        cure = ""
        if _NULL_VECTOR.search(str(error)):
            cure = (
                "; pyarrow before 26 cannot read a vector that is null: upgrade it, or write a vector of nulls instead"
            )
        raise DataError(f"{fragment.relative} cannot be read: {error}{cure}") from error
    except OSError as error:
        if checksums.is_mismatch(error):
            columns = damaged_columns() if damaged_columns else "a column"
            raise checksums.mismatch_error(fragment.relative, columns) from error
        if error.errno is None and _TEXT_AS_CODES.search(str(error)):
            raise DataError(
                f"{fragment.relative} has text in an encoding that pyarrow cannot turn into categories "
                f"({one_line(error)}); write it with dictionaries, or leave categoricals out"
            ) from error
        if error.errno is None and (local or _DAMAGED.search(str(error))):
            reason = one_line(error)
            raise DataError(f"{fragment.relative} is damaged: {reason}; rewrite the file or exclude it") from error
        raise ReadError(f"{fragment.relative} cannot be read: {error}") from error
