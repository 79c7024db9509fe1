"""From a lake to a model: :func:`train` is the order of things."""

from __future__ import annotations

import json
import logging
import os
import platform
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from excir_dask.clusters.connect import own_client
from excir_dask.common.wording import count, size
from excir_dask.errors import DataError, LakeError, UsageError
from excir_dask.graph.progress import Work
from excir_dask.graph.run import ClusterRunner
from excir_dask.lake.locate import locate
from excir_dask.lake.plan import DEFAULT_BUDGET, row_spans
from excir_dask.lake.sample import Sample
from excir_dask.lake.schema import Column, describe_columns
from excir_dask.lake.select import Selection, select
from excir_dask.lake.snapshot import Snapshot, check_unchanged, take_snapshot
from excir_dask.pipeline.metadata import lake_source
from excir_dask.pipeline.option_kinds import parse_bytes
from excir_dask.pipeline.run_id import make_id, saved_id, say_done
from excir_dask.training.boost import Boosted, Boosting
from excir_dask.training.labels import LabelValues, Target, decide, find_values, label_kind, merge_values
from excir_dask.training.params import check, check_names, complete, rehearse
from excir_dask.training.result import Training, TrainingProvenance, check_target, sidecar
from excir_dask.training.rows import VALUE, Counts, Recipe, Shape
from excir_dask.training.watch import Worker, workers_of
from excir_dask.version import __version__

if TYPE_CHECKING:
    from distributed import Client

log = logging.getLogger(__name__)


