"""A lock per audit on any filesystem: a run that sees the live claim of another steps back."""

from __future__ import annotations

import json
import os
import random
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from excir_dask.audit.store import Store
from excir_dask.errors import ExcirError

FOLDER = "locks"
HEARTBEAT = 30.0
"""seconds between heartbeats"""
STALE = 3 * HEARTBEAT
"""seconds without a heartbeat after which a claim is void; schedulers must retry for longer (jobs/submit)"""
_TRIES = 3


class LockedError(ExcirError):
    """Another run of the same audit is going on."""

    exit_code = 75


@contextmanager
def locked(store: Store, audit: str) -> Iterator[None]:
    """Hold the lock of an audit.

    Every run first writes its own claim and then looks for others, so of two at least one sees the other: both may
    step back, but never both go on. This needs no exclusive creation of files, which object stores lack.
    """
    for attempt in range(_TRIES):
        with _claimed(store, audit) as (claim, since):
            other = _other(store, audit, claim)
            if other is None:
                with _beating(store, audit, claim, since):
                    yield
                return
        if attempt + 1 < _TRIES:
            time.sleep(random.uniform(0.05, 0.5))  # so that two that stepped back together do not meet again
    who = f", as process {other['pid']} on {other['host']} since {other['since']}" if other else ""
    raise LockedError(
        f"audit '{audit}' is already running{who}; try again when it is done (a claim without a heartbeat for "
        f"{STALE:.0f} s is void)"
    )


@contextmanager
def _claimed(store: Store, audit: str) -> Iterator[tuple[str, str]]:
    """The claim of this process and its start; removed afterwards, also after Ctrl-C and SIGTERM."""
    claim = f"{uuid.uuid4().hex}.json"
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    try:
        _write(store, audit, claim, since)
        yield claim, since
    finally:
        with suppress(OSError):  # a claim that stays is void soon; the result must not be lost
            store.delete(FOLDER, audit, claim)


@contextmanager
def _beating(store: Store, audit: str, claim: str, since: str) -> Iterator[None]:
    """Heartbeats for as long as the run takes."""
    over = threading.Event()
    beat = threading.Thread(target=_beat, args=(store, audit, claim, since, over), daemon=True)
    beat.start()
    try:
        yield
    finally:
        over.set()
        beat.join()


def _write(store: Store, audit: str, claim: str, since: str) -> None:
    content = {"host": socket.gethostname(), "pid": os.getpid(), "since": since}
    store.put(json.dumps(content).encode(), FOLDER, audit, claim)


def _beat(store: Store, audit: str, claim: str, since: str, over: threading.Event) -> None:
    while not over.wait(HEARTBEAT):
        with suppress(ExcirError, OSError):  # the next one may get through
            _write(store, audit, claim, since)


def _other(store: Store, audit: str, claim: str) -> dict[str, Any] | None:
    """Another live claim, empty if it cannot be read; void claims are removed."""
    claims = {info.base_name: info for info in store.entries(FOLDER, audit)}
    # ages by the clock of the filesystem, which may differ from that of this machine
    mine = claims[claim].mtime if claim in claims else None
    for name, info in claims.items():
        if name == claim:
            continue
        other = _read(store, audit, name)
        if other is None:
            continue
        silent = mine is not None and info.mtime is not None and (mine - info.mtime).total_seconds() > STALE
        if silent or _dead(other):
            with suppress(OSError):  # void all the same
                store.delete(FOLDER, audit, name)
            continue
        return other
    return None


def _read(store: Store, audit: str, claim: str) -> dict[str, Any] | None:
    """The content of a claim: None if it is gone, empty if it cannot be read; then only its age counts."""
    try:
        data = store.get(FOLDER, audit, claim)
        found = None if data is None else json.loads(data)
    except (OSError, ValueError):
        return {}
    if data is None:
        return None
    return found if isinstance(found, dict) and {"host", "pid", "since"} <= set(found) else {}


def _dead(other: dict[str, Any]) -> bool:
    """Whether the claim is of a process of this machine that no longer runs."""
    if other.get("host") != socket.gethostname() or os.name != "posix":
        return False
    try:
        os.kill(int(other["pid"]), 0)
    except ProcessLookupError:
        return True
    except (OSError, TypeError, ValueError, OverflowError):
        return False
    return False
