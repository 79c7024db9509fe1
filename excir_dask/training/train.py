"""From a lake to a model: :func:`train` lists the steps in order."""

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
from excir_dask.common.wording import count
from excir_dask.errors import LakeError, UsageError
from excir_dask.graph.progress import Work
from excir_dask.graph.run import ClusterRunner
from excir_dask.lake.locate import locate
from excir_dask.lake.plan import DEFAULT_BUDGET, row_spans
from excir_dask.lake.sample import Sample
from excir_dask.lake.schema import Column, describe_columns
from excir_dask.lake.select import Selection, select
from excir_dask.lake.snapshot import Snapshot, check_unchanged, take_snapshot
from excir_dask.pipeline.metadata import lake_source
from excir_dask.pipeline.option_kinds import Text, parse_bytes
from excir_dask.pipeline.options import check_option
from excir_dask.pipeline.run_id import make_id, saved_id, say_done
from excir_dask.training.boost import Boosted, Boosting
from excir_dask.training.checks import check_arguments, check_memory, check_rows
from excir_dask.training.labels import LabelValues, decide, find_values, label_kind, merge_values
from excir_dask.training.params import check, check_names, complete, rehearse
from excir_dask.training.result import Training, TrainingProvenance, check_model_path, sidecar
from excir_dask.training.rows import VALUE, Recipe
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

    The rows must fit into the memory of all workers together, at 4 bytes per value; ``fraction`` uses fewer rows.
    The same lake, arguments, number of workers and threads per worker give the same model, byte for byte. Another
    number gives another model of the same quality, because XGBoost merges bin edges from what each worker holds.

    Parameters
    ----------
    lake : path, URL, glob or list of files
        Parquet files, as for :func:`~excir_dask.explain`.
    label : str
        Column to predict. Text, Booleans and integers with 2 to 100 distinct values are classes (``binary:logistic``,
        ``multi:softprob``), and so are floats that are all 0 or 1; everything else is a number to predict
        (``reg:squarederror``). Rows without a label are dropped.
    out : path, optional
        Where to save the model, as ``.ubj`` or ``.json``; see :meth:`Training.save`.
    features : names or shell patterns, optional
        Columns to learn from; a pattern that starts with ``!`` removes columns. Default: all numeric columns except
        label and weights.
    weights : str, optional
        Column of row weights.
    params : mapping, optional
        XGBoost's parameters. An ``objective`` given here overrides what the label implies.
    rounds : int
        Boosting rounds, at most.
    early_stopping : int
        Stop after this many rounds without a better validation metric; 0 for never. With several ``eval_metric`` the
        last one decides. The model keeps the trees up to the best round.
    validation : float
        Share of the rows to validate with, which are never trained on; 0 for none (and no early stopping). Whether a
        row is one of them depends only on ``seed`` and the row.
    fraction : float
        Share of the rows to use; samples are nested.
    seed : int
        Seed of the sample, the validation rows and XGBoost.
    budget : int or str
        Most bytes of one partition of rows; a larger row group is one partition.
    scheduler : str or Client, optional
        Address or client of a cluster. Default: the active client, or all threads of this machine.
    cluster : path, optional
        Instead of ``scheduler``: a file that says how to start or reach a cluster, such as those in ``cluster/``.
    storage_options : mapping, optional
        For fsspec filesystems; their values are never shown or saved.
    table_version : int, optional
        Version of a Delta Lake table, or snapshot id of an Iceberg table; by default the current one.
    verify_checksums : bool
        Verify pages that carry a checksum, and fail if one does not match.
    progress : bool, optional
        Show progress: bars on a terminal, else a line now and then; by default only on a terminal.
    overwrite : bool
        Replace the model at ``out``. A model of the same arguments and files (its run id) is not trained again.
    force : bool
        Train again even if that model is there.

    Returns
    -------
    Training
    """
    began = time.perf_counter()
    params = dict(params or {})
    check_arguments(rounds, early_stopping, validation)
    Text().check("label", label)
    check_option("weights", weights)
    check(params)
    saved = None
    out = None if out is None else os.path.expanduser(out)
    if out is not None:
        saved = saved_id(sidecar(Path(out)), ["provenance", "run_id"]) if Path(out).is_file() else None
        if saved is None:  # before the footers are read, which may take minutes
            check_model_path(out, overwrite)
    sample = Sample(fraction, seed)
    split = Sample(validation, seed, stream="validation") if validation else None
    if not isinstance(lake, str | os.PathLike | Sequence):
        raise UsageError(
            f"lake is a {type(lake).__name__}; give a path, URL, glob or list of files: write it as Parquet files first"
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
        check_model_path(out, overwrite or same)
    token = uuid.uuid4().hex

    # distributed and XGBoost use the current client, whatever they are given
    with own_client(scheduler, cluster) as client, client.as_current():
        workers = workers_of(client)
        check_memory(snapshot, selection, fraction, workers)
        found = _label_values(client, snapshot, selection, kind, size, token, progress)
        target = decide(label, kind, found, params.get("objective"))
        full = complete(params, target, seed)
        rehearse(full, selection.features, target, found)
        recipe = Recipe(snapshot.location.filesystem, selection.features, target, weights, sample, split)
        boosting = Boosting(client, workers, token, progress)
        shapes = boosting.read(spans, recipe)
        counts = check_rows(shapes, target, validation)
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


def _select(
    snapshot: Snapshot, label: str, weights: str | None, features: str | Sequence[str] | None
) -> tuple[str, Selection]:
    """The label's kind, and the columns to read."""
    columns = describe_columns(snapshot)
    kind = label_kind(snapshot, columns, label)
    # a text label has its own reader, so it need not be numeric
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


def _cut(boosted: Boosted, stopping: bool) -> tuple[Any, str, int, float]:
    """The model up to its best round, so that all predict with the same trees; its metric, round and score."""
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
