"""Where a run happens: threads of this machine, the active client, a cluster at an address or that of a file."""

from __future__ import annotations

import asyncio
import importlib.metadata
import logging
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from excir_dask.clusters.config import ClusterFile, read_cluster_file
from excir_dask.clusters.health import address_of, check_workers
from excir_dask.clusters.kinds import settings_of, started
from excir_dask.errors import ClusterError, UsageError
from excir_dask.graph.run import ClusterRunner, LocalRunner, Runner

if TYPE_CHECKING:
    from distributed import Client, Security

log = logging.getLogger(__name__)

CONNECT_TIMEOUT = 5.0
"""seconds that a scheduler has to answer: it takes milliseconds"""

_NOWHERE = "127.0.0.1:0"
"""of the pages that a cluster serves: no address at all would mean every address, and a warning where it is taken"""


@contextmanager
def runner_for(
    scheduler: str | Client | None,
    progress: bool | None = None,
    cluster: str | os.PathLike[str] | None = None,
) -> Iterator[Runner]:
    """A runner for an address or client, for a cluster file, or (None) the active client, or else threads."""
    with (
        reached(scheduler, cluster) as client,
        closing(LocalRunner(progress) if client is None else ClusterRunner(client, progress)) as runner,
    ):
        yield runner


@contextmanager
def reached(scheduler: str | Client | None, cluster: str | os.PathLike[str] | None = None) -> Iterator[Client | None]:
    """A client of an address or of a cluster file, the client that is given, the active one, or None without any."""
    if cluster is not None:
        if scheduler is not None:
            raise UsageError(f"both the scheduler {scheduler} and the cluster file {cluster} are given; give one")
        with client_of_file(cluster) as client:
            yield client
    elif isinstance(scheduler, str):
        with connected(scheduler) as client:
            yield client
    else:
        given = scheduler if scheduler is not None else _active_client()
        if given is not None:
            check_workers(given)
        yield given


@contextmanager
def client_for(scheduler: str | Client | None, cluster: str | os.PathLike[str] | None = None) -> Iterator[Client]:
    """A client for what runs on a cluster only; (None) without an active client, of a cluster inside this process.

    It is a client of its own even where one is given: whatever a run leaves on the cluster goes when it is closed. The
    cluster inside this process is one worker with all threads: it starts in 0.1 s and no other machine can reach it.
    """
    with reached(scheduler, cluster) as active:
        if active is None:
            with _in_this_process() as client:
                yield client
        elif cluster is not None or isinstance(scheduler, str):
            yield active
        else:
            with _connect(address_of(active), active.security) as client:
                yield client


