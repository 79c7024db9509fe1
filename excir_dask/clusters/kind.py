"""What a cluster file says, and what a kind of cluster is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ClusterFile:
    """A cluster file, checked."""

    path: str
    kind: str
    address: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    """keyword arguments of the class that starts this kind"""
    cluster_options: dict[str, Any] = field(default_factory=dict)
    """what a gateway lets its users choose"""
    workers: int | tuple[int, int] | None = None
    """how many, or the minimum and maximum of a cluster that scales with the work"""
    wait: float = 300.0
    """seconds that the first worker may take"""
    tls: dict[str, str] | None = None
    """certificate files, with absolute paths"""
    dask: dict[str, Any] = field(default_factory=dict)
    """dask's settings, by dotted name"""


@dataclass(frozen=True)
class Kind:
    """A kind of cluster: what its file holds, and the package it needs."""

    name: str
    keys: frozenset[str]
    """that a file may have besides ``kind``"""
    required: tuple[str, ...] = ()
    """keys that it must have"""
    package: str = "distributed"
    """what it imports"""
    extra: str = ""
    """the extra of excir-dask that installs it"""


def scale(cluster: Any, file: ClusterFile) -> None:
    """Ask for the workers that the file wants."""
    if file.workers is None:
        return
    low, high = (file.workers, None) if isinstance(file.workers, int) else file.workers
    cluster.scale(low)
    if high is not None:
        cluster.adapt(minimum=low, maximum=high)


def _no_check(file: ClusterFile) -> None:
    pass


def _leave(cluster: Any) -> None:
    pass


@dataclass(frozen=True, kw_only=True)
class StartedKind(Kind):
    """A kind of cluster that is started for a run and ends with it."""

    start: Callable[[ClusterFile], Any]
    """gives a cluster object of distributed, which may still have no workers"""
    takes_options: Callable[[], list[Callable[..., Any]]]
    """gives the functions whose parameters are the options"""
    check: Callable[[ClusterFile], None] = _no_check
    """raises if it cannot be started from this machine"""
    scale: Callable[[Any, ClusterFile], None] = scale
    """asks for workers, and raises if they are refused"""
    abandon: Callable[[Any], None] = _leave
    """called with a cluster that could not be closed"""
