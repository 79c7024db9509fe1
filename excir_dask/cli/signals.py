"""Ctrl-C and SIGTERM: both end a command cleanly, each with its exit code."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from excir_dask.graph.interrupts import clear_stop_request, request_stop

INTERRUPTED = 130
"""exit code after Ctrl-C, as shells have it"""

TERMINATED = 143
"""exit code after SIGTERM, by which queues, Kubernetes and systemd end a job"""


class Terminated(KeyboardInterrupt):
    """SIGTERM has arrived: everything that ends cleanly after Ctrl-C does so after this."""


@contextmanager
def stop_on_signals() -> Iterator[None]:
    """Ctrl-C and SIGTERM raise meanwhile, and are remembered, unless somebody else handles them."""
    clear_stop_request()
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: object) -> NoReturn:
        kind = KeyboardInterrupt if number == signal.SIGINT else Terminated
        signal.signal(number, before[signal.Signals(number)])  # a second one does not wait
        request_stop(kind)
        raise kind

    before: dict[signal.Signals, Any] = {}
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)):
        if signal.getsignal(number) is usual:
            before[number] = usual
            signal.signal(number, stop)
    shown, sys.unraisablehook = sys.unraisablehook, _unless_stopped(sys.unraisablehook)
    try:
        yield
    finally:
        sys.unraisablehook = shown
        for number, usual in before.items():
            signal.signal(number, usual)


def exit_code_of_stop(stop: KeyboardInterrupt) -> int:
    """The exit code after a signal; from now on a second Ctrl-C ends the process at once.

    Without that, Python would wait at its end for the slices that threads are working on.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    return TERMINATED if isinstance(stop, Terminated) else INTERRUPTED


def _unless_stopped(show: Callable[[Any], object]) -> Callable[[Any], object]:
    """Report exceptions that Python cannot raise, except those of a signal, which is remembered."""
    return lambda lost: None if isinstance(lost.exc_value, KeyboardInterrupt) else show(lost)
