"""Watches the workers of a training.

XGBoost cannot continue without a worker that it started with, and does not always notice that one is lost. Here a lost
worker ends the run.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from excir_dask.clusters.health import address_of
from excir_dask.errors import ClusterError, UsageError
from excir_dask.graph.interrupts import stop_if_requested
from excir_dask.graph.progress import bar
from excir_dask.graph.run import STALL_SECONDS
from excir_dask.training.params import model_error

if TYPE_CHECKING:
    from distributed import Client

_POLL = 0.5
"""seconds between checks of the workers"""

_PATIENCE = 30.0
"""seconds that an abandoned training has to end: usually the rest of one round"""


@dataclass(frozen=True)
class Worker:
    """One of the cluster's workers."""

    rank: str
    """what XGBoost orders workers by"""
    address: str
    memory: int
    """memory limit in bytes, 0 if there is none"""


def workers_of(client: Client) -> list[Worker]:
    """The cluster's workers in the order of their ranks."""
    try:
        found = client.run(_describe)
    except OSError as error:
        raise ClusterError(f"a worker was lost before the training began ({error}); run again") from error
    except Exception as error:  # an error of a worker without our modules arrives as text
        raise UsageError(f"workers fail with {error}; install the same packages there as on this machine") from error
    if not found:
        raise ClusterError(f"the cluster at {address_of(client)} has no workers; start some and run again")
    return sorted((Worker(rank, address, memory) for address, (rank, memory) in found.items()), key=lambda w: w.rank)


class Watch:
    """Waits for a cluster, and raises errors that a user can act on."""

    def __init__(self, client: Client, workers: Sequence[Worker], progress: bool | None):
        self.client = client
        self.workers = workers
        self.progress = progress

    def wait(self, futures: Sequence[Any], sizes: Sequence[int], label: str) -> None:
        """Wait until all futures are done; ``sizes`` is how much each adds to the progress bar."""
        from distributed import wait

        left = dict(zip(futures, sizes, strict=True))
        patience, done = time.monotonic() + STALL_SECONDS, 0
        with bar(self.progress, sum(sizes), label) as advance:
            while left:
                stop_if_requested()
                with suppress(TimeoutError):
                    wait(list(left), timeout=_POLL, return_when="FIRST_COMPLETED")
                finished = [future for future in left if future.done()]
                for future in finished:
                    if future.status != "finished":
                        raise self.translated(future.exception() if future.status == "error" else None)
                    done += left.pop(future)
                if finished:
                    patience = time.monotonic() + STALL_SECONDS
                    if advance:
                        advance(done, "")
                    continue
                self.check()
                if time.monotonic() > patience:
                    raise ClusterError(
                        f"no partition was read for {STALL_SECONDS:.0f} s; workers may be paused for lack of memory; "
                        "add workers, or lower the fraction"
                    )

    def call(self, work: Callable[[], Any], stop: Callable[[], Any]) -> Any:
        """Run ``work`` in a thread, because it may wait for ever, and return its result.

        ``stop`` is called if it is abandoned: after Ctrl-C, or because a worker was lost.
        """
        outcome: Future[Any] = Future()

        def run() -> None:
            try:
                outcome.set_result(work())
            except BaseException as error:
                outcome.set_exception(error)

        threading.Thread(target=copy_context().run, args=(run,), name="excir-train", daemon=True).start()
        try:
            while not outcome.done():
                with suppress(TimeoutError):
                    outcome.exception(timeout=_POLL)
                stop_if_requested()
                if not outcome.done():
                    self.check()
        finally:
            if not outcome.done() and self.client.status == "running":
                threading.Thread(target=stop, daemon=True).start()
                with suppress(TimeoutError):  # give XGBoost time to unlock its workers
                    outcome.exception(timeout=_PATIENCE)
        error = outcome.exception()
        if error is not None:
            raise self.translated(error) from error
        return outcome.result()

    def check(self) -> None:
        """Raise if the scheduler or a worker of the run was lost."""
        try:
            here = self.client.nthreads() if self.client.status == "running" else None
        except Exception as error:
            raise ClusterError(f"the connection to the scheduler was lost ({error}); run again") from error
        if here is None:
            raise ClusterError("the connection to the scheduler was lost; run again")
        lost = [worker.address for worker in self.workers if worker.address not in here]
        if lost:
            raise ClusterError(
                f"worker {lost[0]} was lost ({len(lost)} of {len(self.workers)}), usually for lack of memory; "
                "training cannot continue without it: run again with more workers or a lower fraction"
            )

    def translated(self, error: BaseException | None) -> BaseException:
        """The error to raise: of the cluster if it changed, else of the model, else as it is."""
        from distributed import KilledWorker
        from distributed.comm.core import CommClosedError
        from xgboost.core import XGBoostError

        try:
            self.check()
        except ClusterError as lost:
            return lost
        if error is None or isinstance(error, CancelledError | CommClosedError | KilledWorker | TimeoutError):
            return ClusterError(f"the cluster lost the training ({error or 'it was cancelled'}); run again")
        if isinstance(error, ModuleNotFoundError):
            return UsageError(f"{error} on the cluster; scheduler and workers need the same packages as this machine")
        return model_error(error) if isinstance(error, XGBoostError) else error


def _describe(dask_worker: Any) -> tuple[str, int]:
    rank = f"[xgboost.dask-{dask_worker.name}]:{dask_worker.address}"  # as XGBoost writes it
    return rank, int(dask_worker.memory_manager.memory_limit or 0)
