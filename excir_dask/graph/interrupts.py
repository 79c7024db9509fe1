"""A request to stop that cannot get lost.

Ctrl-C raises KeyboardInterrupt wherever the main thread is. Inside a ``__del__``, where it often is while futures are
let go, Python prints an exception and goes on. So the request is remembered, and who waits for work looks at it.
"""

from __future__ import annotations

_asked: type[KeyboardInterrupt] | None = None


def ask_to_stop(kind: type[KeyboardInterrupt] = KeyboardInterrupt) -> None:
    """From now on :func:`stop_if_asked` raises this."""
    global _asked
    _asked = kind


def forget_to_stop() -> None:
    """What was asked for is done, or was about something else."""
    global _asked
    _asked = None


def stop_if_asked() -> None:
    """Raise what the request raised, if there was one."""
    if _asked is not None:
        raise _asked
