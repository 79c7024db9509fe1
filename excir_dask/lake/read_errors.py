"""What an error of a worker that reads a file says: the file, and whether trying again may help."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import UnsupportedOperation

import pyarrow as pa

from excir_dask.errors import DataError, LakeChangedError, ReadError
from excir_dask.lake import checksums
from excir_dask.lake.plan import Fragment

_DAMAGED = re.compile("page header|deserializ|thrift|corrupt|decompress|codec failed|unexpected end of stream", re.I)
"""what pyarrow says of bytes that came whole and are not Parquet"""


@contextmanager
def naming(fragment: Fragment, damaged: Callable[[], str] | None = None) -> Iterator[None]:
    """Errors name the file and tell what may pass (the network) from what will not (a file that is gone).

    ``damaged`` says which columns have a page without its checksum.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise LakeChangedError(f"{fragment.relative} was removed during the run; run again") from error
    except (PermissionError, UnsupportedOperation, pa.ArrowInvalid) as error:
        raise DataError(f"{fragment.relative} cannot be read: {error}") from error
    except OSError as error:
        if checksums.failed(error):
            raise checksums.mismatch(fragment.relative, damaged() if damaged else "a column") from error
        if error.errno is None and _DAMAGED.search(str(error)):
            reason = " ".join(str(error).split())
            raise DataError(f"{fragment.relative} is damaged: {reason}; write it again, or leave it out") from error
        raise ReadError(f"{fragment.relative} cannot be read: {error}") from error