@contextmanager
def _in_this_process() -> Iterator[Client]:
    import dask
    from dask.system import CPU_COUNT
    from distributed import Client, LocalCluster

    # no memory limit: a worker measures the process it lives in, and would pause for what the caller holds
    with (
        dask.config.set(scheduler=dask.config.get("scheduler", None)),  # some workers' own clients leave theirs
        LocalCluster(
            n_workers=1, threads_per_worker=dask.config.get("num_workers", None) or CPU_COUNT, processes=False,
            silence_logs=logging.CRITICAL,  # what fails in there is raised out here
            memory_limit=0, dashboard_address=_NOWHERE, worker_dashboard_address=_NOWHERE,
            scheduler_kwargs={"dashboard": False},
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):  # fmt: skip
        yield client


@contextmanager
def client_of_file(path: str | os.PathLike[str]) -> Iterator[Client]:
    """A client of the cluster that a file says how to start or reach; says where its dashboard is."""
    with _client_of(read_cluster_file(path)) as client:
        log.info("dashboard: %s", _dashboard(client) or "none, because the scheduler was started without one")
        yield client


@contextmanager
def _client_of(file: ClusterFile) -> Iterator[Client]:
    """A client of the cluster in a file, once it has a worker that can run this package."""
    from distributed import Client

    with settings_of(file):
        if file.address is not None:
            with _connect(file.address) as client:
                check_workers(client, file.wait, f"the cluster of {file.path}")
                yield client
            return
        with started(file) as cluster, Client(cluster, set_as_default=False) as client:
            check_workers(client, file.wait, f"the cluster of {file.path}")
            yield client


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """A client of the scheduler at an address; says where its dashboard is."""
    with _connect(address) as client:
        log.info("dashboard: %s", _dashboard(client) or "none, because the scheduler was started without one")
        check_workers(client)
        log.debug("cluster at %s: %d workers, %d threads", address, *_size(client))
        yield client


@contextmanager
def performance_report(client: Client, file: str | os.PathLike[str]) -> Iterator[None]:
    """Save dask's own report of everything that the cluster does meanwhile, also if that fails."""
    from distributed import performance_report as report_to

    target = Path(file)
    if not target.absolute().parent.is_dir() or not os.access(target.absolute().parent, os.W_OK):
        raise UsageError(f"{target} cannot be written, because its folder is not there or may not be written to")
    try:
        client.run_on_scheduler(importlib.metadata.version, "bokeh")
    except importlib.metadata.PackageNotFoundError:
        raise UsageError(
            "the scheduler makes the performance report with bokeh, which is not installed there; "
            "run 'pip install bokeh' on its machine, or leave the report out"
        ) from None
    report = report_to(filename=os.fspath(target))
    with client.as_current():
        report.__enter__()
        try:
            yield
        except Exception:
            with suppress(Exception):  # what went wrong first is what the user must see
                report.__exit__(None, None, None)
            raise
        report.__exit__(None, None, None)
    log.info("performance report: %s", target)


def _dashboard(client: Client) -> str | None:
    try:
        return client.dashboard_link or None
    except KeyError:
        return None


def _size(client: Client) -> tuple[int, int]:
    threads = client.nthreads()
    return len(threads), sum(threads.values())


def _connect(address: str, security: Security | None = None) -> Client:
    from distributed import Client

    _check_address(address)
    _check_certificate(address, security)
    try:
        if not address.startswith("inproc:"):
            with ThreadPoolExecutor(1) as thread:  # the thread of a notebook has an event loop already
                thread.submit(asyncio.run, _greet(address, security)).result()
        return Client(address, timeout=CONNECT_TIMEOUT, set_as_default=False, security=security)
    except (OSError, TimeoutError, ValueError) as error:
        raise ClusterError(
            f"no scheduler answers at {address} within {CONNECT_TIMEOUT:.0f} s ({str(error) or 'silence'}); "
            "start one with 'dask scheduler', look at address and certificates, or leave the address out"
        ) from error


async def _greet(address: str, security: Security | None) -> None:
    """Raise unless something that speaks dask's language is there: a client would wait for a silent one for ever."""
    from distributed import Security
    from distributed.comm.core import connect

    arguments = (security or Security()).get_connection_args("client")
    try:
        comm = await asyncio.wait_for(connect(address, timeout=CONNECT_TIMEOUT, **arguments), CONNECT_TIMEOUT + 1)
    except (OSError, TimeoutError):
        raise
    except Exception as error:  # words of another language are read as lengths that no memory holds, for instance
        raise ClusterError(
            f"what answers at {address} does not speak dask's language ({type(error).__name__}); look at the port: a "
            "scheduler's is 8786 unless it was told otherwise, its dashboard and other services have their own"
        ) from error
    await comm.close()


def _check_address(address: str) -> None:
    """A client with an address that cannot be one would hang when it is closed."""
    from distributed.comm.addressing import parse_address, parse_host_port
    from distributed.comm.registry import get_backend

    try:
        scheme, place = parse_address(address)
        get_backend(scheme)
        if scheme in ("tcp", "tls", "ws", "wss"):
            _, port = parse_host_port(place)
            if not 1 <= port <= 65535:
                raise ValueError(f"port {port} is not one from 1 to 65535")
    except ValueError as error:
        raise UsageError(f"'{address}' is not a scheduler's address ({error}); write tcp://HOST:PORT") from error


def _check_certificate(address: str, security: Security | None) -> None:
    """A client that has none for an address with TLS would fail, and then hang for 20 s when it is closed."""
    from distributed import Security

    if not address.startswith("tls://"):
        return
    try:
        found = (security or Security()).get_connection_args("client").get("ssl_context")
    except OSError as error:
        raise UsageError(f"the certificate for {address} cannot be used ({error}); look at its files") from error
    if found is None:
        raise UsageError(
            f"{address} wants a certificate and none is set; name one under 'tls:' in a cluster file "
            "(see cluster/address.yaml), or in dask's settings distributed.comm.tls"
        )


def _active_client() -> Client | None:
    """The client that dask itself would use, without importing distributed where nobody has."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        client: Client = distributed.get_client()
    except ValueError:
        return None
    return client
