"""Start reading here: :func:`explain` is the whole product in order, from a lake to an explanation."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, closing
from typing import TYPE_CHECKING, Any

import numpy as np

from excir_dask.assemble import facts, output_table, provenance
from excir_dask.clusters import runner_for
from excir_dask.errors import DataError, UsageError, nearest
from excir_dask.explanation import Explanation
from excir_dask.graph.run import LocalRunner, Runner
from excir_dask.graph.scans import Scans
from excir_dask.graph.slices import LakeStats
from excir_dask.group_choice import all_groups, understand_groups
from excir_dask.inputs import Outputs, parse_bytes, prepare, understand_outputs
from excir_dask.kernels.centers import LEVELS, center_errors, centers, concatenate
from excir_dask.kernels.scores import score
from excir_dask.kernels.sums import Sums
from excir_dask.lake.frames import is_pandas
from excir_dask.lake.plan import DEFAULT_BUDGET
from excir_dask.lake.sample import Sample
from excir_dask.lake.snapshot import check_unchanged
from excir_dask.outputs.checks import check_categories, known_categories
from excir_dask.tables import RANK_BY, feature_table, group_table

if TYPE_CHECKING:
    from distributed import Client

CATEGORICALS = ("omit", "indicators")


def explain(
    lake: Any,
    *,
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
    fraction: float = 1.0,
    seed: int = 0,
    centering: str = "midhinge",
    rank_by: str = "strength",
    budget: int | str = DEFAULT_BUDGET,
    scheduler: str | Client | None = None,
    storage_options: Mapping[str, Any] | None = None,
    progress: bool | None = None,
) -> Explanation:
    """Score every feature of a lake by its co-movement with a model's output.

    Parameters
    ----------
    lake : path, URL, glob, list of files, or a pandas or dask DataFrame
        Parquet files. Whatever begins with ``_`` or ``.`` is left out; Hive partition keys are columns.
    output : str, list of str, or mapping class -> column
        Column or columns with the model's output (margins rather than probabilities or labels).
    model : file or object
        In place of ``output``: an XGBoost, LightGBM or ONNX file, an XGBoost, LightGBM or scikit-learn model, or any
        callable on a pandas DataFrame that returns one or more columns. It is shown each row once.
    predict_type : {"margin", "probability"}
        What a model that can give both is asked for.
    model_columns : list of str, optional
        Columns that the model gets, in its order, where it does not know their names.
    allow_pickle : bool
        Load a pickle or joblib file as the model. Loading one runs whatever code is in it.
    features : names or shell patterns, optional
        Columns to explain; a pattern that begins with ``!`` takes columns away, and a vector's name stands for all
        its elements. Default: the model's columns, or every number.
    categoricals : {"omit", "indicators"}
        What becomes of text and dictionary columns: with indicators each category is a 0/1 feature, and the column is
        a group.
    max_categories : int
        Categories of a column that are features; the others are one feature together.
    groups : mapping name -> features, path of a YAML or JSON file, or "correlation"
        Groups to score as one; they may overlap. "correlation" finds them (as ``group_correlated=0.9``).
    group_prefix : str, optional
        Features whose names agree up to the last of these separators are a group: with ``"_"``, ``door_1`` and
        ``door_2`` are the group ``door``.
    group_correlated : float, optional
        Find groups: features whose absolute rank correlations are all at least so large, in a sample of rows.
    group_rows : int
        Rows of that sample.
    weights : str, optional
        Column of row weights. Whole weights count as repeated rows, other weights are scaled to a mean of 1.
    fraction : float
        Share of the rows to use. Samples are nested and depend on ``seed`` and the rows alone.
    seed : int
        Of the sample.
    centering : {"midhinge", "median", "mean", "trimmed"}
        What features and outputs are centred on. ``trimmed`` reads the lake once more.
    rank_by : {"strength", "cir"}
        Rank by ``abs(2 cir - 1)``, or by ``cir`` as the paper does (what moves against the output comes last).
    budget : int or str
        Decoded bytes that one slice may hold, for instance ``"64MB"``. Each thread holds one slice.
    scheduler : str or Client, optional
        A cluster's address or client. Default: the active client, or else threads of this machine.
    storage_options : mapping, optional
        For fsspec filesystems.
    progress : bool, optional
        Show progress bars; by default where standard error is a terminal.

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
    began = time.perf_counter()
    _check_choice("centering", centering, LEVELS)
    _check_choice("rank_by", rank_by, RANK_BY)
    _check_choice("categoricals", categoricals, CATEGORICALS)
    if max_categories < 1 or group_rows < 2:
        raise UsageError(f"max_categories is {max_categories} and group_rows is {group_rows}; at least 1 and 2")
    outputs = understand_outputs(output, model, predict_type, model_columns, allow_pickle)
    inputs = prepare(
        lake, outputs,
        features=features, weights=weights, indicators=categoricals == "indicators",
        sample=Sample(fraction, seed), budget=parse_bytes(budget), storage_options=storage_options,
    )  # fmt: skip
    selection = inputs.plan.selection
    wanted = understand_groups(groups, group_prefix, group_correlated, selection)
    with _runner(lake, scheduler, progress) as runner:
        scans = Scans(inputs.plan, inputs.layout, runner, inputs.frames, outputs.model)
        if outputs.model is not None:
            check_categories(outputs.model, scans.categories(known_categories(outputs.model)))
        stats = scans.statistics(centering, max_categories, 0 if wanted.correlated is None else group_rows)
        _check_rows(stats, outputs)
        feature_stats = concatenate([stats.features, stats.indicators])
        feature_centers, output_centers = centers(feature_stats, centering), centers(stats.outputs, centering)
        sums = scans.sums(feature_centers, output_centers, stats)
    if inputs.snapshot is not None:
        check_unchanged(inputs.snapshot)
    names = [*selection.features, *(name for column in stats.categories for name in column.features)]
    _check_range(sums, names, stats.output_names)

    feature_errors = center_errors(feature_stats, centering, feature_centers.center, sums.below)
    output_errors = center_errors(stats.outputs, centering, output_centers.center, sums.output_below)
    scores = score(sums, feature_stats, stats.outputs, feature_errors, output_errors)
    output_names = outputs.columns.names or stats.output_names
    table = feature_table(names, output_names, feature_stats, stats.outputs, feature_centers, sums, scores, rank_by)
    return Explanation(
        features=table,
        groups=group_table(table, all_groups(wanted, selection, stats, table), rank_by),
        outputs=output_table(output_names, outputs, stats.outputs, output_centers.center, output_errors),
        facts=facts(
            inputs, stats, output_names,
            fraction=fraction, seed=seed, centering=centering, rank_by=rank_by, weights=weights,
            categoricals=categoricals, max_categories=max_categories,
            group_correlated=wanted.correlated, group_rows=None if wanted.correlated is None else group_rows,
        ),
        provenance=provenance(lake, inputs, began),
    )  # fmt: skip


