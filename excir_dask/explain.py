"""Start here: options meet the lake, the lake is measured, and the measurement becomes a result."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from excir_dask.clusters.connect import runner_for
from excir_dask.common.wording import count, size
from excir_dask.errors import UsageError
from excir_dask.graph.checkpoint import Checkpoint, open_checkpoint
from excir_dask.graph.run import LocalRunner, Runner
from excir_dask.lake.frames import is_pandas
from excir_dask.lake.in_memory import as_lake
from excir_dask.lake.outside import check_outside
from excir_dask.lake.plan import DEFAULT_BUDGET
from excir_dask.lake.stores import filesystem_of
from excir_dask.pipeline.adaptive import run_adaptive
from excir_dask.pipeline.inputs import Inputs, is_url, resolve_inputs
from excir_dask.pipeline.options import ExplainOptions
from excir_dask.pipeline.run import run
from excir_dask.pipeline.run_id import identity, open_target, run_id
from excir_dask.results.explanation import Explanation
from excir_dask.results.storage import REPORT

if TYPE_CHECKING:
    from distributed import Client

log = logging.getLogger(__name__)


def explain(
    lake: Any,
    *misplaced: Any,
    output: str | Sequence[str] | Mapping[str, str] | None = None,
    model: Any = None,
    predict_type: str = "margin",
    model_columns: Sequence[str] | None = None,
    allow_pickle: bool = False,
    features: str | Sequence[str] | None = None,
    categoricals: str = "omit",
    max_categories: int = 20,
    groups: Mapping[str, Sequence[str]] | str | os.PathLike[str] | None = None,
    group_prefix: str | None = None,
    group_correlated: float | None = None,
    group_rows: int = 5000,
    weights: str | None = None,
    where: str | None = None,
    by: str | Sequence[str] | None = None,
    fraction: float | str = 1.0,
    sampling: str | None = None,
    seed: int = 0,
    target_jaccard: float = 0.9,
    confidence: float = 0.95,
    k: int = 8,
    centering: str = "midhinge",
    rank_by: str = "strength",
    dependence: bool = True,
    reference: str | os.PathLike[str] | Explanation | None = None,
    budget: int | str = DEFAULT_BUDGET,
    scheduler: str | Client | None = None,
    cluster: str | os.PathLike[str] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    table_version: int | None = None,
    verify_checksums: bool = True,
    progress: bool | None = None,
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    force: bool = False,
) -> Explanation:
    """Score every feature of a lake by its co-movement with a model's output.

    Parameters
    ----------
    lake : path, URL, glob, list of files, or a table in memory
        Parquet files. Names that begin with ``_`` or ``.`` are left out; Hive partition keys are columns. Tables are
        pandas, dask and polars DataFrames, pyarrow tables and datasets, structured numpy arrays, and whatever has
        ``__arrow_c_stream__``.
    output : str, list of str, or mapping class -> column
        Column or columns with the model's output (margins rather than probabilities or labels).
    model : file or object
        In place of ``output``: an XGBoost, LightGBM or ONNX file, an XGBoost, LightGBM or scikit-learn model, or any
        callable on a pandas DataFrame that returns one or more columns. It scores each row once.
    predict_type : {"margin", "probability"}
        Which of them to explain, if the model has both.
    model_columns : list of str, optional
        Columns that the model takes, in its order, if it does not store their names.
    allow_pickle : bool
        Load a pickle or joblib file as the model. Loading one runs whatever code is in it.
    features : names or shell patterns, optional
        Columns to explain; a pattern that begins with ``!`` excludes columns, and a vector's name stands for all its
        elements. Default: the model's columns, or all numeric ones.
    categoricals : {"omit", "indicators"}
        Leave text and dictionary columns out, or make each category a 0/1 feature and the column a group.
    max_categories : int
        Largest categories of a column that become features; the others become one feature together.
    groups : mapping name -> features, path of a YAML or JSON file, or "correlation"
        Groups to score as one; they may overlap. "correlation" finds them (as ``group_correlated=0.9``).
    group_prefix : str, optional
        Features whose names agree up to their last separator form a group: with ``"_"``, ``door_1`` and
        ``door_2`` are the group ``door``.
    group_correlated : float, optional
        Find groups of features whose pairwise absolute rank correlations are all at least this large in a sample.
    group_rows : int
        Rows of that sample.
    weights : str, optional
        Column of row weights. Whole weights count as repeated rows, other weights are scaled to a mean of 1.
    where : str, optional
        Rows to explain: comparisons of columns with values or other columns, as in Python, joined by ``and``, ``or``
        and ``not``: ``"date >= '2026-09-01' and region in ['EU', 'UK']"``. ``x is None`` asks for missing values; names
        that are not plain words go in backticks. Columns may be text, dates, truth values or partition keys, and need
        not be features. Rows for which the condition is false, or unknown because a value is missing, do not count.
        Files and row groups whose statistics rule out a match are not read.
    by : str or list of two, optional
        Columns of text, whole numbers or true and false, or Hive keys, whose values are segments: each has scores,
        groups and errors of its own, from the same pass (``Explanation.segments``). At most 1,000 are told apart, those
        with most rows.
    fraction : float or "auto"
        Share of the rows to use. Samples are nested and depend only on ``seed`` and the rows. "auto" takes more rows
        until the top features are those of all rows with the given confidence.
    sampling : {"rows", "row-groups"}, optional
        Draw single rows (the default) or whole row groups. Row groups that are not drawn are not read; but rows of a
        row group often resemble each other, and the standard errors account for that. "auto" chooses for itself.
    seed : int
        Seed of the sample.
    target_jaccard, confidence, k : float, float, int
        Target of "auto": with probability ``confidence``, the Jaccard index of the top ``k`` and that of all rows is at
        least ``target_jaccard``.
    centering : {"midhinge", "median", "mean", "trimmed"}
        Centre of features and outputs.
    rank_by : {"strength", "dependence", "cir"}
        Rank by how far ``cir`` is from what chance gives (``abs(lift)``), by ``dependence``, which sees movements that
        are not one-way too, or by ``cir`` as the paper does (features that move against the output come last). In the
        first two orders, features that chance explains come last.
    dependence : bool
        Count rows by 16 x 16 cells of feature and output: what ``dependence`` and the flags "bends" and "interacts"
        come from. Without it, those columns are empty.
    reference : path or Explanation, optional
        An earlier explanation of the same features and outputs, such as yesterday's. Its provisional centres are used
        and no pilot is read: ``merge`` can then add the two up. Scores do not depend on it beyond ``center_bound``.
    budget : int or str
        Decoded bytes that one slice may hold, for instance ``"64MB"``. Each thread holds one slice.
    scheduler : str or Client, optional
        A cluster's address or client. Default: the active client, or else threads of this machine.
    cluster : path, optional
        In place of ``scheduler``: a file that says how to start or reach a cluster, such as those in ``cluster/``.
    checkpoint : path or URL, optional
        Folder for the states of finished slices, which all workers must reach. If a run ends early, the same run
        resumes from them and gives the same result to the byte. They are removed once it is saved in ``out``.
    storage_options : mapping, optional
        Options of the fsspec filesystem of the lake, and of ``checkpoint`` if that is a URL.
    table_version : int, optional
        Version of a Delta Lake table, or snapshot id of an Iceberg table. Default: the current one, for the
        whole run.
    verify_checksums : bool
        Verify the checksums of pages that have one; a mismatch ends the run. The result does not depend on it.
    progress : bool, optional
        Show progress: bars on a terminal, else a line now and then; by default on a terminal only.
    out : path, optional
        Folder to save the explanation in. If it already holds that of the same options and files (its run id), that
        one is returned and nothing is computed.
    overwrite : bool
        Replace another explanation in that folder.
    force : bool
        Compute again, even if ``out`` or ``checkpoint`` hold the result.

    Returns
    -------
    Explanation

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"a": [1.0, 2, 3, 4], "b": [4.0, 1, 3, 2], "pred": [10.0, 20, 30, 40]})
    >>> explain(frame, output="pred").top(2)[["feature", "cir", "direction"]]
      feature   cir  direction
    0       a  1.00          1
    1       b  0.25         -1
    """
    given = locals()
    del given["lake"], given["misplaced"]
    if misplaced:
        raise UsageError(
            f"explain takes the data first and everything else by name, but {1 + len(misplaced)} values have no name; "
            "write explain(data, model=model) or explain(data, output='column')"
        )
    return explain_with(lake, ExplainOptions(**given))


def explain_with(lake: Any, options: ExplainOptions) -> Explanation:
    """What :func:`explain` does with its options, in order."""
    lake = as_lake(lake)
    check_outside(options.out, lake, "the result")
    check_outside(options.checkpoint, lake, "checkpoint")
    target = open_target(options.out, options.overwrite)
    inputs = resolve_inputs(lake, options)
    run_name = run_id(inputs, options)
    if (saved := target.finished(run_name, options.force)) is not None:
        return Explanation.load(saved)
    _log_plan(inputs, run_name)
    with _runner(lake, options) as runner:
        checkpoint = _checkpoint(inputs, options)
        if options.adaptive:
            found = run_adaptive(inputs, options, runner, checkpoint)
        else:
            found = run(inputs, options, runner, checkpoint=checkpoint).explanation
    found = replace(found, provenance=replace(found.provenance, run_id=run_name))
    log.debug("%s bytes read in %.1f s", f"{found.provenance.bytes_read:,}", found.provenance.seconds)
    if target.folder is not None:
        found.save(target.folder, options.overwrite or target.holds(run_name))
        log.info("saved in %s", target.folder)
        if not (target.folder / REPORT).is_file():
            log.info("no report.html: reports need bokeh and jinja2; pip install 'excir-dask[report]'")
        if checkpoint is not None:  # nothing is left to resume
            checkpoint.remove()
    return found


def _runner(lake: Any, options: ExplainOptions) -> AbstractContextManager[Runner]:
    if is_pandas(lake):  # it is in this process's memory already: sending it to a cluster would only cost
        return closing(LocalRunner(options.progress, threads=True))
    return runner_for(options.scheduler, options.progress, options.cluster)


def _checkpoint(inputs: Inputs, options: ExplainOptions) -> Checkpoint | None:
    """Where the states of slices go, and come from."""
    if options.checkpoint is None:
        return None
    if inputs.snapshot is None:
        raise UsageError(
            "a DataFrame has no files that identify the run, so it cannot be resumed; leave checkpoint out"
        )
    model = inputs.outputs.model
    if model is not None and model.sha256 is None:
        raise UsageError(f"{model.source} cannot be pickled, so no later run can recognise it; leave checkpoint out")
    place = os.fspath(options.checkpoint)
    filesystem, root = filesystem_of(place, options.storage_options if is_url(place) else None)
    checkpoint = open_checkpoint(filesystem, root, identity(inputs, options))
    if options.force:
        checkpoint.forget()
    elif states := checkpoint.states():
        log.info("resuming from %d states of an earlier run in %s", states, place)
    return checkpoint


def _log_plan(inputs: Inputs, run_name: str | None) -> None:
    plan, snapshot = inputs.plan, inputs.snapshot
    counts = [*([(len(snapshot.files), "file")] if snapshot else []), (inputs.rows, "row")]
    counts += [(len(plan.selection.features), "feature"), (sum(1 for _ in plan.slices()), "slice")]
    parts = ", ".join(count(number, noun) for number, noun in counts)
    log.debug("plan: %s of at most %s decoded; run id %s", parts, size(plan.slice_bytes), run_name)
