"""Algorithm 1 in plain numpy, on whole columns in memory: what every score is compared with."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from excir_dask import Explanation


def midhinge(a: np.ndarray) -> float:
    """The paper's centre, with linearly interpolated quartiles."""
    q25, q75 = np.quantile(a, [0.25, 0.75])
    return (q25 + q75) / 2


def trimmed(a: np.ndarray) -> float:
    q25, q75 = np.quantile(a, [0.25, 0.75])
    return float(a[(a >= q25) & (a <= q75)].mean())


CENTERS = {"midhinge": midhinge, "median": np.median, "mean": np.mean, "trimmed": trimmed}


def cir(x: np.ndarray, y: np.ndarray, centering: str = "midhinge") -> float:
    """CIR of one feature: rows without an output leave altogether, rows without a value leave this feature."""
    rows = np.isfinite(y)
    x, y = x[rows], y[rows]
    present = np.isfinite(x)
    center = CENTERS[centering]
    if not present.any():
        return 0.5
    p = (x[present] - center(x[present])) * (y - center(y))[present]
    d = np.abs(p).sum()
    if np.ptp(x[present]) == 0 or np.ptp(y) == 0 or d == 0:
        return 0.5
    return (1 + p.sum() / d) / 2


def write_lake(folder: Path, frame: pd.DataFrame | pa.Table, files: int = 1, row_group_size: int | None = None) -> Path:
    """A table as Parquet files of about equal size."""
    folder.mkdir(parents=True, exist_ok=True)
    table = frame if isinstance(frame, pa.Table) else pa.Table.from_pandas(frame, preserve_index=False)
    edges = [table.num_rows * i // files for i in range(files + 1)]
    for i, (start, stop) in enumerate(pairwise(edges)):
        part = table.slice(start, stop - start)
        pq.write_table(part, folder / f"part-{i:04d}.parquet", row_group_size=row_group_size)
    return folder


def repeated(lake: Path, folder: Path, times: int) -> Path:
    """The files of a lake several times over. Copies: a lake counts a file once however many links it has."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in lake.iterdir():
        for i in range(times):
            shutil.copyfile(path, folder / f"{path.stem}-{i}.parquet")
    return folder


def scores(explanation: Explanation, features: Sequence[str], output: str | None = None) -> np.ndarray:
    """CIR of an explanation in the order of ``features``."""
    table = explanation.of(output).set_index("feature")
    return table.loc[list(features), "cir"].to_numpy()


def without_groups(explanation: Explanation) -> pd.DataFrame:
    """The features without what depends on row groups, which a frame does not have."""
    tests = ["lift_stderr", "p_chance", "dependence", "dependence_stderr", "dependence_p", "bend", "rank", "flag"]
    found = explanation.features.drop(columns=["stderr", "stderr_by", *tests])
    return found.sort_values(["output", "feature"], ignore_index=True)


def run_id(lake: object, **options: object) -> str | None:
    """The id of the run that ``explain(lake, **options)`` would be."""
    from excir_dask.pipeline.inputs import resolve_inputs
    from excir_dask.pipeline.options import ExplainOptions
    from excir_dask.pipeline.run_id import run_id

    given = ExplainOptions(**options)
    return run_id(resolve_inputs(lake, given), given)
