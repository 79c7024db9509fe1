"""What an error of a worker that reads a file says: the file, and whether trying again may help."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import UnsupportedOperation

import pyarrow as pa

from excir_dask.errors import DataError, LakeChangedError, ReadError
from excir_dask.lake import checksums
from excir_dask.lake.plan import Piece

_DAMAGED = re.compile("page header|deserializ|thrift|corrupt|decompress|codec failed|unexpected end of stream", re.I)
"""what pyarrow says of bytes that came whole and are not Parquet"""


@contextmanager
def naming(piece: Piece, damaged: Callable[[], str] | None = None) -> Iterator[None]:
    """Errors name the file and tell what may pass (the network) from what will not (a file that is gone).

    ``damaged`` says which columns have a page without its checksum.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise LakeChangedError(f"{piece.relative} was removed during the run; run again") from error
    except (PermissionError, UnsupportedOperation, pa.ArrowInvalid) as error:
        raise DataError(f"{piece.relative} cannot be read: {error}") from error
    except OSError as error:
        if checksums.failed(error):
            raise checksums.mismatch(piece.relative, damaged() if damaged else "a column") from error
        if error.errno is None and _DAMAGED.search(str(error)):
            reason = " ".join(str(error).split())
            raise DataError(f"{piece.relative} is damaged: {reason}; write it again, or leave it out") from error
        raise ReadError(f"{piece.relative} cannot be read: {error}") from error
