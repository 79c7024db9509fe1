"""Where a run happens: threads of this machine, the active client, or a cluster at an address."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from excir_dask.errors import ClusterError, UsageError
from excir_dask.graph.run import ClusterRunner, LocalRunner, Runner

if TYPE_CHECKING:
    from distributed import Client

CONNECT_TIMEOUT = "10s"


@contextmanager
def runner_for(scheduler: str | Client | None, progress: bool | None = None) -> Iterator[Runner]:
    """A runner for an address, a client, or (None) the active client if there is one and threads if there is none."""
    if isinstance(scheduler, str):
        from distributed import Client

        _check_address(scheduler)
        try:
            client = Client(scheduler, timeout=CONNECT_TIMEOUT, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise ClusterError(
                f"no scheduler answers at {scheduler} ({error}); "
                "start one with 'dask scheduler', or leave the address out"
            ) from error
        with client, closing(ClusterRunner(client, progress)) as runner:
            yield runner
        return
    active = scheduler if scheduler is not None else _active_client()
    with closing(LocalRunner(progress) if active is None else ClusterRunner(active, progress)) as local:
        yield local


def _check_address(address: str) -> None:
    """A client with an address that cannot be one would hang when it is closed."""
    from distributed.comm.addressing import parse_address, parse_host_port

    try:
        scheme, place = parse_address(address)
        if scheme in ("tcp", "tls", "ws", "wss"):
            parse_host_port(place)
    except ValueError as error:
        raise UsageError(f"'{address}' is not a scheduler's address ({error}); write tcp://HOST:PORT") from error


def _active_client() -> Client | None:
    """The client that dask itself would use, without importing distributed where nobody has."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.get_client()
    except ValueError:
        return None
