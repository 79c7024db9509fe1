"""Results as folders, of which any later change is noticed.

Only files that a result consists of are ever replaced: a folder with anything else in it is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from excir_dask.errors import LakeError, UsageError

MANIFEST = "manifest.json"
"""file with provenance and the digests of the others; the last one written"""
REPORT = "report.html"
"""file of a result's folder that is made from the others"""
GENERATOR = '<meta name="generator" content="excir-dask'
"""how a file says that it is a report, and may be replaced by a newer one"""

FILES = {
    "explanation": (
        "features.parquet", "groups.parquet", "groups.yaml", "explanation.json", MANIFEST, REPORT,
    ),
    "sweep": ("runs.parquet", "summary.parquet", "sweep.png", "sweep.json", REPORT),
}  # fmt: skip
"""kind of result -> all files that its folder may consist of"""


def check_target(folder: str | os.PathLike[str], overwrite: bool = False, what: str = "explanation") -> Path:
    """The folder, if a result may be saved in it; worth asking before hours of work.

    ``what`` names the kind of result. Overwritten is only an empty folder, or one that says it is of this kind and
    holds nothing else.
    """
    if "://" in os.fspath(folder):
        raise UsageError(f"{folder} is a URL; {what}s are saved in a folder of this machine, copy it from there")
    target = Path(folder)
    parent = next(path for path in [target.absolute(), *target.absolute().parents][1:] if path.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise UsageError(f"{target} cannot be made, because {parent} is not a folder that may be written to")
    if target.exists() and not overwrite:
        raise UsageError(f"{target} exists already; choose another folder, or allow it to be overwritten (--overwrite)")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        _check_replaceable(target, what)
    return target


def _check_replaceable(target: Path, what: str) -> None:
    if not target.is_dir() or not _says_what(target, what):
        article = "an" if what[0] in "aeiou" else "a"
        raise UsageError(f"{target} is not {article} {what}'s folder, so it is not overwritten; choose another one")
    for path in sorted(target.iterdir()):
        if path.name not in FILES[what] or not path.is_file() or (path.name == REPORT and not is_report(path)):
            raise UsageError(
                f"{target} holds '{path.name}', which is not part of the {what} there, so nothing is replaced; "
                f"move '{path.name}' elsewhere, or choose another folder"
            )


def _says_what(folder: Path, what: str) -> bool:
    """Whether a folder says that it is a result of a kind; one file that is damaged does not matter."""
    main = f"{what}.json"
    try:
        if f'"excir-{what}"'.encode() in (folder / main).read_bytes():
            return True
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    files = manifest.get("files") if isinstance(manifest, dict) else None
    return isinstance(files, dict) and main in files


def is_report(path: Path) -> bool:
    """Whether a file is a report that was written here."""
    with path.open("rb") as file:
        return GENERATOR in file.read(2000).decode("utf-8", "replace")


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write JSON for people and programs: indented, keys sorted, no NaN."""
    path.write_text(json_text(content), encoding="utf-8")


def json_text(content: Mapping[str, Any]) -> str:
    """The same text for the same content."""
    return json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n"


def read_json(folder: Path, name: str, what: str) -> dict[str, Any]:
    """A JSON file of a saved result; ``what`` is the kind of result, for messages."""
    try:
        content = json.loads((folder / name).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise LakeError(f"{folder} is not a saved {what}: it has no {name}") from None
    except (ValueError, RecursionError) as error:
        raise LakeError(f"{folder / name} is damaged ({error}); compute the {what} again") from None
    if not isinstance(content, dict):
        kind = type(content).__name__
        raise LakeError(f"{folder / name} is damaged (a {kind}, not a mapping); compute the {what} again")
    return content


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 per file of a folder."""
    return {path.name: _digest(path) for path in sorted(folder.iterdir())}


def check_digests(folder: Path, expected: Any, what: str) -> None:
    """Reject a folder in which a file is missing or was changed since the result was saved."""
    if not isinstance(expected, Mapping):
        raise LakeError(f"{folder} does not list the digests of its files ('files'); compute the {what} again")
    for name, digest in expected.items():
        if not (folder / name).is_file():
            raise LakeError(f"{folder / name} is missing; copy it from where the {what} was saved, or compute it again")
        if _digest(folder / name) != digest:
            raise LakeError(
                f"{folder / name} was changed since the {what} was saved (its SHA-256 is not the one on record); "
                "restore it, or compute it again"
            )


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
