"""A request to stop that cannot get lost.

Ctrl-C raises KeyboardInterrupt wherever the main thread is. Inside a ``__del__``, where it often is while futures are
released, Python prints an exception and continues. So the request is stored, and loops that wait for work check it.
"""

from __future__ import annotations

_requested: type[KeyboardInterrupt] | None = None


def request_stop(kind: type[KeyboardInterrupt] = KeyboardInterrupt) -> None:
    """From now on :func:`stop_if_requested` raises this."""
    global _requested
    _requested = kind


def clear_stop_request() -> None:
    """The request was served, or concerned something else."""
    global _requested
    _requested = None


def stop_if_requested() -> None:
    """Raise the requested interrupt, if any."""
    if _requested is not None:
        raise _requested
