"""The lightweight transfer: :func:`sweep` explains growing shares of the rows to find how few give the same ranking."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from excir_dask.agreement.compare import compare
from excir_dask.clusters.connect import find_client
from excir_dask.common.wording import percent
from excir_dask.errors import LakeChangedError
from excir_dask.explain import explain_with
from excir_dask.lake.in_memory import as_lake
from excir_dask.lake.outside import check_outside
from excir_dask.pipeline.inputs import resolve_inputs
from excir_dask.pipeline.options import Counts, ExplainOptions
from excir_dask.pipeline.run_id import as_counted, lake_fingerprint, make_id, open_target
from excir_dask.pipeline.run_id import run_id as explain_id
from excir_dask.results.explanation import Explanation
from excir_dask.results.metadata import LakeSource
from excir_dask.results.sweep import Sweep
from excir_dask.sweep.arguments import SET_BY_SWEEP, all_fractions, all_seeds, check_arguments
from excir_dask.sweep.summary import choose, front_of, summarise
from excir_dask.version import __version__

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger(__name__)

FRACTIONS = (0.2, 0.3, 0.4, 0.5, 0.75, 1.0)
"""of the paper's protocol"""
SHARED = (
    "features", "weights", "budget", "scheduler", "storage_options", "table_version", "verify_checksums", "progress",
)  # fmt: skip
"""options of explain that training uses too"""


@dataclass(frozen=True)
class Run:
    """One explanation of a sweep, and what it cost."""

    fraction: float
    seed: int
    explanation: Explanation
    seconds: float
    """wall time of explaining"""
    train_seconds: float | None
    """wall time of training; None if the model is fixed"""


def sweep(
    lake: Any,
    *,
    fractions: Sequence[float] = FRACTIONS,
    seeds: int | Sequence[int] = 3,
    k: int = 8,
    target_jaccard: float = 0.9,
    target_residual: float | None = None,
    retrain: Mapping[str, Any] | None = None,
    progress: bool | None = None,
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    force: bool = False,
    **options: Any,
) -> Sweep:
    """Explain growing shares of the rows, and find how few reproduce the ranking of all rows.

    All rows are explained once, every smaller fraction once per seed; every run is compared with that of all rows. A
    warm-up run of the smallest fraction comes first and is not counted: it compiles code and fills caches.

    Parameters
    ----------
    lake : path, URL, glob, list of files, or a table in memory
        As for :func:`~excir_dask.explain`.
    fractions : sequence of float
        Shares of the rows. 1.0 is always added: the others are compared with it.
    seeds : int or sequence of int
        Seeds of the row samples, or their number (0, 1, ...).
    k : int
        Size of the top whose overlap (Jaccard index) is measured.
    target_jaccard : float
        Overlap that the chosen fraction must have for every seed and output.
    target_residual : float, optional
        Procrustes residual, above 0 and at most 1, that it must not exceed for any seed and output: the scores of all
        features then have the shape of those of all rows, not the first ``k`` alone.
    retrain : mapping, optional
        Train a model at every fraction instead of explaining a fixed one: arguments of :func:`~excir_dask.train`,
        of which ``label`` is required (``{"label": "bought", "params": {"max_depth": 4}}``). The model trained on a
        fraction is explained on that fraction and compared with the one trained on all rows with the same seed, so
        that validation rows and parameters are the same; all rows are then trained on and explained once per seed.
    progress : bool, optional
        Report runs and their progress on standard error; by default only on a terminal.
    out : path, optional
        Folder to save the sweep in. If it already holds a sweep of the same arguments and files (the same run id),
        that one is returned and nothing is computed.
    overwrite : bool
        Replace another sweep in that folder.
    force : bool
        Compute again even if that sweep is there; times may differ.
    **options
        Further arguments of :func:`~excir_dask.explain`: ``output`` or ``model``, ``features``, ``groups``, ...
        Groups found by correlation are those of the run over all rows.

    Returns
    -------
    Sweep

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> X = np.random.default_rng(0).standard_normal((4000, 4))
    >>> frame = pd.DataFrame(X, columns=list("abcd")).assign(pred=X @ [4.0, 2.0, 1.0, 0.0])
    >>> found = sweep(frame, output="pred", fractions=[0.25, 0.5], seeds=2, k=2)
    >>> found.chosen
    0.25
    """
    shares, draws = all_fractions(fractions), all_seeds(seeds)
    check_arguments(k, target_jaccard, target_residual, retrain, options)
    asked = ExplainOptions(**options, progress=progress)
    lake = as_lake(lake)
    check_outside(out, lake, "the sweep")
    target = open_target(out, overwrite, "sweep", ("settings", "run_id"))
    run_id = None
    if target.folder is not None:
        wanted = [target_jaccard] if target_residual is None else [target_jaccard, target_residual]
        run_id = _run_id(lake, [shares, draws, k, *wanted], retrain, asked)
        if (saved := target.finished(run_id, force)) is not None:
            return Sweep.load(saved)
    references: dict[int, Explanation] = {}
    tables = []
    with find_client(asked.scheduler, asked.cluster) as client:  # one for all runs
        for run in _runs(lake, shares, draws, retrain, replace(asked, scheduler=client, cluster=None)):
            # a fixed model has one run over all rows, which every seed is compared with
            reference = references.setdefault(draws[0] if retrain is None else run.seed, run.explanation)
            tables.append(_agreement(reference, run, k))
    import pandas as pd

    runs = pd.concat(tables, ignore_index=True)
    runs = runs.sort_values(["fraction", "seed"], kind="stable", ignore_index=True)
    summary = summarise(runs)
    on_front, knee = front_of(summary)
    full = references[draws[0]]
    explained = full.facts.settings.to_dict()
    found = Sweep(
        runs=runs,
        summary=summary,
        chosen=choose(summary, target_jaccard, target_residual),
        front=on_front,
        knee=knee,
        settings={
            "fractions": shares,
            "seeds": draws,
            "k": k,
            "target_jaccard": target_jaccard,
            "target_residual": target_residual,
            "retrain": None if retrain is None else {name: _plain(value) for name, value in retrain.items()},
            "explain": {name: value for name, value in explained.items() if name not in SET_BY_SWEEP},
            "lake": full.provenance.lake.to_dict(),
            "rows": full.facts.rows.used,
            "versions": dict(full.provenance.versions),
            "run_id": run_id,
        },
    )
    if target.folder is not None:
        found.save(target.folder, overwrite or target.holds(run_id))
        log.info("saved in %s", target.folder)
    return found


