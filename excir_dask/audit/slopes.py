"""Which scores move slowly and steadily: a straight line through the runs, and whether noise explains its slope."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from excir_dask.audit.scores import reach

if TYPE_CHECKING:
    import pandas as pd

ONE = ["output", "kind", "name"]
"""what makes a row of the history the score of one thing"""
LEAST_RUNS = 5
"""below which nobody can tell a trend from chance"""
LEAST_ERROR = 1e-9


def slopes(history: pd.DataFrame, false_alarm: float) -> pd.DataFrame:
    """A row per output and feature or group: ``runs first last slope slope_error steady``.

    ``slope`` is the change of CIR from run to run, by weighted least squares. Its error is scaled up where runs
    scatter more about the line than their own errors say, so that a jump does not pass for a trend. ``steady`` are
    those beyond what noise gives in any of them with the probability ``false_alarm``.
    """
    order = history.drop_duplicates("run")["run"].tolist()
    cir = history.pivot_table(index=ONE, columns="run", values="cir", sort=False)[order]
    error = history.pivot_table(index=ONE, columns="run", values="error", sort=False)[order]
    y = cir.to_numpy(dtype=np.float64)
    there = np.isfinite(y)
    weight = np.where(there, np.maximum(np.nan_to_num(error.to_numpy()), LEAST_ERROR) ** -2.0, 0.0)
    y = np.where(there, y, 0.0)
    total = np.maximum(weight.sum(axis=1, keepdims=True), 1e-300)
    x = np.arange(len(order), dtype=np.float64)[None, :]
    x = x - (weight * x).sum(axis=1, keepdims=True) / total
    spread = (weight * x * x).sum(axis=1)
    middle = (weight * y).sum(axis=1, keepdims=True) / total
    slope = np.divide((weight * x * y).sum(axis=1), spread, out=np.zeros(len(y)), where=spread > 0)
    runs = there.sum(axis=1)
    scatter = (weight * (y - middle - slope[:, None] * x) ** 2).sum(axis=1) / np.maximum(runs - 2, 1)
    slope_error = np.sqrt(np.maximum(scatter, 1.0) / np.maximum(spread, 1e-300))
    beyond = np.abs(slope) > reach(runs - 1.0, false_alarm, len(y)) * slope_error
    first = np.argmax(there, axis=1)
    last = there.shape[1] - 1 - np.argmax(there[:, ::-1], axis=1)
    each = np.arange(len(y))
    return cir.index.to_frame(index=False).assign(
        runs=runs,
        first=y[each, first],
        last=y[each, last],
        slope=slope,
        slope_error=slope_error,
        steady=beyond & (runs >= LEAST_RUNS),
    )
