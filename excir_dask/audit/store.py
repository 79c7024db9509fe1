"""The store of results: files and run folders on any filesystem, each appears whole or not at all."""

from __future__ import annotations

import logging
import os
import posixpath
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyarrow import fs

from excir_dask.audit.window import split_query
from excir_dask.common.atomic import TEMPORARY, is_object_store, new_folder, unwritable_parent, write_stored
from excir_dask.errors import LakeError, ReadError, UsageError, nearest
from excir_dask.lake.store_errors import as_os_error, is_transient, redact
from excir_dask.lake.stores import filesystem_of
from excir_dask.results.explanation import Explanation
from excir_dask.results.storage import MANIFEST

_BUCKETS = ("s3", "gcs", "gs")
"""kinds of store whose paths begin with a bucket"""

LEFTOVER_AGE = 86_400.0
"""seconds after which a half-written run must have been killed"""

_log = logging.getLogger("excir_dask")

RUNS = "runs"


@dataclass(frozen=True)
class Store:
    """A folder of results."""

    name: str
    """for messages"""
    filesystem: fs.FileSystem
    root: str

    @property
    def local(self) -> bool:
        return isinstance(self.filesystem, fs.LocalFileSystem)

    def path(self, *parts: str) -> str:
        return posixpath.join(self.root, *parts)

    def put(self, data: bytes, *parts: str) -> None:
        """Write a file, which appears whole or not at all."""
        path = self.path(*parts)
        with self._store_errors():
            if not is_object_store(self.filesystem):
                self.filesystem.create_dir(posixpath.dirname(path), recursive=True)
            write_stored(self.filesystem, path, data)

    def get(self, *parts: str) -> bytes | None:
        """The content of a file; None if it does not exist."""
        try:
            with self.filesystem.open_input_stream(self.path(*parts)) as stream:
                return bytes(stream.read())
        except FileNotFoundError:
            return None

    def entries(self, *parts: str, recursive: bool = False) -> list[fs.FileInfo]:
        """Everything in a folder that is not hidden, sorted by path."""
        if self._by_fsspec:
            # fsspec caches listings, but a lock or a history must see what others have just written
            self.filesystem.handler.fs.invalidate_cache()
        selector = fs.FileSelector(self.path(*parts), recursive=recursive, allow_not_found=True)
        found = [info for info in self.filesystem.get_file_info(selector) if info.base_name[:1] not in (".", "_", "")]
        return sorted(found, key=lambda info: info.path)

    def delete(self, *parts: str) -> None:
        if self.filesystem.get_file_info(self.path(*parts)).type == fs.FileType.File:
            self.filesystem.delete_file(self.path(*parts))

    def add_run(self, made: Path, run: str) -> str:
        """Copy the folder of a run into the store, and return its path."""
        target = self.path(RUNS, run)
        if self.local:
            with self._store_errors(), new_folder(Path(target)) as folder:
                shutil.copytree(made, folder, dirs_exist_ok=True)
        else:
            # the manifest last: a run without it is not complete
            files = sorted(made.iterdir(), key=lambda file: (file.name == MANIFEST, file.name))
            for file in files:
                self.put(file.read_bytes(), RUNS, run, file.name)
        return target

    def check_writable(self) -> None:
        """Refuse a store that cannot be written to, as far as that can be seen without writing."""
        if not self.local:
            with self._store_errors():
                self.entries(RUNS)
            self._check_bucket()
            return
        if (parent := unwritable_parent(Path(self.root) / RUNS)) is not None:
            raise UsageError(
                f"results cannot be written to {self.name}, because {parent} is not a writable folder; "
                "choose another folder (results), or ask for write access"
            )

    def _check_bucket(self) -> None:
        """Refuse a bucket that does not exist: listing it finds nothing, and raises no error."""
        bucket = self.root.lstrip("/").partition("/")[0]
        if not any(mark in self.filesystem.type_name for mark in _BUCKETS):
            return
        try:
            found = self.filesystem.get_file_info(bucket).type
        except OSError as error:  # without permission to look at a bucket one may still write to it
            _log.debug("could not check whether bucket %s exists: %s", bucket, error)
            return
        if found == fs.FileType.NotFound and not self._is_empty_bucket(bucket):
            raise LakeError(f"results cannot be written to {self.name}: there is no bucket '{bucket}'; create it first")

    def _is_empty_bucket(self, bucket: str) -> bool:
        """Whether fsspec knows a bucket that pyarrow does not find: older s3fs has no info of empty ones."""
        inner = getattr(getattr(self.filesystem, "handler", None), "fs", None)
        return inner is not None and bool(inner.exists(bucket))

    def remove_leftovers(self) -> None:
        """Remove half-written folders of runs that were killed long ago."""
        if not self.local or not Path(self.path(RUNS)).is_dir():
            return  # object stores have no half-written files
        for left in Path(self.path(RUNS)).glob(f"{TEMPORARY}*"):
            try:
                if left.stat().st_mtime < time.time() - LEFTOVER_AGE:
                    shutil.rmtree(left)
            except OSError as error:  # another run may remove it at the same moment
                _log.warning("%s could not be removed: %s", left, error)

    @contextmanager
    def _store_errors(self) -> Iterator[None]:
        """Errors of a store as errors of ours: denied, or transient and worth another try."""
        try:
            yield
        except OSError as given:
            options = self.filesystem.handler.fs.storage_options if self._by_fsspec else None
            error = as_os_error(given, options)
            if isinstance(error, PermissionError | FileNotFoundError):
                raise LakeError(
                    f"results cannot be written to {self.name}: {error}; check the path, credentials and write access"
                ) from None
            if is_transient(given):
                raise ReadError(f"results cannot be written to {self.name}: {error}; try again later") from None
            raise

    @property
    def _by_fsspec(self) -> bool:
        return isinstance(self.filesystem, fs.PyFileSystem)

    def has_run(self, run: str) -> bool:
        """Whether a run is in the store, and complete."""
        return bool(self.filesystem.get_file_info(self.path(RUNS, run, MANIFEST)).type == fs.FileType.File)

    def runs(self) -> list[str]:
        """Names of all complete runs."""
        return [info.base_name for info in self.entries(RUNS) if self.has_run(info.base_name)]

    def check_run(self, run: str) -> str:
        """The name of a run, if it is in the store."""
        if "/" in run or run.startswith(".") or not self.has_run(run):
            raise UsageError(f"there is no run '{run}' in {self.name}{nearest(run, self.runs())}")
        return run

    def load(self, run: str) -> Explanation:
        """The explanation of a run."""
        with self.local_folder(self.check_run(run)) as folder:
            return Explanation.load(folder)

    @contextmanager
    def local_folder(self, run: str) -> Iterator[Path]:
        """The folder of a run, as a local copy if the store is elsewhere."""
        if self.local:
            yield Path(self.path(RUNS, run))
            return
        with tempfile.TemporaryDirectory(prefix="excir-run-") as folder:
            for info in self.entries(RUNS, run):
                Path(folder, info.base_name).write_bytes(self.get(RUNS, run, info.base_name) or b"")
            yield Path(folder)


def open_store(place: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None) -> Store:
    """The store at a path or URL, which need not exist yet."""
    name = os.fspath(place)
    filesystem, root = filesystem_of(name, storage_options if "://" in name else None)
    return Store(redact(name).rstrip("/"), filesystem, root)


def split_run(run: str) -> tuple[str, str]:
    """The folder of results and the name of a run, from the path of the run's folder.

    >>> split_run("audits/runs/credit-1")
    ('audits', 'credit-1')
    """
    path, query = split_query(run)
    above, name = posixpath.split(path.rstrip("/"))
    results, middle = posixpath.split(above)
    if middle != RUNS:
        raise UsageError(f"'{run}' is not the folder of a run (RESULTS/{RUNS}/NAME); give its whole path, or --results")
    return (results or ".") + query, name
