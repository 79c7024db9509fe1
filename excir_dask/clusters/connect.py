"""Where a run happens: on threads of this machine, or through a client of a cluster."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING

from excir_dask.clusters.address import connect, warn_if_open
from excir_dask.clusters.config import read_cluster_file
from excir_dask.clusters.health import address_of, check_workers
from excir_dask.clusters.start import dask_settings, started
from excir_dask.common.wording import count
from excir_dask.errors import UsageError
from excir_dask.graph.run import ClusterRunner, LocalRunner, Runner
from excir_dask.lake.store_errors import redact

if TYPE_CHECKING:
    from distributed import Client

log = logging.getLogger(__name__)

_LOOPBACK = "127.0.0.1:0"
"""for dashboards: without an address they listen on every network, and warn if their port is taken"""


@contextmanager
def runner_for(
    scheduler: str | Client | None,
    progress: bool | None = None,
    cluster: str | os.PathLike[str] | None = None,
) -> Iterator[Runner]:
    """A runner for an address or client, a cluster file, or (None) the active client or else threads."""
    with (
        find_client(scheduler, cluster) as client,
        closing(LocalRunner(progress) if client is None else ClusterRunner(client, progress)) as runner,
    ):
        yield runner


@contextmanager
def find_client(
    scheduler: str | Client | None, cluster: str | os.PathLike[str] | None = None
) -> Iterator[Client | None]:
    """A client of an address or of a cluster file, the given client, the active one, or None."""
    if cluster is not None:
        if scheduler is not None:
            raise UsageError(
                f"both the scheduler {redact(str(scheduler))} and the cluster file {cluster} are given; give one"
            )
        with client_of_file(cluster) as client:
            yield client
    elif isinstance(scheduler, str):
        with client_at(scheduler) as client:
            yield client
    else:
        given = scheduler if scheduler is not None else _active_client()
        if given is not None:
            check_workers(given)
        yield given


@contextmanager
def own_client(scheduler: str | Client | None, cluster: str | os.PathLike[str] | None = None) -> Iterator[Client]:
    """A client of its own, as :func:`find_client` finds the cluster, or else of a cluster inside this process.

    A new client even where one is given: whatever a run leaves on the cluster goes when its client is closed.
    """
    with find_client(scheduler, cluster) as active:
        if active is None:
            with _client_in_this_process() as client:
                yield client
        elif cluster is not None or isinstance(scheduler, str):
            yield active
        else:
            with connect(address_of(active), active.security) as client:
                yield client


@contextmanager
def client_of_file(path: str | os.PathLike[str], insecure: bool = False) -> Iterator[Client]:
    """A client of the cluster that a file describes, once it has a worker that can run this package."""
    from distributed import Client

    file = read_cluster_file(path)
    with dask_settings(file), ExitStack() as stack:
        if file.address is not None:
            client = stack.enter_context(connect(file.address))
            if not insecure:
                warn_if_open(file.address)
        else:
            client = stack.enter_context(Client(stack.enter_context(started(file)), set_as_default=False))
        check_workers(client, file.wait, f"the cluster of {file.path}")
        _log_dashboard(client)
        yield client


@contextmanager
def client_at(address: str, insecure: bool = False) -> Iterator[Client]:
    """A client of the scheduler at an address, once it has a worker that can run this package.

    ``insecure`` says that an open connection is meant.
    """
    with connect(address) as client:
        if not insecure:
            warn_if_open(address)
        _log_dashboard(client)
        check_workers(client)
        threads = client.nthreads()
        size = f"{count(len(threads), 'worker')}, {count(sum(threads.values()), 'thread')}"
        log.debug("cluster at %s: %s", redact(address), size)
        yield client


@contextmanager
def _client_in_this_process() -> Iterator[Client]:
    """A client of one worker with all threads: it starts in 0.1 s, and no other machine can reach it."""
    import dask
    from dask.system import CPU_COUNT
    from distributed import Client, LocalCluster

    # no memory limit: a worker measures its whole process, and would pause for what the caller holds
    with (
        dask.config.set(scheduler=dask.config.get("scheduler", None)),  # clients of some workers do not reset theirs
        LocalCluster(
            n_workers=1, threads_per_worker=dask.config.get("num_workers", None) or CPU_COUNT, processes=False,
            silence_logs=logging.CRITICAL,  # failures are raised here as errors
            memory_limit=0, dashboard_address=_LOOPBACK, worker_dashboard_address=_LOOPBACK,
            scheduler_kwargs={"dashboard": False},
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):  # fmt: skip
        yield client


def _log_dashboard(client: Client) -> None:
    try:
        link = client.dashboard_link
    except KeyError:
        link = None
    log.info("dashboard: %s", link or "none, because the scheduler was started without one")


def _active_client() -> Client | None:
    """The client that dask itself would use, without importing distributed for it."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        client: Client = distributed.get_client()
    except ValueError:
        return None
    return client
