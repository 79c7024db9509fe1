"""What a search for the files of a lake leaves out: nothing is skipped silently."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyarrow import fs

REPEATED, LOOP, DANGLING, SPECIAL, FOLDER = "repeated", "loop", "dangling", "special", "folder"
"""reasons"""

_SENTENCES = {
    REPEATED: (
        "1 file was left out because it is a link to another file of the lake, which counts once",
        "{} files were left out because they are links to other files of the lake, which count once",
    ),
    LOOP: (
        "1 link was not followed because a folder would contain itself",
        "{} links were not followed because a folder would contain itself",
    ),
    DANGLING: (
        "1 link was left out because it leads to nothing",
        "{} links were left out because they lead to nothing",
    ),
    SPECIAL: (
        "1 name was left out because it is a pipe, a socket or a device",
        "{} names were left out because they are pipes, sockets or devices",
    ),
    FOLDER: (
        "1 folder matches the pattern, and no file in it does",
        "{} folders match the pattern, and no file in them does",
    ),
}
"""for one path, and for several"""

_MAX_SHOWN = 5
"""paths per remark"""


def unreadable(infos: Iterable[fs.FileInfo]) -> dict[str, list[str]]:
    """Paths of a listing that are neither files nor folders, by reason."""
    reasons = {fs.FileType.NotFound: DANGLING, fs.FileType.Unknown: SPECIAL}
    found: dict[str, list[str]] = {reason: [] for reason in reasons.values()}
    for info in infos:
        if info.type in reasons:
            found[reasons[info.type]].append(info.path)
    return found


def remarks(left_out: Mapping[str, Sequence[str]]) -> list[str]:
    """Sentences that say what was left out.

    >>> remarks({REPEATED: ["latest/a.parquet"], LOOP: []})
    ['1 file was left out because it is a link to another file of the lake, which counts once: latest/a.parquet']
    """
    found = []
    for reason, paths in left_out.items():
        if paths:
            sentence = _SENTENCES[reason][len(paths) > 1].format(f"{len(paths):,}")
            found.append(f"{sentence}: {_some(sorted(paths))}")
    return found


def _some(paths: Sequence[str]) -> str:
    return ", ".join(paths[:_MAX_SHOWN]) + (f" and {len(paths) - _MAX_SHOWN:,} more" if len(paths) > _MAX_SHOWN else "")
