"""Whether scores move from run to run beyond noise: steadily, or in one jump."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from excir_dask.audit.score_errors import reach

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]

ONE = ["output", "kind", "name"]
"""columns of the history that identify a score"""
LEAST_RUNS = 5
"""with fewer runs a trend cannot be told from chance"""
LEAST_ERROR = 1e-9


def slopes(history: pd.DataFrame, false_alarm: float) -> pd.DataFrame:
    """A row per output and feature or group: ``runs first last slope slope_error steady jumped``.

    ``slope`` is the change of CIR from run to run, by weighted least squares. Its error is scaled up where runs
    scatter more about the line than their own errors say. A change beyond noise (noise alone causes any with the
    probability ``false_alarm``) is ``steady`` if the line fits better than any single step; else ``jumped`` names the
    run at which the score changed.
    """
    order = history.drop_duplicates("run")["run"].tolist()
    cir = history.pivot_table(index=ONE, columns="run", values="cir", sort=False)[order]
    error = history.pivot_table(index=ONE, columns="run", values="error", sort=False)[order]
    y = cir.to_numpy(dtype=np.float64)
    there = np.isfinite(y)
    weight = np.where(there, np.maximum(np.nan_to_num(error.to_numpy()), LEAST_ERROR) ** -2.0, 0.0)
    y = np.where(there, y, 0.0)
    total = np.maximum(weight.sum(axis=1, keepdims=True), 1e-300)
    y = np.where(there, y - (weight * y).sum(axis=1, keepdims=True) / total, 0.0)
    x = np.arange(len(order), dtype=np.float64)[None, :]
    x = x - (weight * x).sum(axis=1, keepdims=True) / total
    spread = np.maximum((weight * x * x).sum(axis=1), 1e-300)
    slope = (weight * x * y).sum(axis=1) / spread
    runs = there.sum(axis=1)
    squares, freedom = (weight * y * y).sum(axis=1), np.maximum(runs - 2, 1)
    line = slope**2 * spread
    step, at = _steps(weight, y)
    of_line, of_step = (squares - line) / freedom, (squares - step) / freedom
    slope_error = np.sqrt(np.maximum(of_line, 1.0) / spread)
    enough, jumps = runs >= LEAST_RUNS, step > line
    steady = enough & ~jumps & (np.abs(slope) > _reach(of_line, runs, false_alarm, len(y)) * slope_error)
    jump_error = np.sqrt(np.maximum(of_step, 1.0))
    jumped = enough & jumps & (np.sqrt(step) > _reach(of_step, runs, false_alarm, y.size) * jump_error)
    scores = cir.to_numpy(dtype=np.float64)
    first = np.argmax(there, axis=1)
    last = there.shape[1] - 1 - np.argmax(there[:, ::-1], axis=1)
    each = np.arange(len(y))
    return cir.index.to_frame(index=False).assign(
        runs=runs,
        first=scores[each, first],
        last=scores[each, last],
        slope=slope,
        slope_error=slope_error,
        steady=steady,
        jumped=np.where(jumped, np.array(order, dtype=object)[at], ""),
    )


def _reach(scatter: Floats, runs: NDArray[np.int64], false_alarm: float, comparisons: int) -> Floats:
    """How many errors count; errors from the scatter of few runs are uncertain themselves."""
    return reach(np.where(scatter > 1.0, runs - 1.0, 1e9), false_alarm, comparisons)


def _steps(weight: Floats, y: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """The part of each row's sum of squares that the best single step explains, and where it is; ``y`` has mean 0."""
    left = np.cumsum(weight, axis=1)[:, :-1]
    moment = np.cumsum(weight * y, axis=1)[:, :-1]
    right = weight.sum(axis=1, keepdims=True) - left
    inside = (left > 0) & (right > 0)
    gain = np.zeros_like(left)
    # means on both sides are moment / left and -moment / right
    np.divide(moment**2 * (left + right), left * right, out=gain, where=inside)
    if gain.shape[1] == 0:
        return np.zeros(len(y)), np.zeros(len(y), dtype=np.int64)
    best = gain.argmax(axis=1)
    return gain[np.arange(len(y)), best], best + 1