def train(
    lake: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    label: str,
    out: str | os.PathLike[str] | None = None,
    features: str | Sequence[str] | None = None,
    weights: str | None = None,
    params: Mapping[str, Any] | None = None,
    rounds: int = 200,
    early_stopping: int = 20,
    validation: float = 0.2,
    fraction: float = 1.0,
    seed: int = 0,
    budget: int | str = DEFAULT_BUDGET,
    scheduler: str | Client | None = None,
    cluster: str | os.PathLike[str] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    table_version: int | None = None,
    verify_checksums: bool = True,
    progress: bool | None = None,
    overwrite: bool = False,
    force: bool = False,
) -> Training:
    """Train an XGBoost model on the rows of a lake.

    The rows used must fit into the memory of the workers together, at 4 bytes a value; ``fraction`` makes them fewer.
    The same lake, arguments, number of workers and threads of each give the same model, byte for byte. Other numbers
    give another model of the same quality: XGBoost merges the edges of its bins from what each worker holds.

    Parameters
    ----------
    lake : path, URL, glob or list of files
        Parquet files, as for :func:`~excir_dask.explain`.
    label : str
        Column to predict. Text, truth values and integers are classes if there are 2 to 100 different ones
        (``binary:logistic``, ``multi:softprob``), floating numbers only if they are all 0 or 1; everything else is a
        number to predict (``reg:squarederror``). Rows without a label are left out.
    out : path, optional
        Where to save the model, as ``.ubj`` or ``.json``; see :meth:`Training.save`.
    features : names or shell patterns, optional
        Columns to learn from; a pattern that begins with ``!`` takes columns away. Default: every number that is
        neither label nor weights.
    weights : str, optional
        Column of row weights.
    params : mapping, optional
        XGBoost's parameters. An ``objective`` named here overrides what the label implies.
    rounds : int
        Of boosting, at most.
    early_stopping : int
        Rounds without a better validation metric after which training stops; 0 for never. With several
        ``eval_metric`` the last one decides. The model keeps the trees up to the best round.
    validation : float
        Share of the rows that the model is judged by and never trained on; 0 for none (and no early stopping).
        Whether a row is one of them depends on ``seed`` and the row alone.
    fraction : float
        Share of the rows to use at all; samples are nested.
    seed : int
        Of the sample, the validation rows and XGBoost.
    budget : int or str
        Bytes that one partition of rows may take; a row group larger than that is one partition.
    scheduler : str or Client, optional
        A cluster's address or client. Default: the active client, or else all threads of this machine.
    cluster : path, optional
        In place of ``scheduler``: a file that says how to start or reach a cluster, such as those in ``cluster/``.
    storage_options : mapping, optional
        For fsspec filesystems; their values are never shown or saved.
    table_version : int, optional
        Version of a Delta Lake table, or snapshot id of an Iceberg table; by default the current one.
    verify_checksums : bool
        Check pages of the files that carry a checksum against it, and end where one does not match.
    progress : bool, optional
        Show progress: bars on a terminal, else a line now and then; by default on a terminal only.
    overwrite : bool
        Replace what is already at ``out``. A model of the same arguments and files (its run id) is not trained again.
    force : bool
        Train again what is there already.

    Returns
    -------
    Training
    """
    began = time.perf_counter()
    params = dict(params or {})
    _check_arguments(rounds, early_stopping, validation)
    check(params)
    saved = None
    out = None if out is None else os.path.expanduser(out)
    if out is not None:
        saved = saved_id(sidecar(Path(out)), ["provenance", "run_id"]) if Path(out).is_file() else None
        if saved is None:  # before the footers are read, which may take minutes
            check_target(out, overwrite)
    sample = Sample(fraction, seed)
    split = Sample(validation, seed, stream="validation") if validation else None
    if not isinstance(lake, str | os.PathLike | Sequence):
        raise UsageError(
            f"a lake to train on is a path, a URL, a glob or a list of files, not {type(lake).__name__}; "
            "write it as Parquet files first"
        )
    snapshot = take_snapshot(locate(lake, storage_options, table_version, verify_checksums))
    for remark in snapshot.location.remarks:
        log.warning("%s", remark)
    kind, selection = _select(snapshot, label, weights, features)
    size = parse_bytes(budget)
    spans = row_spans(snapshot, selection, size, VALUE)
    settings = {
        "label": label, "weights": weights, "rounds": rounds, "early_stopping": early_stopping,
        "validation": validation, "fraction": fraction, "seed": seed,
    }  # fmt: skip
    run = make_id({**settings, "version": __version__, "lake": snapshot.fingerprint, "params": params,
                   "features": selection.features, "budget": size})  # fmt: skip
    same = saved == run
    if out is not None:
        if same and not force:
            say_done(run, out)
            return Training.load(out)
        check_target(out, overwrite or same)
    token = uuid.uuid4().hex

    # distributed and XGBoost look for the current client, whatever they are given
    with own_client(scheduler, cluster) as client, client.as_current():
        workers = workers_of(client)
        _check_memory(snapshot, selection, fraction, workers)
        found = _label_values(client, snapshot, selection, kind, size, token, progress)
        target = decide(label, kind, found, params.get("objective"))
        full = complete(params, target, seed)
        rehearse(full, selection.features, target, found)
        recipe = Recipe(snapshot.location.filesystem, selection.features, target, weights, sample, split)
        boosting = Boosting(client, workers, token, progress)
        shapes = boosting.read(spans, recipe)
        counts = _check_rows(shapes, target, validation)
        stopping = early_stopping if validation else 0
        boosted = boosting.train(shapes, selection.features, weights is not None, full, rounds, stopping)
    check_unchanged(snapshot)

    booster, metric, best, score = _cut(boosted, bool(stopping))
    booster.feature_names = list(selection.features)
    booster.set_attr(
        best_iteration=str(best),
        best_score=repr(score),
        label=label,
        classes=json.dumps(target.classes),
        excir_train=json.dumps({**settings, "params": full}, sort_keys=True),
    )
    training = Training(
        model=bytes(booster.save_raw("ubj")),
        features=selection.features,
        label=label,
        classes=target.classes,
        objective=target.objective,
        metric=metric,
        best_iteration=best,
        best_score=score,
        history=boosted.history,
        rows=asdict(counts),
        params=full,
        settings=settings,
        left_out=selection.left_out,
        provenance=_provenance(snapshot, workers, spans, run),
        seconds=round(time.perf_counter() - began, 3),
    )
    if out is None:
        return training
    training = training.save(out, overwrite or same)
    log.info("saved in %s", out)
    return training


def _check_arguments(rounds: int, early_stopping: int, validation: float) -> None:
    if rounds < 1:
        raise UsageError(f"rounds is {rounds}; it must be at least 1")
    if early_stopping < 0:
        raise UsageError(f"early_stopping is {early_stopping}; it must be 0 (never stop early) or more")
    if not 0.0 <= validation < 1.0:
        raise UsageError(f"validation is {validation}; it must be at least 0 and below 1")


