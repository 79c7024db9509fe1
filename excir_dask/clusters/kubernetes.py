"""A cluster of its own for each run on Kubernetes, through the dask operator."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from excir_dask.clusters.kind import ClusterFile, StartedKind
from excir_dask.common.textfile import read_text_file
from excir_dask.common.wording import one_line
from excir_dask.errors import ClusterError, UsageError

_EXAMPLE = "see cluster/kubernetes/daskcluster.yaml"


def _check(file: ClusterFile) -> None:
    """Before a KubeCluster exists: one that never started is closed when Python exits, and prints a traceback."""
    import kr8s  # the operator's package talks to Kubernetes with it

    _options(file)  # a wrong spec is reported even where Kubernetes is out of reach
    try:
        kr8s.api().version()
    except ValueError as error:
        raise UsageError(
            f"{file.path}: there are no credentials for Kubernetes ({one_line(error)}); log in so that "
            "'kubectl get pods' works here, or run in a pod with a service account"
        ) from error
    except Exception as error:
        raise ClusterError(
            f"{file.path}: Kubernetes does not answer as expected ({one_line(error)}); try 'kubectl version', "
            "check the network, or try again later"
        ) from error


def _start(file: ClusterFile) -> Any:
    from dask_kubernetes.operator import KubeCluster

    return KubeCluster(**_options(file))


def _options(file: ClusterFile) -> dict[str, Any]:
    options = {"quiet": True, **file.options}  # or it draws a box on standard output, where results go
    if isinstance(options.get("custom_cluster_spec"), str):
        options["custom_cluster_spec"] = own_spec(Path(file.path).parent / options["custom_cluster_spec"])
    return options


def own_spec(path: Path) -> dict[str, Any]:
    """The DaskCluster in a file, renamed: two runs would share it, and the first to end would end it for both.

    KubeCluster's own spec is no alternative: it calls dask-scheduler, which dask no longer installs.
    """
    spec: Any = read_text_file(path, "a DaskCluster", _EXAMPLE)
    try:
        name = f"{spec['metadata']['name']}-{uuid.uuid4().hex[:8]}"
        spec["metadata"]["name"] = name
        spec["spec"]["scheduler"]["service"]["selector"]["dask.org/cluster-name"] = name
    except (LookupError, TypeError) as error:
        raise UsageError(
            f"custom_cluster_spec is {path}, which is not a DaskCluster ({type(error).__name__}: {error}); {_EXAMPLE}"
        ) from error
    return dict(spec)


def _takes_options() -> list[Callable[..., Any]]:
    from dask_kubernetes.operator import KubeCluster

    return [KubeCluster]


KUBERNETES = StartedKind(
    "kubernetes",
    keys=frozenset({"options", "workers", "wait", "dask"}),
    required=("options", "workers"),
    package="dask_kubernetes.operator",
    extra="kubernetes",
    start=_start,
    takes_options=_takes_options,
    check=_check,
)
