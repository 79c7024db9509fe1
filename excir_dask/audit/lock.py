"""Keeps two runs of the same audit apart, on any filesystem: whoever sees another live claim steps back."""

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
"""seconds between two signs of life"""
STALE = 300.0
"""seconds without one after which a claim is void"""
_TRIES = 3


class LockedError(ExcirError):
    """The same audit is running."""

    exit_code = 75


@contextmanager
def locked(store: Store, audit: str) -> Iterator[None]:
    """Hold the lock of an audit.

    Every run writes a claim of its own and only then looks for others, so of two at least one sees the other: both
    can step back, but both can never go on. This needs no exclusive creation, which object stores lack.
    """
    for attempt in range(_TRIES):
        claim = f"{uuid.uuid4().hex}.json"
        _write(store, audit, claim)
        try:
            other = _other(store, audit, claim)
        except BaseException:
            store.delete(FOLDER, audit, claim)
            raise
        if other is None:
            break
        store.delete(FOLDER, audit, claim)
        if attempt + 1 == _TRIES:
            raise LockedError(
                f"audit '{audit}' is running already, as process {other.get('pid')} on {other.get('host')} since "
                f"{other.get('since')}; try again when it is done (a claim without a sign of life for "
                f"{STALE:.0f} s is void)"
            )
        time.sleep(random.uniform(0.05, 0.5))  # two that stepped back together do not meet again
    over = threading.Event()
    beat = threading.Thread(target=_beat, args=(store, audit, claim, over), daemon=True)
    beat.start()
    try:
        yield
    finally:
        over.set()
        beat.join()
        with suppress(OSError):  # a claim that stays is void soon, and a result must not be lost for it
            store.delete(FOLDER, audit, claim)


def _write(store: Store, audit: str, claim: str) -> None:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    content = {"host": socket.gethostname(), "pid": os.getpid(), "since": now}
    store.put(json.dumps(content).encode(), FOLDER, audit, claim)


def _beat(store: Store, audit: str, claim: str, over: threading.Event) -> None:
    while not over.wait(HEARTBEAT):
        with suppress(ExcirError, OSError):  # the next one may get through
            _write(store, audit, claim)


def _other(store: Store, audit: str, claim: str) -> dict[str, Any] | None:
    """Another claim that is alive; void ones are removed."""
    claims = {info.base_name: info for info in store.inside(FOLDER, audit)}
    # ages by the filesystem's own clock, because this machine's may be another
    mine = claims[claim].mtime if claim in claims else None
    for name, info in claims.items():
        if name == claim:
            continue
        data = store.get(FOLDER, audit, name)
        if data is None:
            continue
        other: dict[str, Any] = json.loads(data)
        silent = mine is not None and info.mtime is not None and (mine - info.mtime).total_seconds() > STALE
        if silent or _dead(other):
            store.delete(FOLDER, audit, name)
            continue
        return other
    return None


def _dead(other: dict[str, Any]) -> bool:
    """A process of this machine that is no more."""
    if other.get("host") != socket.gethostname() or os.name != "posix":
        return False
    try:
        os.kill(int(other["pid"]), 0)
    except ProcessLookupError:
        return True
    except (OSError, KeyError, ValueError):
        return False
    return False
