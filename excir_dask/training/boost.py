"""Reads rows on the workers, and runs XGBoost over them.

Partitions are assigned explicitly: in the order of the lake, to workers in the order of their XGBoost ranks. So the
same number of workers trains the same model every time.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from excir_dask.clusters.health import address_of
from excir_dask.graph.progress import bar
from excir_dask.lake.plan import Fragment
from excir_dask.training.rows import Recipe, Rows, Shape, read_partition, shape
from excir_dask.training.watch import Watch, Worker

if TYPE_CHECKING:
    from distributed import Client, Future


@dataclass(frozen=True)
class Boosted:
    """The result of XGBoost."""

    booster: Any
    history: dict[str, dict[str, list[float]]]
    """set -> metric -> value after each round"""


def place(sizes: Sequence[int], workers: int) -> list[int]:
    """The worker of each partition: neighbours together, about equal numbers of rows.

    >>> place([10, 10, 10, 10, 10, 10], 3)
    [0, 0, 1, 1, 2, 2]
    """
    total = sum(sizes)
    return [int(workers * (end - size / 2) / total) for size, end in zip(sizes, accumulate(sizes), strict=True)]


class Boosting:
    """One training run on a cluster.

    Parameters
    ----------
    client : Client
    workers : sequence of Worker
    token : str
        Of this run: keys must be unique on a cluster.
    progress : bool, optional
    """

    def __init__(self, client: Client, workers: Sequence[Worker], token: str, progress: bool | None):
        self.client = client
        self.watch = Watch(client, workers, progress)
        self.token = token
        self.partitions: list[Future[Any]] = []

    def read(self, spans: Sequence[Sequence[Fragment]], recipe: Recipe) -> list[Shape]:
        """Read every span on its worker, where it stays, and return the shapes."""
        sizes = [sum(sum(fragment.rows) for fragment in fragments) for fragments in spans]
        places = [self.watch.workers[i] for i in place(sizes, len(self.watch.workers))]
        self.watch.workers = list(dict.fromkeys(places))  # the others may join and leave
        shared = self.client.submit(_same, recipe, key=f"excir-train-recipe-{self.token}")
        shapes = []
        for i, (fragments, worker) in enumerate(zip(spans, places, strict=True)):
            here: dict[str, Any] = {"workers": [worker.address], "pure": False}
            name = f"excir-train-read-{self.token}-{i}"
            self.partitions.append(self.client.submit(read_partition, fragments, shared, key=name, **here))
            name = f"excir-train-shape-{self.token}-{i}"
            shapes.append(self.client.submit(shape, self.partitions[-1], key=name, **here))
        self.watch.wait(shapes, sizes, "reading rows")
        # if a worker is lost, partitions may be read elsewhere: XGBoost then notices, and releases its locks
        self.client.run_on_scheduler(_loosen, keys=[future.key for future in self.partitions])
        return list(self.client.gather(shapes))

    def train(
        self,
        shapes: Sequence[Shape],
        features: Sequence[str],
        weighted: bool,
        params: dict[str, Any],
        rounds: int,
        early_stopping: int,
    ) -> Boosted:
        """Run XGBoost over the partitions."""
        import xgboost
        from xgboost import dask as dxgb

        from excir_dask.training.callbacks import Report, stop

        rows = {"train": [s.counts.train for s in shapes], "validation": [s.counts.validation for s in shapes]}
        topic = f"excir-train-{self.token}"

        def matrix(part: str, ref: Any = None) -> Any:
            X, y = (self._array(part, name, rows[part], len(features)) for name in ("X", "y"))
            w = self._array(part, "w", rows[part], 1) if weighted else None
            return dxgb.DaskQuantileDMatrix(
                self.client, X, y, weight=w, feature_names=list(features), max_bin=params.get("max_bin"), ref=ref
            )

        def work() -> Any:
            train = matrix("train")
            evals = [(train, "train")]
            if any(rows["validation"]):
                evals.append((matrix("validation", ref=train), "validation"))
            self.partitions.clear()  # the matrices hold their rows now
            # else every worker prints its rank; warnings about parameters have been shown already
            with xgboost.config_context(verbosity=0):
                return dxgb.train(
                    self.client, params, train, rounds, evals=evals, early_stopping_rounds=early_stopping or None,
                    verbose_eval=False, callbacks=[Report(self.token, topic if advance else None)],
                    coll_cfg=_tracker(self.client),
                )  # fmt: skip

        with bar(self.watch.progress, rounds, "training") as advance:
            if advance:
                self.client.subscribe_topic(topic, lambda event: advance(event[1]["round"], event[1]["text"]))
            try:
                found = self.watch.call(work, lambda: self.client.run(stop, self.token))
            finally:
                if advance:
                    with suppress(Exception):
                        self.client.unsubscribe_topic(topic)
        return Boosted(
            found["booster"],
            {
                part: {metric: [float(value) for value in values] for metric, values in metrics.items()}
                for part, metrics in found["history"].items()
            },
        )

    def _array(self, part: str, name: str, rows: Sequence[int], width: int) -> Any:
        """A dask array of the matrix, labels or weights of one set: a block per partition with rows of the set."""
        import dask.array as da
        from dask.delayed import delayed

        pick = delayed(_pick, pure=False)
        return da.concatenate(
            [
                da.from_delayed(
                    pick(future, part, name, dask_key_name=f"excir-train-{part}-{name}-{self.token}-{i}"),
                    shape=(count, width) if name == "X" else (count,),
                    dtype="float32",
                )
                for i, (future, count) in enumerate(zip(self.partitions, rows, strict=True))
                if count
            ]
        )


def _same(recipe: Recipe) -> Recipe:
    return recipe


def _loosen(dask_scheduler: Any, keys: Sequence[str]) -> None:
    for key in keys:
        dask_scheduler.tasks[key].loose_restrictions = True


def _pick(partition: Any, part: str, name: str) -> Any:
    rows: Rows = getattr(partition, part)
    return getattr(rows, name)


def _tracker(client: Client) -> Any:
    """Where the workers meet; for a cluster inside this process that is the loopback address."""
    from xgboost.collective import Config

    return Config(tracker_host_ip="127.0.0.1") if address_of(client).startswith("inproc:") else None
