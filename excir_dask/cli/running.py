"""Where a command runs: threads of this machine, or a cluster with its dashboard and dask's report."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from excir_dask.cli.console import log_to_stderr
from excir_dask.clusters.connect import client_at, client_of_file
from excir_dask.clusters.performance import performance_report
from excir_dask.errors import UsageError
from excir_dask.lake.store_errors import redact

SILENCED = ("distributed", "tornado", "asyncio", "dask_jobqueue", "dask_kubernetes", "dask_gateway")
"""whose messages and warnings are shown with -v only"""

_OWN = ("quiet", "verbose", "threads", "scheduler", "cluster", "performance_report", "insecure")


@contextmanager
def running(given: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Set up what a command needs to run.

    Takes the options of ``_OWN`` out of the command's, and yields the others with ``scheduler`` (a client or None) and
    ``progress``.
    """
    import dask

    quiet, verbose, threads, scheduler, cluster, performance, insecure = (given.get(name) for name in _OWN)
    if scheduler is not None and cluster is not None:
        raise UsageError(f"both --scheduler {redact(scheduler)} and --cluster {cluster} are given; give one")
    remote = scheduler is not None or cluster is not None
    if performance is not None and not remote:
        raise UsageError(
            "--performance-report is about a cluster, and this runs on the threads of this machine; "
            "name a cluster with --scheduler or --cluster, or leave it out"
        )
    with ExitStack() as stack:
        stack.enter_context(log_to_stderr(bool(quiet), bool(verbose)))
        stack.enter_context(dask.config.set({} if threads is None else {"num_workers": threads}))
        if remote and not verbose:
            stack.enter_context(_without_log_of_dask())
        client = None
        if scheduler is not None:
            client = stack.enter_context(client_at(scheduler, bool(insecure)))
        elif cluster is not None:
            client = stack.enter_context(client_of_file(cluster, bool(insecure)))
        if client is not None and performance is not None:
            stack.enter_context(performance_report(client, performance))
        others = {name: value for name, value in given.items() if name not in _OWN}
        yield {**others, "scheduler": client, "progress": not quiet}


@contextmanager
def _without_log_of_dask() -> Iterator[None]:
    """Errors end in one line of ours: dask and its libraries would print tracebacks before it."""
    import distributed  # noqa: F401  (sets the levels of its loggers when it is imported)

    known = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] in SILENCED]
    before = {logger: logger.level for logger in map(logging.getLogger, {*SILENCED, *known})}
    for logger in before:
        logger.setLevel(logging.CRITICAL + 1)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=rf"({'|'.join(SILENCED)}|dask)\b")
        try:
            yield
        finally:
            for logger, level in before.items():
                logger.setLevel(level)
