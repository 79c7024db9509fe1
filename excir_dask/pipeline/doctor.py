"""What a bug report needs: versions, extras, numba's cache; whether a scheduler and a lake can be reached."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from excir_dask.clusters.connect import client_at
from excir_dask.common.wording import count, one_line, size
from excir_dask.errors import ExcirError
from excir_dask.lake.store_errors import redact
from excir_dask.pipeline.options import ExplainOptions
from excir_dask.pipeline.preview import preview
from excir_dask.version import __version__

if TYPE_CHECKING:
    from packaging.requirements import Requirement

PACKAGE = "excir-dask"
_FOR_DEVELOPERS = ("test", "bench", "dev", "clusters")


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    name: str
    status: str
    """"ok", "missing" (an extra that nobody asked for) or "problem\""""
    detail: str

    def to_dict(self) -> dict[str, str]:
        return asdict(self)


def examine(
    lake: str | None = None, scheduler: str | None = None, storage_options: Mapping[str, Any] | None = None
) -> list[Finding]:
    """Look at this installation, and at a lake and a scheduler if they are given."""
    found = [Finding(PACKAGE, "ok", f"{__version__}, in {Path(__file__).parent.parent}"), _machine()]
    found += [*_packages(), *_extras(), _numba_cache()]
    if scheduler is not None:
        found.append(_scheduler(scheduler))
    if lake is not None:
        found.append(_lake(lake, storage_options))
    return found


def _machine() -> Finding:
    import psutil

    memory = size(psutil.virtual_memory().total)
    what = f"{platform.python_version()}, {platform.platform()}, {count(os.cpu_count() or 1, 'core')}, {memory}"
    return Finding("python", "ok", what)


def _requirements() -> Iterator[tuple[Requirement, str | None]]:
    """What pip was told to install, each with the extra that it belongs to."""
    from packaging.requirements import Requirement

    try:
        texts = importlib.metadata.requires(PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        return
    for text in texts:
        requirement = Requirement(text)
        extra = str(requirement.marker).partition("extra == ")[2].strip("'\"") if requirement.marker else ""
        if requirement.name != PACKAGE and extra not in _FOR_DEVELOPERS:
            yield requirement, extra or None


def _packages() -> Iterator[Finding]:
    found = False
    for requirement, extra in _requirements():
        found = True
        if extra is None:
            fits, version = _version(requirement)
            detail = version if fits else f"{version}; run  pip install '{requirement.name}{requirement.specifier}'"
            yield Finding(requirement.name, "ok" if fits else "problem", detail)
    if not found:
        yield Finding("packages", "problem", f"{PACKAGE} is not installed with pip, so nothing says what it needs")


def _extras() -> Iterator[Finding]:
    extras: dict[str, list[Requirement]] = {}
    for requirement, extra in _requirements():
        if extra is not None:
            extras.setdefault(extra, []).append(requirement)
    for extra, requirements in extras.items():
        versions = [(each.name, *_version(each)) for each in requirements]
        fits = all(fit for _, fit, _ in versions)
        detail = ", ".join(f"{name} {version}" for name, _, version in versions)
        cure = "" if fits else f"; to use it: pip install '{PACKAGE}[{extra}]'"
        yield Finding(f"extra {extra}", "ok" if fits else "missing", detail + cure)


def _version(requirement: Requirement) -> tuple[bool, str]:
    """Whether a package is there in a version that is allowed, and which."""
    try:
        version = importlib.metadata.version(requirement.name)
    except importlib.metadata.PackageNotFoundError:
        return False, "not installed"
    if requirement.specifier.contains(version, prereleases=True):
        return True, version
    return False, f"{version} (needs {requirement.specifier})"


def _numba_cache() -> Finding:
    given = os.environ.get("NUMBA_CACHE_DIR")
    folder = Path(given) if given else Path(__file__).parent.parent / "kernels" / "__pycache__"
    existing = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    if os.access(existing, os.W_OK):
        return Finding("numba cache", "ok", str(folder))
    cure = "not writable, so processes may compile again at every start; set NUMBA_CACHE_DIR to a writable folder"
    return Finding("numba cache", "problem" if given else "missing", f"{folder}: {cure}")


def _scheduler(address: str) -> Finding:
    try:
        with client_at(address) as client:
            threads = client.nthreads()  # per worker
            detail = f"{count(len(threads), 'worker')}, {count(sum(threads.values()), 'thread')}, versions fit"
    except (ExcirError, OSError) as error:
        return Finding("scheduler", "problem", one_line(error))
    return Finding("scheduler", "ok", f"{redact(address)}: {detail}")


def _lake(lake: str, storage_options: Mapping[str, Any] | None) -> Finding:
    try:
        found = preview(lake, ExplainOptions(storage_options=storage_options))
    except (ExcirError, OSError) as error:
        return Finding("lake", "problem", one_line(error))
    detail = f"{found.lake}: {count(found.files, 'file')}, {count(found.rows, 'row')}, {size(found.bytes)}"
    if found.problem is not None:
        return Finding("lake", "problem", f"{detail}; {found.problem}")
    return Finding("lake", "ok", detail)
