"""Files and folders that appear whole or not at all.

Each is written under a temporary name beside its target and renamed once it is complete. After an error the temporary
one is removed and the target is what it was. A killed process may leave a temporary one behind; its name begins with
``TEMPORARY``. Permissions are those of any new file or folder: the system applies the umask. (To read the umask, a
process must set it, and other threads would create files with the wrong one.)
"""

from __future__ import annotations

import errno
import os
import posixpath
import shutil
import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pyarrow import fs

TEMPORARY = ".excir-"
"""how temporary names begin"""

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""errors of the system about a disk or a share of it that is full"""

_SHOWN = 40
"""characters of the target's name in a temporary one: together they fit the 255 bytes of most filesystems"""

_OBJECT_STORES = ("s3", "gcs", "gs", "abfs", "az", "memory")
"""parts of the names of such filesystems"""


def unwritable_parent(target: Path) -> Path | None:
    """What keeps a file or folder from being made: the nearest path above that exists, if it is not a writable folder.

    None where nothing does. Worth asking before hours of work.
    """
    parent = next((path for path in target.absolute().parents if path.exists()), target)
    return None if parent.is_dir() and os.access(parent, os.W_OK | os.X_OK) else parent


def write_file(target: Path, content: bytes) -> None:
    """Write a file, or replace the one that is there. Its folder must exist."""
    made = target.parent / _temporary(target.name)
    try:
        with _full_disk_named(target), made.open("xb") as file:
            file.write(content)
        os.replace(made, target)
    finally:
        with suppress(OSError):  # after os.replace there is nothing to remove
            made.unlink()


def write_stored(filesystem: fs.FileSystem, path: str, content: bytes) -> None:
    """Write a file of any filesystem, or replace the one that is there. Its folder must exist where there are folders.

    Object stores show an object when it is complete. Elsewhere it is renamed when it is.
    """
    if isinstance(filesystem, fs.LocalFileSystem):
        write_file(Path(path), content)
    elif is_object_store(filesystem):
        with filesystem.open_output_stream(path) as stream:
            stream.write(content)
    else:
        folder, name = posixpath.split(path)
        made = posixpath.join(folder, _temporary(name))
        try:
            with filesystem.open_output_stream(made) as stream:
                stream.write(content)
            filesystem.move(made, path)
        except BaseException:
            with suppress(OSError):
                filesystem.delete_file(made)
            raise


def is_object_store(filesystem: fs.FileSystem) -> bool:
    """Whether a filesystem has no folders and shows an object once it is complete."""
    return any(kind in filesystem.type_name for kind in _OBJECT_STORES)


@contextmanager
def new_folder(target: Path, files: Collection[str] = ()) -> Iterator[Path]:
    """A folder to fill, which becomes the target when the block ends without an error.

    Parameters
    ----------
    target : Path
        Folders above it are made.
    files : names
        What is replaced of a folder that is already there: other files of it move to the new one. Without any names,
        the target must be empty or absent.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    made = target.parent / _temporary(target.name)
    made.mkdir()
    try:
        with _full_disk_named(target):
            yield made
        if files and target.exists():
            _replace(target, made, files)
        else:
            os.replace(made, target)
    finally:
        shutil.rmtree(made, ignore_errors=True)


@contextmanager
def _full_disk_named(target: Path) -> Iterator[None]:
    """Errors of a full disk name what was being written: the system's own name nothing."""
    try:
        yield
    except OSError as error:
        number = error.errno or next((one for one in FULL if f"[errno {one}]" in str(error)), None)  # pyarrow's
        if number not in FULL or error.filename is not None:
            raise
        raise OSError(number, os.strerror(number), str(target)) from error


def _replace(target: Path, made: Path, files: Collection[str]) -> None:
    old = target.parent / _temporary(target.name)
    os.replace(target, old)
    try:
        os.replace(made, target)
    except BaseException:
        os.replace(old, target)
        raise
    if old.is_symlink():  # the folder that it leads to stays as it is
        old.unlink()
        return
    for path in list(old.iterdir()):
        if path.name in files:
            path.unlink()
        else:
            os.replace(path, target / path.name)
    old.rmdir()


def _temporary(name: str) -> str:
    return f"{TEMPORARY}{name[:_SHOWN]}-{uuid.uuid4().hex[:12]}"
