"""Named errors. Each says what is wrong, with both values, and the next step; each has an exit code."""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable
from pathlib import Path

WRONG_PLACES = {
    errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG,
}  # fmt: skip
"""errors of the system about a path that a retry cannot help; lakes have errors of their own"""

INTERNAL_ERROR = 70
"""exit code after an error that this package does not expect"""


class ExcirError(Exception):
    """Base of the errors that excir_dask raises."""

    exit_code = 3


class UsageError(ExcirError, ValueError):
    """An argument, option or configuration value is wrong."""

    exit_code = 2


class LakeError(ExcirError):
    """The lake cannot be used as asked; running again will not help."""


class SchemaError(LakeError):
    """Columns are missing, ambiguous or of types that cannot be scored."""


class DataError(LakeError):
    """The data break a rule: a negative weight, for instance."""


class ModelError(ExcirError):
    """The model cannot be used as asked."""


class ReadError(LakeError):
    """Reading a file failed for a reason that may pass, such as a broken connection."""

    exit_code = 75


class NoRowsError(DataError):
    """No rows are left: all are outside the sample, or lack an output or a weight."""


class LakeChangedError(ExcirError):
    """A file was rewritten or removed during the run."""

    exit_code = 75


class ClusterError(ExcirError):
    """The cluster cannot be reached, was lost or has stopped making progress; try again later."""

    exit_code = 75


class InternalError(RuntimeError):
    """excir_dask broke one of its own rules; please report it with the traceback."""


def exit_code_of(error: BaseException) -> int:
    """The exit code of a command that ends with an error.

    >>> exit_code_of(PermissionError(13, "no")), exit_code_of(OSError(28, "disk full")), exit_code_of(KeyError("a"))
    (2, 75, 70)
    """
    if isinstance(error, ExcirError):
        return error.exit_code
    if isinstance(error, OSError):
        return 2 if error.errno in WRONG_PLACES else 75
    return INTERNAL_ERROR


def changed_file(path: Path, kind: str) -> LakeError:
    """The error for a file that is not as it was saved; ``kind`` is that of the result that it belongs to."""
    return LakeError(
        f"{path} was changed since the {kind} was saved (its SHA-256 is not the one on record); "
        "restore it, or compute it again"
    )


def nearest(name: str, names: Iterable[str]) -> str:
    """The end of a message about a wrong name: the names closest to it, or nothing.

    >>> nearest("tempp", ["temp", "speed"])
    "; did you mean 'temp'?"
    """
    close = difflib.get_close_matches(name, list(names), n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(repr(match) for match in close)}?" if close else ""
