"""Results as folders: which may be replaced, and whether one is still as it was saved.

Only files of a result are ever replaced: a folder with anything else in it is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from excir_dask.common.atomic import unwritable_parent
from excir_dask.errors import LakeError, UsageError, changed_file

MANIFEST = "manifest.json"
"""file with provenance and the digests of the others; the last one written"""
REPORT = "report.html"
"""file that is made from the others"""
STATE = "state.bin"
"""file with what the lake was reduced to"""
GENERATOR = '<meta name="generator" content="excir-dask'
"""marks a file as a report, which a newer one may replace"""

FILES = {
    "explanation": (
        "features.parquet", "groups.parquet", "groups.yaml", "explanation.json", STATE, MANIFEST, REPORT,
        "segments.parquet", "segment_groups.parquet", "segment_outputs.parquet", "segments.bin",
    ),
    "sweep": ("runs.parquet", "summary.parquet", "sweep.png", "sweep.json", REPORT),
}  # fmt: skip
"""kind of result -> all files that its folder may have"""


def check_target(folder: str | os.PathLike[str], overwrite: bool = False, kind: str = "explanation") -> Path:
    """The folder, if a result of a kind may be saved in it. Call it before hours of work.

    Only an empty folder is overwritten, or one that declares this kind of result and holds nothing else.
    """
    if "://" in os.fspath(folder):
        raise UsageError(f"{folder} is a URL, and {kind}s are saved in local folders; save it in one, then copy it")
    target = Path(folder)
    if (parent := unwritable_parent(target)) is not None:
        raise UsageError(f"{target} cannot be created: {parent} is not a writable folder; choose another one")
    if target.exists() and not overwrite:
        raise UsageError(f"{target} exists already; choose another folder, or allow it to be overwritten (--overwrite)")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        _check_replaceable(target, kind)
    return target


def _check_replaceable(target: Path, kind: str) -> None:
    if not target.is_dir() or not _declares(target, kind):
        raise UsageError(f"{target} is not a saved {kind}, so it is not overwritten; choose another folder")
    for path in sorted(target.iterdir()):
        if path.name not in FILES[kind] or not path.is_file() or (path.name == REPORT and not is_report(path)):
            raise UsageError(
                f"{target} holds '{path.name}', which is not part of the {kind} there, so nothing is replaced; "
                f"move '{path.name}' elsewhere, or choose another folder"
            )


def _declares(folder: Path, kind: str) -> bool:
    """Whether a folder declares a kind of result, in its main file or else in its manifest: one may be damaged."""
    main = f"{kind}.json"
    try:
        if f'"excir-{kind}"'.encode() in (folder / main).read_bytes():
            return True
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    files = manifest.get("files") if isinstance(manifest, dict) else None
    return isinstance(files, dict) and main in files


def is_report(path: Path) -> bool:
    """Whether a file is a report of this package."""
    with path.open("rb") as file:
        return GENERATOR in file.read(2000).decode("utf-8", "replace")


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write JSON for people and programs: indented, keys sorted, no NaN."""
    path.write_text(json_text(content), encoding="utf-8")


def json_text(content: Mapping[str, Any]) -> str:
    """The same text for the same content."""
    return json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n"


def read_json(folder: Path, name: str, kind: str) -> dict[str, Any]:
    """A JSON file of a saved result; ``kind`` is that of the result, for messages."""
    try:
        content = json.loads((folder / name).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise LakeError(f"{folder} is not a saved {kind}: it has no {name}") from None
    except (ValueError, RecursionError) as error:
        raise LakeError(f"{folder / name} is damaged ({error}); compute the {kind} again") from None
    if not isinstance(content, dict):
        found = type(content).__name__
        raise LakeError(f"{folder / name} is damaged (a {found}, not a mapping); compute the {kind} again")
    return content


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 per file of a folder."""
    return {path.name: _digest(path) for path in sorted(folder.iterdir())}


def check_digests(folder: Path, expected: Any, kind: str, later: Collection[str] = ()) -> None:
    """Reject a folder in which a file is missing or was changed since the result was saved.

    Files named in ``later`` must be there; whether they were changed is seen when they are read.
    """
    if not isinstance(expected, Mapping):
        raise LakeError(f"{folder} does not list the digests of its files ('files'); compute the {kind} again")
    for name, digest in expected.items():
        if not (folder / name).is_file():
            raise LakeError(f"{folder / name} is missing; copy it from where the {kind} was saved, or compute it again")
        if name not in later and _digest(folder / name) != digest:
            raise changed_file(folder / name, kind)


def check_format(folder: Path, content: Mapping[str, object], name: str, version: int) -> None:
    """Reject a file of another program or another version of the format."""
    found = content.get("format"), content.get("version")
    if found != (name, version):
        raise LakeError(
            f"{folder} has the format {found[0]} {found[1]}, and this version reads {name} {version}; "
            "load it with the version that wrote it, or compute it again"
        )


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