def _run_id(lake: Any, asked: Sequence[Any], retrain: Mapping[str, Any] | None, options: ExplainOptions) -> str | None:
    """The same for the same sweep over the same files; None for a DataFrame."""
    if retrain is None:
        base = explain_id(resolve_inputs(lake, options), options)
        return None if base is None else make_id({"explain": base, "sweep": asked})
    base = lake_fingerprint(lake, options.storage_options, options.table_version)
    explained = _plain(as_counted(options, Counts.AS_GIVEN, Counts.RESOLVED))
    parts = {"version": __version__, "lake": base, "train": _plain(retrain), "explain": explained, "sweep": asked}
    return None if base is None else make_id(parts)


def _runs(
    lake: Any,
    fractions: Sequence[float],
    seeds: Sequence[int],
    retrain: Mapping[str, Any] | None,
    options: ExplainOptions,
) -> Iterator[Run]:
    """All rows first, then seed by seed, so that a machine that slows down slows every fraction alike.

    All runs read the same files: the table version of the first run.
    """
    first: LakeSource | None = None
    order = [(1.0, seed) for seed in (seeds[:1] if retrain is None else seeds)]
    order += [(fraction, seed) for seed in seeds for fraction in fractions if fraction < 1.0]
    for place, (fraction, seed) in enumerate([(fractions[0], seeds[0]), *order]):
        if options.progress or (options.progress is None and sys.stderr.isatty()):
            what = f"run {place} of {len(order)}" if place else "warm-up"
            print(f"sweep: {what}, {percent(fraction)} of the rows, seed {seed}", file=sys.stderr, flush=True)
        if first is not None and first.version is not None:
            options = replace(options, table_version=first.version)
        run = _run(lake, fraction, seed, retrain, options)
        first = _same_files(first, run.explanation.provenance.lake)
        if place:
            yield run


def _run(lake: Any, fraction: float, seed: int, retrain: Mapping[str, Any] | None, options: ExplainOptions) -> Run:
    train_seconds = None
    if retrain is not None:
        from excir_dask.training.train import train

        shared = {name: getattr(options, name) for name in SHARED}
        began = time.perf_counter()
        training = train(lake, fraction=fraction, seed=seed, **{**shared, **retrain})
        options = replace(options, model=training.booster)
        train_seconds = time.perf_counter() - began
    began = time.perf_counter()
    explanation = explain_with(lake, replace(options, fraction=fraction, seed=seed))
    if retrain is not None:
        _same_files(training.provenance.lake, explanation.provenance.lake)
    return Run(fraction, seed, explanation, time.perf_counter() - began, train_seconds)


def _same_files(first: LakeSource | None, now: LakeSource) -> LakeSource:
    if first is not None and first.fingerprint != now.fingerprint:
        raise LakeChangedError(
            f"{now.name} had {first.files:,} files with {first.rows:,} rows when the sweep began, and now has other "
            f"files ({now.files:,} with {now.rows:,} rows), so runs cannot be compared; run again"
        )
    return now if first is None else first


def _agreement(reference: Explanation, run: Run, k: int) -> pd.DataFrame:
    """Rows of ``runs``: the cost of a run and its agreement with all rows, per output, for features and groups."""
    import pandas as pd

    explanation = run.explanation
    if explanation.facts.settings.group_correlated is not None:
        first = reference.groups.drop_duplicates("group")
        explanation = explanation.regroup(dict(zip(first["group"], first["members"], strict=True)))
    table = compare(reference, explanation, k).table
    size = len(table)
    cost = {
        "fraction": [run.fraction] * size,
        "seed": [run.seed] * size,
        "rows": [explanation.facts.rows.used] * size,
        "bytes": pd.array([explanation.provenance.bytes_read] * size, dtype="Int64"),
        "seconds": [run.seconds] * size,
        "train_seconds": pd.Series([run.train_seconds] * size, dtype="float64"),
    }
    return pd.concat([pd.DataFrame(cost), table.reset_index(drop=True)], axis=1)


def _plain(value: Any) -> Any:
    """A setting as a JSON value."""
    if isinstance(value, Mapping):
        return {str(name): _plain(inside) for name, inside in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inside) for inside in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
