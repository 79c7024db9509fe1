"""A dask gateway, which starts clusters for its users and gives each its certificates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from excir_dask.clusters.kind import ClusterFile, StartedKind


def _start(file: ClusterFile) -> Any:
    from dask_gateway import GatewayCluster

    return GatewayCluster(**file.options, **file.cluster_options)


def _takes_options() -> list[Callable[..., Any]]:
    from dask_gateway import Gateway

    return [Gateway]


GATEWAY = StartedKind(
    "gateway",
    keys=frozenset({"options", "cluster_options", "workers", "wait", "dask"}),
    required=("workers",),
    package="dask_gateway",
    extra="gateway",
    start=_start,
    takes_options=_takes_options,
)
