"""Results as folders, which appear whole or not at all, and of which any later change is noticed."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from excir_dask.errors import LakeError, UsageError

REPORT = "report.html"
"""file of a result's folder that is made from the others"""


def check_target(folder: str | os.PathLike[str], overwrite: bool = False, what: str = "explanation") -> Path:
    """The folder, if a result may be saved in it; worth asking before hours of work.

    ``what`` names the kind of result; a folder with ``<what>.json`` in it is one of the kind, and may be overwritten.
    """
    if "://" in os.fspath(folder):
        raise UsageError(f"{folder} is a URL; {what}s are saved in a folder of this machine, copy it from there")
    target = Path(folder)
    parent = next(path for path in [target.absolute(), *target.absolute().parents][1:] if path.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise UsageError(f"{target} cannot be made, because {parent} is not a folder that may be written to")
    if target.exists() and not overwrite:
        raise UsageError(f"{target} exists already; choose another folder, or allow it to be overwritten (--overwrite)")
    if target.exists() and not (target / f"{what}.json").exists() and (not target.is_dir() or any(target.iterdir())):
        article = "an" if what[0] in "aeiou" else "a"
        raise UsageError(f"{target} is not {article} {what}'s folder, so it is not overwritten; choose another one")
    return target


@contextmanager
def whole(target: Path) -> Iterator[Path]:
    """A new folder to fill, which takes the target's place when nothing went wrong and is gone otherwise."""
    target.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        yield made
        os.chmod(made, 0o777 & ~_umask())
        if target.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{target.name}-old-", dir=target.parent))
            os.replace(target, old / target.name)
            os.replace(made, target)
            shutil.rmtree(old)
        else:
            os.replace(made, target)
    finally:
        shutil.rmtree(made, ignore_errors=True)


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


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
