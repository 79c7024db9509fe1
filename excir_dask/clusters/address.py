"""A scheduler that runs already, reached at its address."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from excir_dask.clusters.kind import Kind
from excir_dask.errors import ClusterError, UsageError
from excir_dask.lake.store_errors import redact

if TYPE_CHECKING:
    from distributed import Client, Security

ADDRESS = Kind("address", keys=frozenset({"address", "wait", "tls", "dask"}), required=("address",))

log = logging.getLogger(__name__)

CONNECT_TIMEOUT = 5.0
"""seconds that a scheduler has to answer: it takes milliseconds"""


def connect(address: str, security: Security | None = None) -> Client:
    """A client of the scheduler at an address.

    The address and what answers there are checked first: with a wrong one a client hangs, some for ever.
    """
    from distributed import Client

    _check_address(address)
    _check_certificate(address, security)
    try:
        if not address.startswith("inproc:"):
            with ThreadPoolExecutor(1) as thread:  # a notebook's own thread already runs an event loop
                thread.submit(asyncio.run, _greet(address, security)).result()
        return Client(address, timeout=CONNECT_TIMEOUT, set_as_default=False, security=security)
    except (OSError, TimeoutError, ValueError) as error:
        raise ClusterError(
            f"no scheduler answers at {redact(address)} within {CONNECT_TIMEOUT:.0f} s "
            f"({redact(str(error)) or 'silence'}); start one with 'dask scheduler', check address and "
            "certificates, or leave the address out"
        ) from error


def warn_if_open(address: str) -> None:
    """Warn of a connection over a network that anybody on the way can read and answer."""
    from distributed.comm.addressing import parse_address, parse_host_port

    scheme, place = parse_address(address)
    if scheme in ("tcp", "ws") and not _is_this_machine(parse_host_port(place)[0]):
        log.warning(
            "the connection to %s is not encrypted, and anyone who can reach that port can run code on the cluster; "
            "use tls:// (see cluster/address.yaml), or --insecure where the network is trusted",
            redact(address),
        )


def _is_this_machine(host: str) -> bool:
    """Whether a host is this one: only its own addresses can be bound."""
    try:
        for family, kind, _, _, place in socket.getaddrinfo(host, 0, type=socket.SOCK_DGRAM):
            with socket.socket(family, kind) as trial:
                trial.bind(place)
    except OSError:
        return False
    return True


async def _greet(address: str, security: Security | None) -> None:
    """Raise unless something that speaks dask's protocol answers: a client would wait for ever for a silent one."""
    from distributed import Security
    from distributed.comm.core import connect

    arguments = (security or Security()).get_connection_args("client")
    try:
        comm = await asyncio.wait_for(connect(address, timeout=CONNECT_TIMEOUT, **arguments), CONNECT_TIMEOUT + 1)
    except (OSError, TimeoutError):
        raise
    except Exception as error:  # another protocol's bytes are read as lengths beyond any memory, for instance
        raise ClusterError(
            f"what answers at {redact(address)} does not speak dask's protocol ({type(error).__name__}); check the "
            "port: schedulers listen on 8786 by default, dashboards and other services on others"
        ) from error
    await comm.close()


def _check_address(address: str) -> None:
    """A client of an invalid address hangs when it is closed."""
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
        raise UsageError(
            f"'{redact(address)}' is not a scheduler's address ({_without_user(error)}); write tcp://HOST:PORT"
        ) from error


def _without_user(error: ValueError) -> str:
    """What an error says, without the user and password of an address, which no scheduler takes."""
    return re.sub(r"[^\s'\"/]+@", "***@", str(error))


def _check_certificate(address: str, security: Security | None) -> None:
    """A client without a certificate for an address with TLS fails, and then hangs for 20 s when it is closed."""
    from distributed import Security

    if not address.startswith("tls://"):
        return
    try:
        found = (security or Security()).get_connection_args("client").get("ssl_context")
    except OSError as error:
        raise UsageError(f"the certificate for {redact(address)} cannot be used ({error}); check its files") from error
    if found is None:
        raise UsageError(
            f"{redact(address)} requires a certificate and none is set; name one under 'tls:' in a cluster file "
            "(see cluster/address.yaml), or in dask's settings distributed.comm.tls"
        )