def _select(
    snapshot: Snapshot, label: str, weights: str | None, features: str | Sequence[str] | None
) -> tuple[str, Selection]:
    """The label's kind, and the columns to read."""
    columns = describe_columns(snapshot)
    kind = label_kind(snapshot, columns, label)
    # a label of text has its own reader, so that the contract of numbers does not hold for it
    columns[label] = Column(label, columns[label].types, None, key=columns[label].key)
    selection = select(columns, [label], weights, features)
    check_names(selection.features)
    if snapshot.rows == 0:
        raise LakeError(f"{snapshot.location.name} has {count(len(snapshot.files), 'file')} but no rows")
    return kind, selection


def _label_values(
    client: Client,
    snapshot: Snapshot,
    selection: Selection,
    kind: str,
    budget: int,
    token: str,
    progress: bool | None,
) -> LabelValues:
    """One pass over the label column of the whole lake: classes must not depend on the sample."""
    (label,) = selection.outputs
    spans = row_spans(snapshot, replace(selection, features=()), budget)
    filesystem = f"excir-label-filesystem-{token}"
    graph: dict[Any, Any] = {filesystem: snapshot.location.filesystem}
    work: dict[Any, int] = {}
    for i, fragments in enumerate(spans):
        key = (f"excir-label-{token}", i)
        graph[key] = (find_values, list(fragments), label, kind, filesystem)
        work[key] = sum(sum(fragment.rows) for fragment in fragments)
    rows = Work(work, sum(work.values()))
    return merge_values(ClusterRunner(client, progress).run(graph, list(work), rows, "reading labels"))


def _check_memory(snapshot: Snapshot, selection: Selection, fraction: float, workers: Sequence[Worker]) -> None:
    """Refuse what can never fit: every worker holds its rows, and XGBoost's own form of them (a byte a value)."""
    from distributed.system import MEMORY_LIMIT

    limits = [worker.memory for worker in workers]
    if all(worker.address.startswith("inproc:") for worker in workers):
        limits = [MEMORY_LIMIT]
    needed = int(snapshot.rows * fraction * (len(selection.features) + 2) * (VALUE + 1))
    if all(limits) and needed > sum(limits):
        raise UsageError(
            f"the rows take about {size(needed)} in memory, but {count(len(workers), 'worker')} have "
            f"{size(sum(limits))} together; add workers, or train on a fraction of at most "
            f"{0.8 * fraction * sum(limits) / needed:.2g}"
        )


def _check_rows(shapes: Sequence[Shape], target: Target, validation: float) -> Counts:
    counts = sum((part.counts for part in shapes), Counts())
    found = (
        f"{counts.lake} rows, {counts.sampled} in the sample, {counts.without_label} of those without a label, "
        f"{counts.without_weight} without a positive weight, {counts.train} to train on, "
        f"{counts.validation} to validate with"
    )
    if counts.train == 0:
        raise DataError(f"no row is left to train on: {found}")
    if validation and counts.validation == 0:
        raise DataError(f"no row is left to validate with: {found}; raise the fraction, or set validation to 0")
    if min(part.least for part in shapes) == max(part.greatest for part in shapes):
        raise DataError(f"column '{target.label}' (label) has one value in all training rows: {found}")
    return counts


def _cut(boosted: Boosted, stopping: bool) -> tuple[Any, str, int, float]:
    """The model up to its best round, so that everybody predicts with the same trees; metric, round and score."""
    judged = boosted.history.get("validation", boosted.history["train"])
    metric, values = list(judged.items())[-1]
    best = int(boosted.booster.best_iteration) if stopping else len(values) - 1
    return boosted.booster[: best + 1], metric, best, values[best]


def _provenance(snapshot: Snapshot, workers: Sequence[Worker], spans: Sequence[Any], run: str) -> TrainingProvenance:
    return TrainingProvenance(
        lake=lake_source(snapshot),
        workers=len(workers),
        partitions=len(spans),
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        versions={
            "excir-dask": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in ("dask", "pyarrow", "numpy", "xgboost")},
        },
        run_id=run,
    )
