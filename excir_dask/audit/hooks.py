"""Notify others of a run. A hook that fails is only reported: the results are saved by then."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote, urlsplit

from excir_dask.audit.config import Hooks

_TAIL = 500
"""last characters of a command's standard error that are kept"""


class HookError(Exception):
    """A hook failed; the message holds no secrets."""


def call_hooks(hooks: Hooks, payload: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Call the hooks for this status, and return ``hook ok seconds detail`` of each."""
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
    except HookError as error:
        detail, ok = str(error), False
    except Exception as error:  # no error of a hook may lose the result
        detail, ok = f"{type(error).__name__}: {error}", False
    return {"hook": name, "ok": ok, "seconds": round(time.perf_counter() - began, 3), "detail": detail}


def _command(hooks: Hooks, data: bytes) -> str:
    # its own session, so that processes which the command started are killed with it on a timeout
    with subprocess.Popen(
        hooks.command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            _, errors = process.communicate(data, timeout=hooks.timeout)
        except subprocess.TimeoutExpired:
            _end(process)
            raise HookError(f"{hooks.command[0]} timed out after {hooks.timeout:g} s") from None
    if process.returncode != 0:
        said = errors.decode(errors="replace").strip()[-_TAIL:]
        raise HookError(f"{hooks.command[0]} exited with {process.returncode}{': ' if said else ''}{said}")
    return "exited with 0"


def _end(process: subprocess.Popen[bytes]) -> None:
    import signal

    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (OSError, AttributeError):
        process.kill()
    process.wait()


def _webhook(hooks: Hooks, data: bytes) -> str:
    """Post the JSON. An address may hold a password or token, and error messages quote it, so none is passed on."""
    answers: list[str | HookError] = []

    def post() -> None:
        try:
            answers.append(_posted(hooks, data))
        except HookError as error:
            answers.append(error)
        except Exception as error:
            answers.append(HookError(_kind(error)))

    # a thread, because the timeout of a socket starts again with every byte
    thread = threading.Thread(target=post, daemon=True)
    thread.start()
    thread.join(hooks.timeout)
    if not answers:
        raise HookError(f"no answer within {hooks.timeout:g} s")
    if isinstance(answers[0], HookError):
        raise answers[0]
    return answers[0]


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows no redirects: the POST would become a GET without the JSON."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _posted(hooks: Hooks, data: bytes) -> str:
    address = os.path.expandvars(hooks.webhook).strip()
    if not address.startswith(("http://", "https://")):
        raise HookError("the address is not http:// or https://; its environment variable may not be set")
    parts = urlsplit(address)
    headers = {"Content-Type": "application/json"}
    user, at, host = parts.netloc.rpartition("@")
    if at:
        known = unquote(user if ":" in user else f"{user}:").encode()
        headers["Authorization"] = f"Basic {base64.b64encode(known).decode()}"
    request = urllib.request.Request(parts._replace(netloc=host).geturl(), data, headers, method="POST")
    try:
        with urllib.request.build_opener(_Stay).open(request, timeout=hooks.timeout) as answer:
            return f"answered {_status(answer.status)}"
    except urllib.error.HTTPError as error:
        error.close()
        moved = "; redirects are not followed, give the final address" if 300 <= error.code < 400 else ""
        raise HookError(f"answered {_status(error.code)}{moved}") from None


def _status(code: int) -> str:
    """A status with its standard phrase; that of the server may repeat the address."""
    return f"{code} {HTTPStatus(code).phrase}" if code in list(HTTPStatus) else str(code)


def _kind(error: Exception) -> str:
    """The type of an error, with the system's message if it has one."""
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    known = isinstance(reason, OSError) and type(reason).__module__ == "builtins" and reason.errno
    return type(reason).__name__ + (f": {os.strerror(known)}" if known else "")
