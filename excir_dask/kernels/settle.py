"""From the state of columns to their quartiles and centres, with limits that are facts.

The cells of a bracket say in which of them a quantile lies. Where that cell holds one value, or the quantile is its
first or last one, the value is exact; else it is interpolated, and the cell's smallest and largest value enclose it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from excir_dask.kernels.brackets import CELLS, narrowed
from excir_dask.kernels.centers import CENTERINGS
from excir_dask.kernels.reference import Reference
from excir_dask.kernels.runs import Elements, enclosing, quantile
from excir_dask.kernels.state import ColumnState

if TYPE_CHECKING:
    from excir_dask.kernels.settle_loops import Counted

Floats = NDArray[np.float64]

_OPEN_CELLS = 2
"""cells of a quantile that a closer look cuts beside the bracket around all of them: those where it begins and ends"""


@dataclass(frozen=True)
class ColumnStats:
    """What is known of some columns once every row was looked at; an entry per column."""

    n: NDArray[np.int64]
    """rows with a value"""
    missing: NDArray[np.int64]
    """rows without one"""
    low: Floats
    """smallest value; inf where there is none"""
    high: Floats
    """largest value; -inf where there is none"""
    q25: Floats
    """NaN where it is not known"""
    q75: Floats
    center: Floats
    """the provisional one where a quantile that it rests on lies outside its bracket; 0 where there is no value"""
    error: Floats
    """the exact centre is no further away, rounding apart"""
    jump: Floats
    """how far the centre moves if a few rows more or less were drawn, where that is far; 0 for most columns"""
    missed: NDArray[np.bool_]
    """a quantile lies outside its bracket"""

    @property
    def constant(self) -> NDArray[np.bool_]:
        return np.equal(self.low, self.high)

    @property
    def varies(self) -> NDArray[np.bool_]:
        return (self.n > 0) & ~self.constant


def settle(state: ColumnState, reference: Reference, centering: str) -> ColumnStats:
    """Quartiles and final centres of all columns of a state."""
    from excir_dask.kernels.settle_loops import settle_all

    found, missed = np.zeros((5, reference.columns)), np.zeros(reference.columns, dtype=bool)
    settle_all(_counted(state, reference), CENTERINGS[centering].rule, found, missed)
    q25, q75, center, error, jump = found
    return ColumnStats(state.n, state.missing, state.low, state.high, q25, q75, center, error, jump, missed)


def elements(state: ColumnState, reference: Reference, j: int) -> Elements:
    """The runs of values of a column; empty ones are left out."""
    from excir_dask.kernels.settle_loops import runs_of

    return Elements(*runs_of(_counted(state, reference), j))


def _counted(state: ColumnState, reference: Reference) -> Counted:
    from excir_dask.kernels.settle_loops import Counted

    seen = {"center": reference.center, "slot_of": reference.slots, "first_edge": reference.first_edge}
    arrays = (seen[name] if name in seen else getattr(state, name) for name in Counted._fields)
    return Counted(*map(np.ascontiguousarray, arrays))


def opened(
    state: ColumnState, reference: Reference, stats: ColumnStats, centering: str, cells: int = CELLS
) -> Reference:
    """The same as :func:`sharpened` for columns whose quantiles may lie outside the brackets.

    What was counted says which brackets such a quantile lies between.
    """
    brackets, centers, reach = [], stats.center.copy(), stats.error.copy()
    for j in range(reference.columns):
        runs = elements(state, reference, j)
        limits = float(state.low[j]), float(state.high[j])
        levels = sorted({0.25, 0.75, *CENTERINGS[centering].levels})
        found = [enclosing(runs, level, *limits) for level in levels]
        brackets.append(found)
        if stats.missed[j]:
            ends = [found[levels.index(level)] for level in CENTERINGS[centering].levels] or [limits]
            low, high = (float(np.mean([each[side] for each in ends])) for side in (0, 1))
            centers[j], reach[j] = low + (high - low) / 2, (high - low) / 2
    return narrowed(reference, centers, brackets, reach, cells)


def sharpened(state: ColumnState, reference: Reference, stats: ColumnStats, centering: str) -> Reference:
    """A reference for another look at columns whose quantiles lie in known cells: those are cut as brackets were."""
    brackets, levels = [], sorted({0.25, 0.75, *CENTERINGS[centering].levels})
    for j in range(reference.columns):
        runs = elements(state, reference, j)
        found = [quantile(runs, level) for level in levels]
        known = [level for level, each in zip(levels, found, strict=True) if each is not None]
        open_cells = [cell for level in known for cell in widest(runs, level)]
        brackets.append([each.around for each in found if each is not None] + open_cells)
    return narrowed(reference, stats.center, brackets, stats.error)


def widest(runs: Elements, level: float) -> list[tuple[float, float]]:
    """Limits of the cells that leave most of a linear quantile open; none where it is known.

    Rows of little weight have small ranks: the quantile is then a mean over many cells, each with a part in it, and the
    bracket around all of them does not get narrower.
    """
    rank = level * max(float(runs.ends[-1]) - 1.0, 0.0)
    parts = np.minimum(runs.ends, rank + 1.0) - np.maximum(np.append(0.0, runs.ends[:-1]), rank)
    doubt = np.nan_to_num(np.maximum(parts, 0.0) * (runs.high - runs.low))
    most = np.argsort(-doubt, kind="stable")[:_OPEN_CELLS]
    return [(float(runs.low[cell]), float(runs.high[cell])) for cell in most if doubt[cell] > 0]
