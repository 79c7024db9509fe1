"""The sums from which every score follows, at given centres.

With x~ = x - m_x, y~ = y - m_y and p = w x~ y~, a feature needs four sums over the rows for each output:

    N = sum p      D = sum |p|      S2 = sum p^2      SP = sum p|p|

over the rows and over units of neighbouring rows (their spread shows how much the rows of a unit resemble each other),
and, for the certified bound, the sums of w|x~| and w|y~| and the weight below some thresholds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from excir_dask.errors import InternalError
from excir_dask.kernels.centers import Centers

Floats = NDArray[np.float64]
Pairs = Annotated[Floats, "outputs", "columns"]


@dataclass(frozen=True)
class Sums:
    """Co-movement sums of some columns with every output, over some rows. Added, never changed."""

    VERSION: ClassVar[int] = 1

    centers: str
    """identity of the centres, of the columns and of the outputs: sums at other centres cannot be added"""
    numerator: Pairs
    """N"""
    denominator: Pairs
    """D"""
    squares: Pairs
    """S2"""
    signed_squares: Pairs
    """SP"""
    unit_squares: Pairs
    """sum over units (row groups) of N_u^2"""
    unit_mixed: Pairs
    """sum over units of N_u D_u"""
    unit_masses: Pairs
    """sum over units of D_u^2"""
    abs_y: Pairs
    """sum of w |y~| over the rows where the column has a value"""
    abs_x: Annotated[Floats, "columns"]
    """sum of w |x~|"""
    weight: Annotated[Floats, "columns"]
    """sum of w over the rows where the column has a value"""
    below: Annotated[Floats, "columns", "levels", "thresholds"]
    """weight of the column's values strictly below each threshold"""


@dataclass(frozen=True)
class RowSums:
    """What the rows add that does not depend on any column."""

    VERSION: ClassVar[int] = 1

    centers: str
    """identity of the outputs' centres"""
    units: int
    """units with rows"""
    below: Annotated[Floats, "outputs", "levels", "thresholds"]
    """weight of the outputs' values strictly below each threshold"""


def merge_sums(parts: Sequence[Sums]) -> Sums:
    """Sums over the rows of all parts, added in the order given."""
    added = {f.name: _add([getattr(part, f.name) for part in parts]) for f in fields(Sums) if f.name != "centers"}
    return Sums(same_centers(parts), **added)


def merge_row_sums(parts: Sequence[RowSums]) -> RowSums:
    """The same over the rows of all parts."""
    return RowSums(same_centers(parts), sum(part.units for part in parts), _add([part.below for part in parts]))


def one_unit(sums: Sums) -> Sums:
    """The same with all rows as one unit: a row group that was read in batches."""
    n, d = sums.numerator, sums.denominator
    return replace(sums, unit_squares=n * n, unit_mixed=n * d, unit_masses=d * d)


def concatenate_sums(parts: Sequence[Sums]) -> Sums:
    """Sums of neighbouring column blocks over the same rows as one."""
    by_column = [f.name for f in fields(Sums) if f.name not in ("centers", "below")]
    joined = {name: np.concatenate([getattr(part, name) for part in parts], axis=-1) for name in by_column}
    return Sums(same_centers(parts), **joined, below=np.concatenate([part.below for part in parts]))


def same_centers(parts: Sequence[Sums] | Sequence[RowSums]) -> str:
    """The centres of all parts; sums at different centres mean nothing together."""
    for part in parts:
        if part.centers != parts[0].centers:
            raise InternalError(f"sums at the centres {part.centers} cannot be added to sums at {parts[0].centers}")
    return parts[0].centers


class OutputSide:
    """The outputs' half of every product over a block of rows, computed once for all columns.

    Parameters
    ----------
    outputs : float64 array of shape (outputs, rows)
    centers : Centers
        Of the outputs.
    weights : float64 array of shape (rows,), optional
    edges : int64 array, optional
        Where units of rows begin, and the last one ends; one unit by default.
    """

    def __init__(
        self,
        outputs: Floats,
        centers: Centers,
        weights: Floats | None = None,
        edges: NDArray[np.int64] | None = None,
    ):
        self.centers = centers
        self.edges = np.array([0, outputs.shape[1]]) if edges is None else edges
        self.count = outputs.shape[0]
        self.moves = outputs - centers.center[:, None]
        """(outputs, rows) of w y~"""
        if weights is not None:
            self.moves *= weights
        self.weights = np.empty(0) if weights is None else weights
        """(rows,) of w, empty for ones"""
        self.abs_y = np.array([np.abs(move).sum() for move in self.moves])
        self.weight = float(outputs.shape[1] if weights is None else weights.sum())

    def over(self, present: NDArray[np.bool_]) -> tuple[Floats, float]:
        """Sum of w |y~| of each output, and of w, over the rows where a column has a value."""
        weights = np.where(present, self.weights, 0.0) if self.weights.size else present
        return np.array([np.abs(move, where=present, out=np.zeros_like(move)).sum() for move in self.moves]), float(
            weights.sum()
        )


def co_movement(columns: Iterable[Floats], side: OutputSide, centers: Centers) -> Sums:
    """Sums of a block of columns with every output.

    Parameters
    ----------
    columns : iterable of float64 arrays of shape (rows,)
        One array per column, in the order of ``centers``; each is released before the next is requested.
    side : OutputSide
    centers : Centers
        Of the columns.
    """
    from excir_dask.kernels.numba_loops import products  # numba takes most of a second to import

    width, count = centers.center.size, side.count
    found = np.zeros((width, 7, count))
    abs_y, abs_x, weight = np.empty((count, width)), np.empty(width), np.empty(width)
    below = np.zeros(centers.thresholds.shape)
    for j, x in enumerate(columns):
        center = float(centers.center[j])
        if centers.missing[j]:
            present = np.isfinite(x)
            abs_y[:, j], weight[j] = side.over(present)
            below[j] = count_below(np.where(present, x, np.nan), centers.thresholds[j], side)
            x = np.where(present, x, center)  # moves by nothing, so it adds nothing
        else:
            abs_y[:, j], weight[j] = side.abs_y, side.weight
            below[j] = count_below(x, centers.thresholds[j], side)
        abs_x[j] = products(x, center, side.moves, side.weights, side.edges, found[j])
    n, d, squares, signed, unit_squares, unit_mixed, unit_masses = np.moveaxis(found, 0, 2)
    return Sums(
        f"{centers.identity}-{side.centers.identity}",
        n, d, squares, signed, unit_squares, unit_mixed, unit_masses, abs_y, abs_x, weight, below,
    )  # fmt: skip


def row_sums(outputs: Floats, side: OutputSide) -> RowSums:
    """What a block of rows adds; ``side`` was made from the same outputs."""
    thresholds = side.centers.thresholds
    below = np.zeros(thresholds.shape)
    for k, y in enumerate(outputs):
        below[k] = count_below(y, thresholds[k], side)
    return RowSums(side.centers.identity, int(np.count_nonzero(np.diff(side.edges))), below)


def count_below(x: Floats, thresholds: Floats, side: OutputSide) -> Floats:
    """Weight of the values strictly below each threshold (NaN is below none); zeros where an exact column has none."""
    from excir_dask.kernels.numba_loops import below

    flat = thresholds.reshape(-1)
    found = np.zeros(flat.size)
    if flat.size and not np.isnan(flat[0]):
        below(x, flat, side.weights, found)
    return found.reshape(thresholds.shape)


def _add(arrays: Sequence[Floats]) -> Floats:
    total = arrays[0].copy()
    for array in arrays[1:]:
        total += array
    return total
