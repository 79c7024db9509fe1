"""Tell others of a run. A hook that fails is reported and never more than that: the result is safe by then."""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

from excir_dask.audit.config import Hooks

_TAIL = 500
"""characters of a command's errors that are kept"""


def call_hooks(hooks: Hooks, payload: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Call the hooks that want this status; what became of each: ``hook ok seconds detail``."""
    if payload["status"] not in hooks.when:
        return []
    data = json.dumps(payload, allow_nan=False).encode()
    called = []
    if hooks.command:
        called.append(_called("command", lambda: _command(hooks, data)))
    if hooks.webhook:
        called.append(_called("webhook", lambda: _webhook(hooks, data)))
    return called


def _called(name: str, call: Callable[[], str]) -> dict[str, Any]:
    began = time.perf_counter()
    try:
        detail, ok = call(), True
    except Exception as error:  # whatever it is, the result must not be lost for it
        detail, ok = f"{type(error).__name__}: {error}", False
    return {"hook": name, "ok": ok, "seconds": round(time.perf_counter() - began, 3), "detail": detail}


def _command(hooks: Hooks, data: bytes) -> str:
    # a session of its own, so that what the command started ends with it when time is up
    process = subprocess.Popen(
        hooks.command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        _, errors = process.communicate(data, timeout=hooks.timeout)
    except subprocess.TimeoutExpired:
        _end(process)
        raise TimeoutError(f"{hooks.command[0]} took more than {hooks.timeout:g} s") from None
    if process.returncode != 0:
        said = errors.decode(errors="replace").strip()[-_TAIL:]
        raise RuntimeError(f"{hooks.command[0]} ended with {process.returncode}{': ' if said else ''}{said}")
    return "ended with 0"


def _end(process: subprocess.Popen[bytes]) -> None:
    import signal

    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (OSError, AttributeError):
        process.kill()
    process.wait()


def _webhook(hooks: Hooks, data: bytes) -> str:
    address = os.path.expandvars(hooks.webhook)
    if not address.startswith(("http://", "https://")):
        raise ValueError(f"{hooks.webhook} is not set to an http:// or https:// address")
    request = urllib.request.Request(address, data, {"Content-Type": "application/json"}, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=hooks.timeout) as answer:
            return f"answered {answer.status}"
    except OSError as error:  # its text, not the address: that may hold a secret
        raise RuntimeError(str(getattr(error, "reason", None) or error)) from None
