"""Results as folders, of which any later change is noticed.

Only files that a result consists of are ever replaced: a folder with anything else in it is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

from excir_dask.errors import LakeError, UsageError

REPORT = "report.html"
"""file of a result's folder that is made from the others"""
GENERATOR = '<meta name="generator" content="excir-dask'
"""how a file says that it is a report, and may be replaced by a newer one"""

FILES = {
    "explanation": (
        "features.parquet", "groups.parquet", "groups.yaml", "explanation.json", "manifest.json", REPORT,
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
        manifest = json.loads((folder / "manifest.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    files = manifest.get("files") if isinstance(manifest, dict) else None
    return isinstance(files, dict) and main in files


def is_report(path: Path) -> bool:
    """Whether a file is a report that was written here."""
    with path.open("rb") as file:
        return GENERATOR in file.read(2000).decode("utf-8", "replace")


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every file of a folder."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def check_digests(folder: Path, expected: Mapping[str, str], what: str = "explanation") -> None:
    """Refuse a folder of which a file is missing or is not the one that was saved."""
    for name, digest in expected.items():
        file = folder / name
        if not file.is_file() or hashlib.sha256(file.read_bytes()).hexdigest() != digest:
            raise LakeError(f"{file} is missing or was changed since the {what} was saved")


def check_format(folder: Path, content: Mapping[str, object], name: str, version: int) -> None:
    """Refuse a file that another program, or another version, has written."""
    found = content.get("format"), content.get("version")
    if found != (name, version):
        raise LakeError(f"{folder} is of format {found[0]} {found[1]}; this version reads {name} {version}")
