"""Running a graph: on this machine's threads, or on a cluster that is watched for failures."""

from __future__ import annotations

import queue
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from excir_dask.errors import ClusterError
from excir_dask.graph.interrupts import stop_if_requested
from excir_dask.graph.progress import Work, counting
from excir_dask.graph.spill import SpillingStore
from excir_dask.graph.tree import Graph, Key

if TYPE_CHECKING:
    from distributed import Client, Future

RETAINED_BYTES = 256 * 2**20
"""results that a local run retains in memory between its scans; more go to a temporary folder"""

LARGEST_IN_GRAPH = 8 * 2**20
"""bytes of a value that a graph may hold: dask warns of graphs above 10 MB"""

STALL_SECONDS = 900.0
"""seconds without a finished slice after which a cluster counts as stalled"""


class Runner(Protocol):
    """Computes some keys of a graph and shows its progress."""

    in_process: bool
    """tasks run in this process and see its objects; else they get copies"""

    def run(self, graph: Graph, keys: Sequence[Key], work: Work, label: str, retain: Sequence[Key] = ()) -> list[Any]:
        """Values of ``keys``; ``work`` says how much each task adds to the progress called ``label``.

        The runner retains the values of ``retain``: a later graph with the same keys does not compute them again.
        """

    def send(self, value: Any, size: int) -> Any:
        """What stands in graphs for a value of so many bytes that many tasks need."""

    def close(self) -> None:
        """Release the retained values."""


class LocalRunner:
    """dask's own threads, or whichever local scheduler dask's configuration names (unless it must be threads)."""

    in_process = True

    def __init__(self, progress: bool | None = None, threads: bool = False, retained_bytes: int = RETAINED_BYTES):
        self.progress = progress
        self.threads = threads
        self.retained = SpillingStore(retained_bytes)

    def run(self, graph: Graph, keys: Sequence[Key], work: Work, label: str, retain: Sequence[Key] = ()) -> list[Any]:
        import dask.base
        import dask.multiprocessing
        import dask.threaded
        from dask.callbacks import Callback

        get = None if self.threads else dask.base.get_scheduler()
        if retain and get is dask.multiprocessing.get:
            get = None  # retained values are in this process, out of reach of others
        graph = {**graph, **{key: self.retained.task(key, graph[key]) for key in retain}}
        with counting(self.progress, work, label) as advance:

            def done(key: Key, *_: object) -> None:
                stop_if_requested()
                advance(key)

            with Callback(posttask=done):
                return list((get or dask.threaded.get)(graph, list(keys)))

    def send(self, value: Any, size: int) -> Any:
        return value

    def close(self) -> None:
        self.retained.close()


class ClusterRunner:
    """A dask cluster. Slices are not pinned to workers: slices of a lost worker go to the others."""

    in_process = False

    def __init__(self, client: Client, progress: bool | None = None, stall_seconds: float = STALL_SECONDS):
        self.client = client
        self.progress = progress
        self.stall_seconds = stall_seconds
        self.retained: list[Future[Any]] = []

    def run(self, graph: Graph, keys: Sequence[Key], work: Work, label: str, retain: Sequence[Key] = ()) -> list[Any]:
        slices = [key for key in work.tasks if key in graph]
        futures = self.client.get(graph, [*slices, *keys, *retain], sync=False)
        watched, results = futures[: len(slices)], futures[len(slices) : len(slices) + len(keys)]
        # while these futures exist, workers keep the results in memory or on disk; lost ones are recomputed
        self.retained += futures[len(slices) + len(keys) :]
        finished: queue.SimpleQueue[Future[Any]] = queue.SimpleQueue()
        try:
            for future in [*watched, *results]:
                future.add_done_callback(finished.put)
            with counting(self.progress, work, label) as advance:
                waiting = {future.key for future in [*watched, *results]}
                del futures, watched
                while waiting:
                    future = self._next(finished)
                    if future.status != "finished":
                        self._raise(future)
                    if future.key in waiting:  # a requested key may be a slice itself, and then comes twice
                        waiting.discard(future.key)
                        advance(future.key)
                    del future  # so that workers release a state as soon as it is merged
            return list(self.client.gather(results))
        finally:
            self.client.cancel([future for future in results if not future.done()])

    def send(self, value: Any, size: int) -> Any:
        """The value itself, so that the scheduler can send it again; a large one goes to every worker at once."""
        if size <= LARGEST_IN_GRAPH:
            return value
        future: Future[Any] = self.client.scatter(value, broadcast=True, hash=False)
        self.retained.append(future)
        return future

    def close(self) -> None:
        self.retained.clear()

    def _next(self, finished: queue.SimpleQueue[Future[Any]]) -> Future[Any]:
        patience = time.monotonic() + self.stall_seconds
        while True:
            stop_if_requested()
            try:
                return finished.get(timeout=1.0)
            except queue.Empty:
                if self.client.status != "running":
                    raise ClusterError("the connection to the scheduler was lost; run again") from None
                if time.monotonic() > patience:
                    raise ClusterError(
                        f"no slice has finished for {self.stall_seconds:.0f} s; check the workers on the dashboard "
                        f"({self.client.dashboard_link}): they may be paused for lack of memory, or all gone"
                    ) from None

    def _raise(self, future: Future[Any]) -> None:
        from distributed import KilledWorker

        if future.status in ("cancelled", "lost"):
            raise ClusterError(
                "the cluster lost the run (its scheduler was restarted, or the run was cancelled); run again"
            )
        error = future.exception()
        if isinstance(error, KilledWorker):
            raise ClusterError(
                f"workers died repeatedly on one slice, most often for lack of memory: {error}; "
                "give workers more memory, or lower the slice budget"
            ) from error
        raise error.with_traceback(future.traceback())
