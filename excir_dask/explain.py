"""Start reading here: :func:`explain` is the whole product in order, from a lake to an explanation."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from excir_dask.clusters import runner_for
from excir_dask.errors import DataError, LakeError, UsageError, nearest
from excir_dask.explanation import Explanation
from excir_dask.graph.run import LocalRunner, Runner
from excir_dask.graph.scans import LakeStats, Scans
from excir_dask.kernels.centers import LEVELS, center_errors, centers
from excir_dask.kernels.scores import score
from excir_dask.kernels.sums import Sums
from excir_dask.lake.frames import frame_columns, is_dask, is_pandas, plan_dask, plan_pandas
from excir_dask.lake.locate import locate
from excir_dask.lake.plan import DEFAULT_BUDGET, Plan, make_plan
from excir_dask.lake.read import Layout
from excir_dask.lake.sample import Sample
from excir_dask.lake.schema import Selection, describe_columns, select
from excir_dask.lake.snapshot import Snapshot, check_unchanged, take_snapshot
from excir_dask.outputs.columns import OutputColumns, output_columns
from excir_dask.tables import RANK_BY, check_groups, feature_table, group_table
from excir_dask.version import __version__

if TYPE_CHECKING:
    import pandas as pd
    from distributed import Client


def explain(
    lake: Any,
    *,
    output: str | Sequence[str] | Mapping[str, str] | None = None,
    features: str | Sequence[str] | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
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
    features : names or shell patterns, optional
        Columns to explain; a pattern that begins with ``!`` takes columns away. Default: every number.
    groups : mapping name -> features, optional
        Groups to score as one; they may overlap.
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
    asked = output_columns(output)
    sample = Sample(fraction, seed)
    plan, frames, snapshot = _plan(lake, asked, weights, features, parse_bytes(budget), storage_options)
    if groups:
        check_groups(groups, plan.selection.features)
    filesystem = None if snapshot is None else snapshot.location.filesystem
    layout = Layout(filesystem, plan.selection.features, asked.columns, weights, sample)
    with _runner(lake, scheduler, progress) as runner:
        scans = Scans(plan, layout, runner, frames)
        stats = scans.statistics(centering)
        _check_rows(stats, asked)
        feature_centers, output_centers = centers(stats.features, centering), centers(stats.outputs, centering)
        sums = scans.sums(feature_centers, output_centers)
    if snapshot is not None:
        check_unchanged(snapshot)
    _check_range(sums, plan.selection)

    feature_errors = center_errors(stats.features, centering, feature_centers.center, sums.below)
    output_errors = center_errors(stats.outputs, centering, output_centers.center, sums.output_below)
    scores = score(sums, stats.features, stats.outputs, feature_errors, output_errors)
    table = feature_table(
        plan.selection.features, asked.names, stats.features, stats.outputs, feature_centers,
        sums, scores, rank_by,
    )  # fmt: skip
    return Explanation(
        features=table,
        groups=group_table(table, groups or {}, rank_by),
        outputs=_output_table(asked, stats, output_centers.center, output_errors),
        facts={
            "settings": {
                "outputs": dict(zip(asked.names, asked.columns, strict=True)),
                "weights": weights,
                "fraction": fraction,
                "seed": seed,
                "centering": centering,
                "rank_by": rank_by,
            },
            "rows": {
                "lake": stats.counts.read,
                "sampled": stats.counts.sampled,
                "without_output": stats.counts.without_output,
                "without_weight": stats.counts.without_weight,
                "used": stats.counts.used,
            },
            "left_out": plan.selection.left_out,
            "converted": plan.selection.converted,
        },
        provenance={
            "lake": _source(lake, snapshot),
            "slices": sum(1 for _ in plan.slices()),
            "budget": plan.budget,
            "seconds": round(time.perf_counter() - began, 3),
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "versions": {
                "excir-dask": __version__,
                "python": platform.python_version(),
                **{name: version(name) for name in ("dask", "pyarrow", "numpy", "pandas", "crick")},
            },
        },
    )


def parse_bytes(budget: int | str) -> int:
    """Bytes from a number or a text such as ``"64MB"`` or ``"64MiB"``.

    >>> parse_bytes("64MiB")
    67108864
    """
    from dask.utils import parse_bytes as parse

    try:
        return int(parse(budget))
    except ValueError as error:
        raise UsageError(f"'{budget}' is not a number of bytes; write for instance 128MB") from error


def _plan(
    lake: Any,
    asked: OutputColumns,
    weights: str | None,
    features: str | Sequence[str] | None,
    budget: int,
    storage_options: Mapping[str, Any] | None,
) -> tuple[Plan, list[Any] | None, Snapshot | None]:
    """The plan, and the frames it stands for or the snapshot of the lake."""
    if is_pandas(lake) or is_dask(lake):
        selection = select(frame_columns(lake), asked.columns, weights, features)
        plan, frames = (plan_pandas if is_pandas(lake) else plan_dask)(lake, selection, budget)
        if not frames:
            raise LakeError("the frame has no rows")
        return plan, frames, None
    if not isinstance(lake, str | os.PathLike | Sequence):
        raise UsageError(f"a lake is a path, a URL, a glob, a list of files or a DataFrame, not {type(lake).__name__}")
    snapshot = take_snapshot(locate(lake, storage_options))
    selection = select(describe_columns(snapshot), asked.columns, weights, features)
    if snapshot.rows == 0:
        raise LakeError(f"{snapshot.location.name} has {len(snapshot.files)} files but no rows")
    return make_plan(snapshot, selection, budget), None, snapshot


def _source(lake: Any, snapshot: Snapshot | None) -> dict[str, Any]:
    """What to remember of where the data came from."""
    if snapshot is None:
        return {"name": f"{type(lake).__module__.split('.')[0]} DataFrame"}
    return {
        "name": snapshot.location.name,
        "files": len(snapshot.files),
        "rows": snapshot.rows,
        "bytes": snapshot.size,
        "fingerprint": snapshot.fingerprint,
    }


def _runner(lake: Any, scheduler: str | Client | None, progress: bool | None) -> AbstractContextManager[Runner]:
    if is_pandas(lake):  # it is in this process's memory already: sending it to a cluster would only cost
        return nullcontext(LocalRunner(progress, threads=True))
    return runner_for(scheduler, progress)


def _check_choice(name: str, value: str, choices: Any) -> None:
    if value not in choices:
        raise UsageError(f"{name} is '{value}'{nearest(str(value), choices)} (one of {', '.join(choices)})")


def _check_rows(stats: LakeStats, asked: OutputColumns) -> None:
    counts = stats.counts
    if counts.used == 0:
        raise DataError(
            f"no row is left to explain: {counts.read} rows, {counts.sampled} in the sample, "
            f"{counts.without_output} of those without a finite value in {', '.join(asked.columns)}, "
            f"{counts.without_weight} without a positive weight"
        )


def _check_range(sums: Sums, selection: Selection) -> None:
    large = ~np.isfinite(sums.squares + sums.denominator)
    small = (sums.denominator > 0) & (sums.squares == 0)
    if (large | small).any():
        k, j = np.argwhere(large | small)[0]
        size, cure = ("large", "divide") if large[k, j] else ("small", "multiply")
        raise DataError(
            f"column '{selection.features[j]}' times output '{selection.outputs[k]}' is too {size} to square; "
            f"{cure} one of them by a constant (scores do not change by that)"
        )


def _output_table(asked: OutputColumns, stats: LakeStats, center: Any, bound: Any) -> pd.DataFrame:
    import pandas as pd

    found = stats.outputs
    return pd.DataFrame(
        {
            "output": asked.names,
            "column": asked.columns,
            "n": found.n,
            "center": center,
            "center_error": bound,
            "q25": found.q25,
            "q75": found.q75,
            "flag": ["constant" if constant else "" for constant in found.constant],
        }
    )
