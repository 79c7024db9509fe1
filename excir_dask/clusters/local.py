"""Processes of this machine."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable
from multiprocessing import resource_tracker
from typing import Any

from excir_dask.clusters.kind import ClusterFile, StartedKind

log = logging.getLogger(__name__)


def _start(file: ClusterFile) -> Any:
    from distributed import LocalCluster

    options = dict(file.options)
    if file.workers is not None:
        options["n_workers"] = file.workers if isinstance(file.workers, int) else 0
    # worker processes log every task and connection they lose; what matters is raised as an error
    options.setdefault("silence_logs", logging.WARNING if log.isEnabledFor(logging.DEBUG) else logging.CRITICAL)
    return _without_interrupts(lambda: LocalCluster(**options))


def _without_interrupts(start: Callable[[], Any]) -> Any:
    """Start a cluster whose processes ignore Ctrl-C: this process gets it, and ends them.

    Threads and processes inherit the blocked signals, also processes that a nanny starts later. In this thread
    Ctrl-C arrives as soon as the cluster has started.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        return start()
    resource_tracker.ensure_running()  # would start with the first process, and unblock the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _takes_options() -> list[Callable[..., Any]]:
    from distributed import LocalCluster, Nanny, Worker

    return [LocalCluster, Nanny, Worker]


LOCAL = StartedKind(
    "local",
    keys=frozenset({"options", "workers", "wait", "tls", "dask"}),
    start=_start,
    takes_options=_takes_options,
)
