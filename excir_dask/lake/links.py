"""Links in a local filesystem: a file with several paths counts once, and loops are not followed."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator, Sequence
from typing import Any

from pyarrow import fs

Identity = tuple[int, int, int, int]


def local_tree(root: str) -> tuple[list[str], list[str]]:
    """All files below a folder, with links followed, and the links that would loop.

    Names that start with ``_`` or ``.`` are ignored. pyarrow's own listing follows a loop forty times.
    """
    files: list[str] = []
    loops: list[str] = []
    pending = [root]
    while pending:
        folder = pending.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                path = posixpath.join(folder, entry.name)
                if entry.name.startswith(("_", ".")):
                    continue
                if not entry.is_dir():
                    files.append(path)
                elif entry.is_symlink() and is_loop(path):
                    loops.append(path)
                else:
                    pending.append(path)
    return files, sorted(loops)


def local_glob(filesystem: fs.FileSystem, pattern: str) -> tuple[list[str], list[str]]:
    """Paths that match a pattern, with links followed, and the links that would loop."""
    from fsspec.implementations.arrow import ArrowFSWrapper

    loops: set[str] = set()

    class LoopFree(ArrowFSWrapper):  # type: ignore[misc]  # fsspec has no annotations
        cachable = False

        def ls(self, path: str, detail: bool = False, **options: Any) -> list[Any]:
            entries = super().ls(path, detail=True, **options)
            known = {entry["name"] for entry in entries}
            links = (entry.path for entry in os.scandir(path) if entry.is_symlink() and not entry.is_file())
            dangling = (link for link in links if link not in known and not os.path.exists(link))  # pyarrow skips them
            entries += [{"name": link, "size": None, "type": "file"} for link in dangling]
            looping = {
                entry["name"]
                for entry in entries
                if entry["type"] == "directory" and os.path.islink(entry["name"]) and is_loop(entry["name"])
            }
            loops.update(looping)
            return [entry if detail else entry["name"] for entry in entries if entry["name"] not in looping]

    return sorted(LoopFree(filesystem).glob(pattern)), sorted(loops)


def is_loop(link: str) -> bool:
    """Whether a link points to a folder that contains it, possibly through other links."""
    target, folder = os.path.realpath(link), os.path.abspath(link)
    while (parent := os.path.dirname(folder)) != folder:
        folder = parent
        if os.path.commonpath([os.path.realpath(folder), target]) == target:
            return True
    return False


def deduplicate(infos: Sequence[fs.FileInfo], root: str) -> tuple[list[fs.FileInfo], list[str]]:
    """Each file once, and the paths that were left out.

    Of several paths the one without links is kept, because rows are sampled by the path of their file, or the first.
    """
    by_file: dict[Identity, list[fs.FileInfo]] = {}
    for info in infos:
        by_file.setdefault(_identity(info.path), []).append(info)
    home = os.path.realpath(root or ".")

    def preference(info: fs.FileInfo) -> tuple[bool, str]:
        relative = os.path.relpath(info.path, root or ".")
        return os.path.realpath(info.path) != os.path.join(home, relative), info.path

    unique, repeated = [], []
    for same in by_file.values():
        first, *others = sorted(same, key=preference) if len(same) > 1 else same
        unique.append(first)
        repeated += [other.path for other in others]
    return unique, sorted(repeated)


def same_files(paths: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pairs of paths to the same file."""
    seen: dict[Identity, str] = {}
    for path in paths:
        first = seen.setdefault(_identity(path), path)
        if first != path:
            yield first, path


def _identity(path: str) -> Identity:
    """Device and inode, and size and time because some network filesystems use an inode twice."""
    found = os.stat(path)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
