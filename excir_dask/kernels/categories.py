"""Columns of categories: their values are counted first, then the frequent ones become a 0/1 feature each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from excir_dask.kernels.summaries import ColumnSummary

Floats = NDArray[np.float64]

MOST_VALUES = 10_000
"""distinct values that a column may have; one with more holds identifiers rather than categories"""

OTHER = "(other)"
"""the feature of all categories that have none of their own"""


@dataclass(frozen=True)
class CategoryCounts:
    """How often each value of a column occurs."""

    VERSION: ClassVar[int] = 1

    values: Annotated[tuple[str, ...], "values"]
    """in alphabetical order; empty where there are too many"""
    rows: Annotated[NDArray[np.int64], "values"]
    weights: Annotated[Floats, "values"]
    missing: int
    """rows without a value"""
    whole: bool
    """every weight is a whole number"""
    too_many: bool = False
    """there are more than ``MOST_VALUES``; they are no longer counted"""


@dataclass(frozen=True)
class Categories:
    """The categories of a column that are features, most frequent first."""

    VERSION: ClassVar[int] = 1

    column: str
    values: tuple[str, ...]
    other: bool
    """there are further categories, which share one feature"""

    @property
    def features(self) -> tuple[str, ...]:
        rest = OTHER if OTHER not in self.values else "(all others)"
        names = [*self.values, *([rest] if self.other else [])]
        return tuple(f"{self.column}={name}" for name in names)


def count_categories(
    codes: NDArray[np.int32], values: Sequence[str], weights: Floats | None, limit: int = MOST_VALUES
) -> CategoryCounts:
    """Counts over some rows; ``codes`` are indices into ``values``, -1 for missing."""
    present = codes >= 0
    inside = codes[present]
    rows = np.bincount(inside, minlength=len(values))
    if weights is None:
        sums, whole = rows.astype(np.float64), True
    else:
        sums = np.bincount(inside, weights[present], minlength=len(values)).astype(np.float64)
        whole = bool(np.all(weights[present] == np.rint(weights[present])))
    present_values = {value: i for i, value in enumerate(values) if rows[i]}
    order = [present_values[value] for value in sorted(present_values)]
    part = CategoryCounts(
        tuple(values[i] for i in order), rows[order], sums[order], int(codes.size - inside.size), whole
    )
    return _limited(part, limit)


def merge_categories(parts: Sequence[CategoryCounts], limit: int = MOST_VALUES) -> CategoryCounts:
    """Counts over the rows of all parts."""
    index = {value: i for i, value in enumerate(sorted({value for part in parts for value in part.values}))}
    rows, weights = np.zeros(len(index), dtype=np.int64), np.zeros(len(index))
    for part in parts:
        where = [index[value] for value in part.values]
        rows[where] += part.rows
        weights[where] += part.weights
    merged = CategoryCounts(
        tuple(index),
        rows,
        weights,
        sum(part.missing for part in parts),
        all(part.whole for part in parts),
        any(part.too_many for part in parts),
    )
    return _limited(merged, limit)


def choose_categories(column: str, counts: CategoryCounts, most: int) -> Categories:
    """The ``most`` most frequent categories; ties in alphabetical order."""
    order = np.argsort(-counts.rows, kind="stable")
    return Categories(column, tuple(counts.values[i] for i in order[:most]), len(order) > most)


def indicator_summaries(counts: CategoryCounts, chosen: Categories) -> list[ColumnSummary]:
    """Summaries of the 0/1 features, which follow from the counts."""
    index = {value: i for i, value in enumerate(counts.values)}
    mine = [index[value] for value in chosen.values]
    ones = [(int(counts.rows[i]), float(counts.weights[i])) for i in mine]
    n, weight = int(counts.rows.sum()), float(counts.weights.sum())
    if chosen.other:
        rest = [i for value, i in index.items() if value not in set(chosen.values)]
        ones.append((int(counts.rows[rest].sum()), float(counts.weights[rest].sum())))
    return [_summary(n, weight, rows, heavy, counts.missing, counts.whole) for rows, heavy in ones]


def indicators(codes: NDArray[np.int32], values: Sequence[str], chosen: Categories) -> Iterator[Floats]:
    """The 0/1 features over some rows, NaN where the category is missing."""
    index = {value: i for i, value in enumerate(chosen.values)}
    translated = np.array([*(index.get(value, len(index)) for value in values), -1])[codes]
    missing = codes < 0
    for i in range(len(chosen.features)):
        found = (translated == i).astype(np.float64)
        if missing.any():
            found[missing] = np.nan
        yield found


def _limited(counts: CategoryCounts, limit: int) -> CategoryCounts:
    if not counts.too_many and len(counts.values) <= limit:
        return counts
    nothing = np.empty(0)
    return CategoryCounts((), nothing.astype(np.int64), nothing, counts.missing, counts.whole, True)


def _summary(n: int, weight: float, ones: int, heavy: float, missing: int, whole: bool) -> ColumnSummary:
    points = np.array([0.0] * (ones < n) + [1.0] * (ones > 0))
    masses = np.array([weight - heavy] * (ones < n) + [heavy] * (ones > 0))
    return ColumnSummary(
        n=n,
        missing=missing,
        weight=weight,
        whole=whole,
        low=float(points.min(initial=np.inf)),
        high=float(points.max(initial=-np.inf)),
        total=heavy,
        exact=True,
        points=points,
        weights=masses,
    )
