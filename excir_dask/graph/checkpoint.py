"""A folder that stores the states of finished slices, so that an interrupted run can resume.

Workers save each state when it is done and look there before they read a slice. The client decides nothing, so it does
not matter who was killed. Merging happens in the same order either way: the result is the same to the byte.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from pyarrow import fs

from excir_dask.common.atomic import TEMPORARY, write_stored
from excir_dask.errors import DataError, ReadError, UsageError
from excir_dask.graph.state_format import freeze, thaw
from excir_dask.graph.states import Cost, Outcome
from excir_dask.lake.store_errors import is_transient, redacted_message

T = TypeVar("T")

SUFFIX = ".state"
RUN = "run.json"
"""describes the run of a folder"""


@dataclass(frozen=True)
class Checkpoint:
    """The stored states of one run."""

    filesystem: fs.FileSystem
    folder: str
    """of this run: its name depends on what the run is, so that another run never finds its states"""

    def states(self) -> int:
        """Number of stored states."""
        return sum(info.path.endswith(SUFFIX) for info in self._list())

    def take(self, name: str, make: Callable[[], Outcome[T]], check: Callable[[T], None]) -> Outcome[T]:
        """The state of that name; made and saved where there is none that can be used.

        ``check`` raises a DataError for a state that is not the one that ``make`` would make. Why a state was rejected
        is part of the cost, because only that reaches the client from every worker.
        """
        path = posixpath.join(self.folder, name + SUFFIX)
        rejected = Cost()
        if self.filesystem.get_file_info(path).type == fs.FileType.File:
            try:
                return Outcome(self._load(path, name, check), Cost(resumed=1))
            except (DataError, OSError) as error:  # computing it again is always right
                rejected = Cost(rejected=1, reason=f"{name + SUFFIX}: {redacted_message(error)}")
        made = make()
        self._save(path, freeze((name, made.value)))
        return Outcome(made.value, made.cost + rejected)

    def forget(self) -> None:
        """Remove the states of this run."""
        for info in self._list():
            if info.path.endswith(SUFFIX):
                self.filesystem.delete_file(info.path)

    def remove(self) -> None:
        """Remove the files of this run, and its folder if it is empty then."""
        for info in self._list():
            if info.base_name == RUN or info.base_name.endswith(SUFFIX) or info.base_name.startswith(TEMPORARY):
                self.filesystem.delete_file(info.path)
        if self._local and not self._list():  # in buckets there are no folders
            self.filesystem.delete_dir(self.folder)

    @property
    def _local(self) -> bool:
        return isinstance(self.filesystem, fs.LocalFileSystem)

    def _list(self) -> list[fs.FileInfo]:
        listed: list[fs.FileInfo] = self.filesystem.get_file_info(fs.FileSelector(self.folder, allow_not_found=True))
        return listed

    def _load(self, path: str, name: str, check: Callable[[T], None]) -> T:
        with self.filesystem.open_input_file(path) as source:
            content = thaw(source.read())
        if not isinstance(content, tuple) or len(content) != 2 or content[0] != name:
            raise DataError("it holds the state of another slice")
        state: T = content[1]
        check(state)
        return state

    def _save(self, path: str, content: bytes) -> None:
        try:  # two workers may process the same slice after one seemed lost: each writes a file of its own
            write_stored(self.filesystem, path, content)
        except OSError as error:  # such as a full disk
            raise ReadError(
                f"{self.folder} (checkpoint) cannot be written to: {redacted_message(error)}; free space there, "
                "or choose another folder, and run again"
            ) from None


def open_checkpoint(filesystem: fs.FileSystem, root: str, run: dict[str, Any]) -> Checkpoint:
    """The checkpoint of a run below a root folder; ``run`` is what makes it the same run."""
    text = json.dumps(run, sort_keys=True)
    folder = posixpath.join(root, f"excir-{hashlib.sha256(text.encode()).hexdigest()[:24]}")
    try:
        filesystem.create_dir(folder, recursive=True)
        write_stored(filesystem, posixpath.join(folder, RUN), text.encode())
    except (OSError, NotImplementedError) as error:
        if isinstance(error, OSError) and is_transient(error):
            raise ReadError(f"{root} (checkpoint) cannot be reached: {redacted_message(error)}") from None
        reason = redacted_message(error) if str(error) else "its store is read only"
        raise UsageError(f"{root} (checkpoint) cannot be written to: {reason}; choose another folder") from None
    return Checkpoint(filesystem, folder)


def digest(*values: Any) -> str:
    """A name for what a scan was given: states for other centres must not be taken for these."""
    return hashlib.sha256(freeze(values)).hexdigest()[:16]
