"""Whether a cluster can run this package: it has workers, and they have the package in the client's version."""

from __future__ import annotations

import logging
import pkgutil
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from excir_dask.errors import ClusterError, UsageError
from excir_dask.version import __version__

if TYPE_CHECKING:
    from distributed import Client

log = logging.getLogger(__name__)

WORKER_WAIT = 300.0
"""seconds that the first worker may take without a cluster file: a new machine may have to start"""

_VERSION = "excir_dask.version:__version__"
_SCHEDULER = "the scheduler"
_EXECUTION = 5
"""parts of the name of a task's metric: "execute", span, kind of task, activity, unit"""


def check_workers(client: Client, wait: float | None = None, name: str | None = None) -> None:
    """Raise unless the cluster has a worker in time, and this package on the scheduler and on every worker.

    Workers that join later are not checked: dask does not announce them. ``name`` is the cluster's name in messages.
    """
    name = name or f"the cluster at {address_of(client)}"
    if not client.nthreads():
        _wait_for_a_worker(client, WORKER_WAIT if wait is None else wait, name)
    _check_versions(client, name)
    client.run(forget_metrics, on_error="return")


def forget_metrics(dask_worker: Any) -> None:
    """Forget a worker's metrics of the tasks of earlier runs.

    dask keeps three digests per metric, kind of task and span for ever if crick is installed, which this package needs:
    26 metrics, about 1 MiB, for each run.
    """
    for metrics in (dask_worker.digests, dask_worker.digests_total, dask_worker.digests_max):
        for key in list(metrics or ()):
            if isinstance(key, tuple) and len(key) == _EXECUTION and str(key[2]).startswith("excir-"):
                del metrics[key]


def address_of(client: Client) -> str:
    """Address of the scheduler that a client is connected to."""
    address = client.scheduler.address if client.scheduler is not None else None
    if address is None:
        raise ClusterError("the dask client is not connected to a scheduler; connect it, or pass the address")
    return str(address)


def _wait_for_a_worker(client: Client, wait: float, name: str) -> None:
    log.info("%s has no workers yet; waiting for the first one, for %.0f s at most", name, wait)
    # a cluster that scales with the work has no workers until there is some
    wake = client.submit(bool, key=f"excir-wake-{uuid.uuid4().hex}")
    try:
        client.wait_for_workers(1, timeout=wait)
    except TimeoutError as error:
        raise ClusterError(
            f"{name} has no worker after {wait:.0f} s; start some ('dask worker ADDRESS'), check its queue or its "
            "workers' logs, or give it longer with 'wait:' in a cluster file"
        ) from error
    finally:
        client.cancel([wake])


def _check_versions(client: Client, name: str) -> None:
    """Through a function of the standard library: one of ours would stop a worker that lacks this package."""
    found: dict[str, object] = client.run(pkgutil.resolve_name, _VERSION, on_error="return")
    try:
        found[_SCHEDULER] = client.run_on_scheduler(pkgutil.resolve_name, _VERSION)
    except ImportError as error:
        found[_SCHEDULER] = error
    missing = {place: error for place, error in found.items() if isinstance(error, ImportError)}
    if missing:
        raise UsageError(
            f"{_places(missing)} of {name} cannot import excir_dask ({next(iter(missing.values()))}); "
            f"install it there in this machine's version: pip install excir-dask=={__version__}"
        )
    others = {place: version for place, version in found.items() if isinstance(version, str) and version != __version__}
    if others:
        raise UsageError(
            f"{_places(others)} of {name} has excir-dask {next(iter(others.values()))}, and this machine has "
            f"{__version__}; install the same version everywhere"
        )
    for place, answer in found.items():
        if isinstance(answer, Exception):  # lost meanwhile: the run does without it
            log.debug("%s did not report its version (%s)", place, answer)


def _places(places: Mapping[str, object]) -> str:
    first, more = next(iter(places)), len(places) - 1
    named = first if first == _SCHEDULER else f"worker {first}"
    return f"{named} (and {more} more)" if more else named
