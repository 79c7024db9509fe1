"""Links of a local filesystem: a file that a lake reaches in several ways counts once, and loops are not followed."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator, Sequence
from typing import Any

from pyarrow import fs

Identity = tuple[int, int, int, int]

_SHOWN = 5
"""paths that a remark names"""


def local_tree(root: str) -> tuple[list[str], list[str]]:
    """Paths of all files below a folder, links followed, and of the links that were not because they lead in a loop.

    Names that begin with ``_`` or ``.`` are passed over. pyarrow's own listing follows a loop forty times.
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
    """Paths that match a pattern, links followed, and the links that were not because they lead in a loop."""
    from fsspec.implementations.arrow import ArrowFSWrapper

    loops: set[str] = set()

    class WithoutLoops(ArrowFSWrapper):  # type: ignore[misc]  # fsspec has no annotations
        cachable = False

        def ls(self, path: str, detail: bool = False, **options: Any) -> list[Any]:
            entries = super().ls(path, detail=True, **options)
            back = {
                entry["name"]
                for entry in entries
                if entry["type"] == "directory" and os.path.islink(entry["name"]) and is_loop(entry["name"])
            }
            loops.update(back)
            return [entry if detail else entry["name"] for entry in entries if entry["name"] not in back]

    return sorted(WithoutLoops(filesystem).glob(pattern)), sorted(loops)


def is_loop(link: str) -> bool:
    """Whether a link leads to a folder that it lies in, however that was reached."""
    target, folder = os.path.realpath(link), os.path.abspath(link)
    while (parent := os.path.dirname(folder)) != folder:
        folder = parent
        if os.path.commonpath([os.path.realpath(folder), target]) == target:
            return True
    return False


def each_once(infos: Sequence[fs.FileInfo], root: str) -> tuple[list[fs.FileInfo], list[str]]:
    """Every file once, and the other paths of those that have several.

    The path without links stays if it is among them, because rows are sampled by their file's path; else the first one.
    """
    by_file: dict[Identity, list[fs.FileInfo]] = {}
    for info in infos:
        by_file.setdefault(_identity(info.path), []).append(info)
    home = os.path.realpath(root or ".")

    def preference(info: fs.FileInfo) -> tuple[bool, str]:
        relative = os.path.relpath(info.path, root or ".")
        return os.path.realpath(info.path) != os.path.join(home, relative), info.path

    kept, repeated = [], []
    for several in by_file.values():
        first, *others = sorted(several, key=preference) if len(several) > 1 else several
        kept.append(first)
        repeated += [other.path for other in others]
    return kept, sorted(repeated)


def same_files(paths: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pairs of paths that lead to the same file."""
    met: dict[Identity, str] = {}
    for path in paths:
        first = met.setdefault(_identity(path), path)
        if first != path:
            yield first, path


def remarks(repeated: Sequence[str], loops: Sequence[str]) -> list[str]:
    """What was left out, in sentences.

    >>> remarks(["latest/a.parquet"], [])
    ['1 file was left out because it is a link to another file of the lake, which counts once: latest/a.parquet']
    """
    found = []
    if repeated:
        what = "1 file was left out because it is a link to another file"
        if len(repeated) > 1:
            what = f"{len(repeated):,} files were left out because they are links to other files"
        found.append(f"{what} of the lake, which {'counts' if len(repeated) == 1 else 'count'} once: {_some(repeated)}")
    if loops:
        what = "1 link was" if len(loops) == 1 else f"{len(loops):,} links were"
        found.append(f"{what} not followed because a folder would contain itself: {_some(loops)}")
    return found


def _identity(path: str) -> Identity:
    """Device and inode; with size and time, because some network filesystems give an inode twice."""
    found = os.stat(path)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _some(paths: Sequence[str]) -> str:
    return ", ".join(paths[:_SHOWN]) + (f" and {len(paths) - _SHOWN:,} more" if len(paths) > _SHOWN else "")
