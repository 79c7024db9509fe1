"""Machines that you can log in to: the first host runs the scheduler, the others run workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from excir_dask.clusters.kind import ClusterFile, StartedKind


def _start(file: ClusterFile) -> Any:
    from distributed import SSHCluster

    options = dict(file.options)
    if file.tls is not None:
        options["scheduler_options"] = {"protocol": "tls://", **(options.get("scheduler_options") or {})}
    return SSHCluster(**options)


def _takes_options() -> list[Callable[..., Any]]:
    from distributed import SSHCluster

    return [SSHCluster]


SSH = StartedKind(
    "ssh",
    keys=frozenset({"options", "wait", "tls", "dask"}),  # no workers: the hosts are the workers
    required=("options",),
    package="asyncssh",
    extra="ssh",
    start=_start,
    takes_options=_takes_options,
)