def _runner(lake: Any, scheduler: str | Client | None, progress: bool | None) -> AbstractContextManager[Runner]:
    if is_pandas(lake):  # it is in this process's memory already: sending it to a cluster would only cost
        return closing(LocalRunner(progress, threads=True))
    return runner_for(scheduler, progress)


def _check_choice(name: str, value: str, choices: Any) -> None:
    if value not in choices:
        raise UsageError(f"{name} is '{value}'{nearest(str(value), choices)} (one of {', '.join(choices)})")


def _check_rows(stats: LakeStats, outputs: Outputs) -> None:
    counts = stats.counts
    if counts.used == 0:
        source = ", ".join(outputs.columns.columns) or "the model's outputs"
        raise DataError(
            f"no row is left to explain: {counts.read} rows, {counts.sampled} in the sample, "
            f"{counts.without_output} of those without a finite value in {source}, "
            f"{counts.without_weight} without a positive weight"
        )


def _check_range(sums: Sums, names: Sequence[str], output_names: Sequence[str]) -> None:
    large = ~np.isfinite(sums.squares + sums.denominator)
    small = (sums.denominator > 0) & (sums.squares == 0)
    if (large | small).any():
        k, j = np.argwhere(large | small)[0]
        size, cure = ("large", "divide") if large[k, j] else ("small", "multiply")
        raise DataError(
            f"column '{names[j]}' times output '{output_names[k]}' is too {size} to square; "
            f"{cure} one of them by a constant (scores do not change by that)"
        )
