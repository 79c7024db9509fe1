"""Sums for the trimmed centre, the mean of the values inside [q25, q75]: they need the quartiles first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from excir_dask.kernels.centers import ColumnStats

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TrimmedSums:
    """Weighted sum and weight of the values between the quartiles, one entry per column."""

    VERSION: ClassVar[int] = 1

    total: Annotated[Floats, "columns"]
    """sum of w (x - q25), so that a large offset costs no digits"""
    weight: Annotated[Floats, "columns"]


def trim(columns: Iterable[Floats], q25: Floats, q75: Floats, weights: Floats | None) -> TrimmedSums:
    """Sums of one block of rows."""
    totals, masses = np.zeros(q25.size), np.zeros(q25.size)
    for j, x in enumerate(columns):
        inside = (x >= q25[j]) & (x <= q75[j])
        mass = inside.astype(float) if weights is None else np.where(inside, weights, 0.0)
        totals[j] = (mass * np.where(inside, x - q25[j], 0.0)).sum()  # 0 times an infinite value is not 0
        masses[j] = mass.sum()
    return TrimmedSums(totals, masses)


def merge_trimmed(parts: Sequence[TrimmedSums]) -> TrimmedSums:
    """Sums over the rows of all parts, added in the order given."""
    return TrimmedSums(
        sum((p.total for p in parts[1:]), parts[0].total), sum((p.weight for p in parts[1:]), parts[0].weight)
    )


def concatenate_trimmed(parts: Sequence[TrimmedSums]) -> TrimmedSums:
    """Sums of neighbouring column blocks as one."""
    return TrimmedSums(np.concatenate([p.total for p in parts]), np.concatenate([p.weight for p in parts]))


def with_trimmed(stats: ColumnStats, sums: TrimmedSums) -> ColumnStats:
    """Statistics whose trimmed means are filled in where they were not exact already."""
    with np.errstate(invalid="ignore", divide="ignore"):
        means = stats.q25 + sums.total / sums.weight
    return replace(stats, trimmed=np.where(np.isnan(stats.trimmed), means, stats.trimmed))
