"""How an output moves along one feature, from the aggregates of a state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from excir_dask.errors import UsageError, nearest
from excir_dask.kernels.profiles import CoarseCells, coarse_cells, output_quantiles
from excir_dask.kernels.reference import BUCKETS, Reference, places
from excir_dask.kernels.state import State
from excir_dask.results import views
from excir_dask.results.tables import records

if TYPE_CHECKING:
    import pandas as pd

    from excir_dask.graph.lake_state import LakeState

Floats = NDArray[np.float64]

LEVELS = (0.25, 0.5, 0.75)


@dataclass(frozen=True, eq=False, repr=False)
class Profile(views.Displayed):
    """The output's quartiles along the cells of a feature, and how many rows each cell has.

    Cells are about equally full, up to 16; a frequent value is a cell by itself, and so is each category of a text
    column. Counts are of all rows. Quartiles are interpolated inside the output's cells.
    """

    feature: str
    output: str
    categories: bool
    """the feature is a column of categories"""
    table: pd.DataFrame
    """a row per cell: ``cell`` in words, ``low`` and ``high`` (no value lies outside; NaN for categories), ``rows``
    (the sum of their weights where there are some), ``share`` of the rows with a value, ``q25 q50 q75`` of the output,
    and ``upper``, the share of rows with the larger value, where the output has two values"""
    missing: float
    """share of the rows without a value"""
    scores: dict[str, Any]
    """the feature's row of ``Explanation.features``, or the column's row of ``Explanation.groups``"""

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values that JSON can hold."""
        return {
            "feature": self.feature,
            "output": self.output,
            "categories": self.categories,
            "missing": self.missing,
            "scores": self.scores,
            "cells": records(self.table),
        }


def profile_of(lake: LakeState, name: str, k: int, features: pd.DataFrame, groups: pd.DataFrame) -> Profile:
    """The profile of a feature, or of a column of categories, for output ``k`` and with its tables of scores."""
    if not lake.state.pairs.joint.shape[-1]:
        raise UsageError(
            "the state of this explanation has no joint counts, which profiles are made of; compute it again"
        )
    output = str(features["output"].iloc[0])
    outputs = coarse_cells(lake.span.outputs, lake.references.outputs, k)
    columns = {each.column: each for each in lake.categories if each.column not in lake.too_many}
    if name in columns:
        cells, missing = _category_cells(lake, name, outputs, k)
        return Profile(name, output, True, cells, missing, _scores(groups[groups["group"] == name]))
    if name not in lake.names:
        known = [*lake.names, *columns]
        raise UsageError(f"there is no feature '{name}'{nearest(name, known)} ({len(lake.names):,} features)")
    state, reference, j = _place(lake, name)
    cells = _cells(coarse_cells(state.columns, reference, j), state.pairs.joint[k, j], outputs)
    missing = _share(int(state.columns.missing[j]), int(state.columns.n[j]))
    return Profile(name, output, False, cells, missing, _scores(features[features["feature"] == name]))


def _place(lake: LakeState, name: str) -> tuple[State, Reference, int]:
    """Where a feature's state is."""
    j = lake.names.index(name)
    if j < len(lake.features):
        return lake.state, lake.references.features, j
    return lake.span.indicators, lake.references.indicators, j - len(lake.features)


def _cells(cells: CoarseCells, joint: Floats, outputs: CoarseCells) -> pd.DataFrame:
    return _table(cells.names, cells.low, cells.high, joint[cells.place], outputs)


def _category_cells(lake: LakeState, name: str, outputs: CoarseCells, k: int) -> tuple[pd.DataFrame, float]:
    """Each category is the cell of the ones of its 0/1 feature."""
    before = 0
    for each in lake.categories:
        if each.column == name:
            break
        before += len(each.features)
    state, reference = lake.span.indicators, lake.references.indicators
    mine = range(before, before + len(each.features))
    ones = [
        int(reference.coarse[j][places(np.ones(1), float(reference.origin[j]), float(reference.scale[j]), BUCKETS)[0]])
        for j in mine
    ]
    joint = np.array([state.pairs.joint[k, j, one] for j, one in zip(mine, ones, strict=True)])
    unknown = np.full(len(ones), np.nan)
    names = [feature.removeprefix(f"{name}=") for feature in each.features]
    columns = state.columns
    return _table(names, unknown, unknown, joint, outputs), _share(int(columns.missing[before]), int(columns.n[before]))


def _table(names: list[str], low: Floats, high: Floats, joint: Floats, outputs: CoarseCells) -> pd.DataFrame:
    import pandas as pd

    rows = joint.sum(axis=1)
    total = rows.sum() or 1.0
    table = pd.DataFrame({"cell": names, "low": low, "high": high, "rows": rows, "share": rows / total})
    table[["q25", "q50", "q75"]] = output_quantiles(joint, outputs, LEVELS)
    if outputs.two:
        with np.errstate(invalid="ignore"):
            table["upper"] = joint[:, outputs.place[1]] / rows
    return table


def _share(missing: int, n: int) -> float:
    return missing / max(missing + n, 1)


def _scores(row: pd.DataFrame) -> dict[str, Any]:
    return records(row)[0] if len(row) else {}
