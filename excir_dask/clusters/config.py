"""Reading and checking a cluster file: a kind of cluster, and what that kind needs. Nothing is started here."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeGuard

from excir_dask.clusters.kind import ClusterFile
from excir_dask.clusters.registry import KINDS
from excir_dask.common.textfile import brief, read_text_file
from excir_dask.errors import UsageError, nearest

TLS_KEYS = ("ca", "cert", "key")

DEFAULT_WAIT = "5m"
"""for the first worker; where a queue may take hours, the file says so"""


def read_cluster_file(path: str | os.PathLike[str]) -> ClusterFile:
    """Read and check a cluster file; paths in it are relative to the folder it is in."""
    path = os.fspath(path)
    content = _load(path, "a cluster")
    kind = content.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        known = ", ".join(KINDS)
        raise UsageError(
            f"{path}: kind is {brief(kind)}{nearest(str(kind), KINDS)} (one of {known}); see the files in cluster/"
        )
    check_names(f"{path}: kind {kind}", content, KINDS[kind].keys | {"kind"})
    missing = [key for key in KINDS[kind].required if content.get(key) is None]
    if missing:
        raise UsageError(f"{path}: kind {kind} needs '{missing[0]}'; it has {', '.join(map(repr, content))}")
    folder = Path(path).resolve().parent
    return ClusterFile(
        path=path,
        kind=kind,
        address=_text(path, content, "address"),
        options=_mapping(path, content, "options"),
        cluster_options=_mapping(path, content, "cluster_options"),
        workers=_workers(path, content.get("workers")),
        wait=_seconds(path, content.get("wait", DEFAULT_WAIT)),
        tls=_tls(path, folder, content.get("tls")),
        dask=_settings(path, folder, content),
    )


def check_names(where: str, given: Iterable[Any], names: Iterable[str]) -> None:
    """Raise for the first name that is unknown."""
    known = sorted(names)
    for name in given:
        if name not in known:
            raise UsageError(f"{where} does not take '{name}'{nearest(str(name), known)} (it takes {', '.join(known)})")


def _load(path: str | os.PathLike[str], what: str) -> dict[Any, Any]:
    content = read_text_file(path, what, "see the files in cluster/")
    if not isinstance(content, dict):
        raise UsageError(f"{path} holds no mapping; see the files in cluster/")
    return content


def _text(path: str, content: Mapping[str, Any], key: str) -> str | None:
    value = content.get(key)
    if value is not None and not isinstance(value, str):
        raise UsageError(f"{path}: {key} is {brief(value)}; write text")
    return value


def _mapping(path: str, content: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = content.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise UsageError(f"{path}: {key} is {brief(value)}; write lines of 'name: value'")
    return value


def _workers(path: str, value: Any) -> int | tuple[int, int] | None:
    if value is None or (_whole(value) and value >= 1):
        return value
    if isinstance(value, dict):
        check_names(f"{path}: workers", value, ("minimum", "maximum"))
        low, high = value.get("minimum", 1), value.get("maximum")
        if _whole(low) and _whole(high) and 1 <= low <= high:
            return low, high
    raise UsageError(f"{path}: workers is {brief(value)}; write a number from 1, or minimum (from 1) and maximum")


def _whole(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _seconds(path: str, value: Any) -> float:
    from dask.utils import parse_timedelta

    try:
        seconds = float(parse_timedelta(value))
    except (KeyError, TypeError, ValueError, AttributeError):
        seconds = -1.0
    if not seconds > 0:
        raise UsageError(f"{path}: wait is {brief(value)}; write a time such as 90s, 10m or 12h")
    return seconds


def _tls(path: str, folder: Path, value: Any) -> dict[str, str] | None:
    if value is None:
        return None
    if not isinstance(value, dict) or set(value) != set(TLS_KEYS):
        given = ", ".join(map(repr, value)) if isinstance(value, dict) else brief(value)
        raise UsageError(f"{path}: tls has {given}; name ca, cert and key, the files that make-certificates.py writes")
    files = {key: str(folder / Path(str(value[key])).expanduser()) for key in TLS_KEYS}
    for key, file in files.items():
        if not Path(file).is_file():
            raise UsageError(
                f"{path}: tls {key} is {file}, which is not a file; cluster/make-certificates.py writes it"
            )
    return files


def _settings(path: str, folder: Path, content: Mapping[str, Any]) -> dict[str, Any]:
    value = content.get("dask")
    if isinstance(value, str):
        value = _load(folder / Path(value).expanduser(), "dask's settings")
    elif value is None:
        value = {}
    elif not isinstance(value, dict):
        raise UsageError(
            f"{path}: dask is {brief(value)}; name a file of settings such as cluster/dask.yaml, or write settings"
        )
    return _flat(path, value)


def _flat(path: str, tree: Mapping[Any, Any], prefix: str = "") -> dict[str, Any]:
    """Dotted names: setting a whole tree would drop every other setting in it."""
    found: dict[str, Any] = {}
    for name, value in tree.items():
        inner = f"{prefix}{name}"
        for dotted, one in (
            _flat(path, value, f"{inner}.") if isinstance(value, dict) and value else {inner: value}
        ).items():
            if dotted in found:
                raise UsageError(f"{path}: dask's setting '{dotted}' is given twice; keep one of them")
            found[dotted] = one
    return found
