"""The two forms of a group's score in equation 3 of the paper, which are equal for one member only."""

from __future__ import annotations

import numpy as np
import pandas as pd

from evidence.fit import Floats
from evidence.page import table
from excir_dask import explain


def first_form(X: Floats, y: Floats) -> float:
    """Mass of the rows whose net movement is with the output, over all mass: sum(s u) / sum(u)."""
    moved = (X - _midhinge(X)) * (y - _midhinge(y))[:, None]
    mass = np.abs(moved).sum(axis=1)
    return float(mass[moved.sum(axis=1) >= 0].sum() / mass.sum())


def second_form(X: Floats, y: Floats) -> float:
    """(1 + N/D) / 2, through the public API."""
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    found = explain(frame.assign(y=y), output="y", groups={"all": list(frame.columns)}, progress=False)
    return float(found.groups["cir"].iloc[0])


def _midhinge(values: Floats) -> Floats:
    low, high = np.quantile(values, [0.25, 0.75], axis=0)
    return (low + high) / 2


def groups() -> dict[str, tuple[Floats, Floats]]:
    """Groups whose answer is known."""
    random = np.random.default_rng(0)
    x = random.standard_normal(4000)
    noise = random.standard_normal(4000)
    y = x + 0.5 * random.standard_normal(4000)
    return {
        "{x}": (x[:, None], y),
        "{x, x}": (np.column_stack([x, x]), y),
        "{x, -x}": (np.column_stack([x, -x]), y),
        "{x, noise}": (np.column_stack([x, noise]), y),
        "{x, -x / 2}": (np.column_stack([x, -x / 2]), y),
    }


def section() -> str:
    """Both forms of every group."""
    rows = [[f"`{name}`", f"{first_form(X, y):.3f}", f"{second_form(X, y):.3f}"] for name, (X, y) in groups().items()]
    return table(["group", "first form", "second form, ours"], rows)
