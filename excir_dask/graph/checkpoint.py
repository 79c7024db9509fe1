"""A folder in which the states of finished slices are kept, so that the same run can go on where it was ended.

Workers save each state when it is done and look there before they read a slice. Nothing is decided by the client, so
it does not matter who was killed. Merging happens in the same order either way: the result is the same to the byte.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from pyarrow import fs

from excir_dask.errors import DataError, UsageError
from excir_dask.graph.freeze import freeze, thaw

T = TypeVar("T")

SUFFIX = ".state"


@dataclass(frozen=True)
class Checkpoint:
    """Where the states of one run are."""

    filesystem: fs.FileSystem
    folder: str
    """of this run: its name says what the run is, so that another one never finds its states"""

    def states(self) -> int:
        """How many states there are."""
        return sum(info.path.endswith(SUFFIX) for info in self._list())

    def take(self, name: str, make: Callable[[], T]) -> tuple[T, bool]:
        """The state of that name, made and saved if it is not there; and whether it was there."""
        path = posixpath.join(self.folder, name + SUFFIX)
        found = self._load(path)
        if found is not None:
            return found, True
        made = make()
        self._save(path, freeze(made))
        return made, False

    def clear(self) -> None:
        """Remove the states of this run: it has ended well."""
        self.filesystem.delete_dir(self.folder)

    def _list(self) -> list[fs.FileInfo]:
        return self.filesystem.get_file_info(fs.FileSelector(self.folder, allow_not_found=True))

    def _load(self, path: str) -> Any:
        if self.filesystem.get_file_info(path).type != fs.FileType.File:
            return None
        with self.filesystem.open_input_file(path) as source:
            content = source.read()
        try:
            return thaw(content)
        except DataError:  # written by halves where a store does not rename: it is made again
            return None

    def _save(self, path: str, content: bytes) -> None:
        # a name of its own until it is whole: two workers may do the same slice after one was thought lost
        part = f"{path}.{uuid.uuid4().hex}"
        local = isinstance(self.filesystem, fs.LocalFileSystem)
        with self.filesystem.open_output_stream(part if local else path) as target:
            target.write(content)
        if local:
            self.filesystem.move(part, path)


def open_checkpoint(filesystem: fs.FileSystem, root: str, run: dict[str, Any]) -> Checkpoint:
    """The checkpoint of a run below a root folder; ``run`` is what makes it the same run."""
    text = json.dumps(run, sort_keys=True)
    folder = posixpath.join(root, f"excir-{hashlib.sha256(text.encode()).hexdigest()[:24]}")
    try:
        filesystem.create_dir(folder, recursive=True)
        with filesystem.open_output_stream(posixpath.join(folder, "run.json")) as target:
            target.write(text.encode())
    except OSError as error:
        raise UsageError(f"{root} cannot be written to: {error}; choose another folder for checkpoints") from error
    return Checkpoint(filesystem, folder)


def digest(*values: Any) -> str:
    """A name for what a scan was given: states of other centres must not be taken for those of these."""
    return hashlib.sha256(freeze(values)).hexdigest()[:16]
