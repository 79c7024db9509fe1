"""How loudly a command runs, and where: log lines, progress, the cluster with its dashboard and report."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from excir_dask.clusters.connect import client_at, client_of_file
from excir_dask.clusters.performance import performance_report
from excir_dask.errors import UsageError

SILENCED = ("distributed", "tornado", "asyncio", "dask_jobqueue", "dask_kubernetes", "dask_gateway")
"""whose messages and warnings are shown with -v only"""


@contextmanager
def running(
    quiet: bool,
    verbose: bool,
    scheduler: str | None,
    performance: str | None,
    threads: int | None = None,
    cluster: str | None = None,
) -> Iterator[dict[str, Any]]:
    """Set up what a command needs to run; yields its arguments ``scheduler`` and ``progress``."""
    import dask

    if scheduler is not None and cluster is not None:
        raise UsageError(f"both --scheduler {scheduler} and --cluster {cluster} are given; give one")
    if performance is not None and scheduler is None and cluster is None:
        raise UsageError(
            "--performance-report is about a cluster, and this runs on the threads of this machine; "
            "name a cluster with --scheduler or --cluster, or leave it out"
        )
    with ExitStack() as stack:
        stack.enter_context(loudly(quiet, verbose))
        stack.enter_context(dask.config.set({} if threads is None else {"num_workers": threads}))
        if not verbose and (scheduler is not None or cluster is not None):
            stack.enter_context(_without_words_of_dask())
        client = None
        if scheduler is not None:
            client = stack.enter_context(client_at(scheduler))
        elif cluster is not None:
            client = stack.enter_context(client_of_file(cluster))
        if client is not None and performance is not None:
            stack.enter_context(performance_report(client, performance))
        yield {"scheduler": client, "progress": not quiet}


@contextmanager
def loudly(quiet: bool, verbose: bool) -> Iterator[None]:
    """Messages of this package on standard error; with -v each has a time, so that waiting shows."""
    if quiet and verbose:
        raise UsageError("--quiet and --verbose are both given; leave one of them out")
    level = logging.ERROR if quiet else logging.DEBUG if verbose else logging.INFO
    logger = logging.getLogger("excir_dask")
    handler = logging.StreamHandler(sys.stderr)
    stamp = "%(asctime)s " if level == logging.DEBUG else ""
    handler.setFormatter(logging.Formatter(f"{stamp}%(message)s", datefmt="%H:%M:%S"))
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(level)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        logger.propagate = before[1]


@contextmanager
def _without_words_of_dask() -> Iterator[None]:
    """What goes wrong ends in one line of ours: dask and what it stands on would put tracebacks before it."""
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
