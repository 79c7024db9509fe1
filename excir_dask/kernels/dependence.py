"""What CIR cannot see: how much a column says about an output, in any direction, from counts by coarse cells.

Mutual information tells the size, and isotonic regressions whether the movement is one-way: for each value t of the
output, the share of rows below t must fall from cell to cell of the column (or rise, for all t alike). Whatever moves
the output one way, through any monotone function and under any noise, keeps to that; what goes up and down
(a square, a season) does not, nor does what widens the output's spread (one factor of a product).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from excir_dask.kernels.array_records import per_pair
from excir_dask.kernels.chance import p_value

Floats = NDArray[np.float64]

SURE = 1e-6
"""probability below which a movement that is one-way is said to bend or to interact"""

LEAST_BEND = 0.08
"""share of a dependence that must not be one-way for that to be said; of one period of a sine it is 0.12"""

LEAST_SHARE = 0.001
"""of the output's entropy: what is not one-way must be as much, so that a billion rows do not flag trifles"""

MEAN_PART = 0.02
"""a feature bends, rather than interacts, if the output's mean rank alone shows so much of what is not one-way"""

CLEAR = 0.001
"""p-value below which a dependence is clear enough to ask whether it bends"""

ROWS_PER_CELL = 5.0
"""rows that a cell of the joint counts has on average at least; with fewer rows, neighbouring cells are joined"""

EXPECTED = 2.0
"""rows that independence gives a cell on average at least: rarer values are joined with their neighbours"""

ONE_CELL = 0.9
"""share of the rows in one cell above which counts say nothing of a column whose middle half has several values: a
reference of rows that lie elsewhere puts them there"""

_CHUNK = 256
"""pairs looked at together: their counts stay in the second-level cache"""


@dataclass(frozen=True)
class Dependence:
    """Columns with outputs, (outputs, columns); NaN where rows were not counted by cells."""

    share: Floats
    """mutual information as a share of the output's entropy, corrected for bias: 0 nothing, 1 everything"""
    stderr: Floats
    """standard error of that"""
    p: Floats
    """probability of so much, or more, if column and output had nothing to do with each other (G test); NaN where
    either has all rows in one cell. All figures are NaN where a cell holds nearly all rows of a column that varies"""
    rank_p: Floats
    """probability of so large a correlation of ranks by cells. Its law under independence is normal even where both are
    skewed: ranks have no tails, and a few rows cannot decide it, as they decide a covariance"""
    bend: Floats
    """share of the mutual information that no one-way movement explains; NaN where there is no clear dependence"""
    bends: NDArray[np.bool_]
    """the output's level goes up and down along the column"""
    interacts: NDArray[np.bool_]
    """the output's spread changes along the column, or more than its level does"""


def depend(
    joint: Floats, rows: Floats, spread: Floats | None = None, output_spread: Floats | None = None
) -> Dependence:
    """Dependence from joint counts.

    Parameters
    ----------
    joint : array of shape (outputs, columns, cells, cells)
        Weight by cells of column and output, in the order of their values; no cells where nobody counted.
    rows : array of shape (outputs, columns)
        Independent rows that the weights are worth.
    spread : array of shape (columns,), optional
        Interquartile ranges: where one is above 0 and yet nearly all rows lie in one cell, nothing is known.
    output_spread : array, optional
        Of the outputs; runs of columns may have outputs of their own.
    """
    found = {name: np.full(rows.shape, np.nan) for name in ("share", "stderr", "p", "rank_p", "bend")}
    marks = {name: np.zeros(rows.shape, dtype=bool) for name in ("bends", "interacts")}
    if joint.shape[-1]:
        width = _widths(joint, rows)
        for size in map(int, np.unique(width)):
            outputs, columns = np.nonzero(width == size)
            for first in range(0, outputs.size, _CHUNK):
                part = outputs[first : first + _CHUNK], columns[first : first + _CHUNK]
                for name, values in _depend(_joined(joint[part], size), rows[part]).items():
                    (found if name in found else marks)[name][part] = values
        found["rank_p"] = p_value(rank_correlation(joint), rows)
        lost = _in_one_cell(joint, 3, spread) | _in_one_cell(joint, 2, output_spread)
        for name in found:
            found[name][lost] = np.nan
        for name in marks:
            marks[name][lost] = False
    return Dependence(**found, **marks)


def _in_one_cell(joint: Floats, others: int, spread: Floats | None) -> NDArray[np.bool_]:
    """Pairs in which a cell holds nearly all rows although the middle half has several values."""
    counts = joint.sum(axis=others)
    total = counts.sum(axis=2)
    if spread is None:
        return np.zeros(total.shape, dtype=bool)
    wide = spread[None, :] if others == 3 else per_pair(spread, *total.shape)
    return np.asarray((counts.max(axis=2) > ONE_CELL * total) & (wide > 0))


def rank_correlation(joint: Floats) -> Floats:
    """Spearman's correlation of rows that are counted by cells, (..., cells, cells); NaN where either has one cell.

    >>> rank_correlation(np.array([[3.0, 1.0], [1.0, 3.0]]))
    array(0.5)
    """
    x, y = joint.sum(axis=-1), joint.sum(axis=-2)
    # ranks from the middle of all rows, as shares of them
    total = np.maximum(x.sum(axis=-1, keepdims=True), np.finfo(float).tiny)
    rank_x, rank_y = ((np.cumsum(each, axis=-1) - each / 2.0) / total - 0.5 for each in (x, y))
    covariance = (rank_x * (joint @ rank_y[..., None])[..., 0]).sum(axis=-1)
    scale = np.sqrt((x * rank_x**2).sum(axis=-1) * (y * rank_y**2).sum(axis=-1))
    several = ((x > 0).sum(axis=-1) > 1) & ((y > 0).sum(axis=-1) > 1)
    return np.asarray(np.divide(covariance, scale, out=np.full(scale.shape, np.nan), where=several))


def _widths(joint: Floats, rows: Floats) -> NDArray[np.int64]:
    """Neighbouring cells to join, so that the cells have rows enough."""
    size = np.ones(rows.shape, dtype=np.int64)
    used = (joint.sum(axis=3) > 0).sum(axis=2) * (joint.sum(axis=2) > 0).sum(axis=2)
    while (few := (rows * size**2 < ROWS_PER_CELL * used) & (size < joint.shape[-1] // 2)).any():
        size[few] *= 2
    return size


def _joined(joint: Floats, size: int) -> Floats:
    """(pairs, cells, cells) with ``size`` neighbours as one, both ways."""
    count = joint.shape[-1] // size
    found: Floats = joint.reshape(-1, count, size, count, size).sum(axis=(2, 4))
    return found


def _without_rare(joint: Floats, rows: Floats) -> Floats:
    """Cells of the column that hold few rows joined with the cell before, and the first with the one behind."""
    joint = joint.copy()
    total = joint.sum(axis=(1, 2))
    worth = np.divide(rows, total, out=np.zeros_like(rows), where=total > 0)
    least = EXPECTED * (joint.sum(axis=1) > 0).sum(axis=1)
    last = joint.shape[1] - 1
    for i, onto in [*((i, i - 1) for i in range(last, 0, -1)), *((i, i + 1) for i in range(last))]:
        inside = joint[:, i].sum(axis=1)
        rare = (inside > 0) & (inside * worth < least) & (inside < total)
        joint[rare, onto] += joint[rare, i]
        joint[rare, i] = 0.0
    return joint


def _depend(joint: Floats, rows: Floats) -> dict[str, NDArray[np.generic]]:
    """The same for (pairs, cells, cells)."""
    from scipy.special import gammaincc

    total = joint.sum(axis=(1, 2))
    joint = _without_rare(joint, rows)
    joint = _without_rare(joint.swapaxes(1, 2), rows).swapaxes(1, 2)
    shares = joint / np.where(total > 0, total, 1.0)[:, None, None]
    x, y = shares.sum(axis=2), shares.sum(axis=1)
    rows = np.maximum(rows, 1.0)
    freedom = np.maximum((x > 0).sum(axis=1) - 1, 0) * np.maximum((y > 0).sum(axis=1) - 1, 0)
    ratio = _log_ratio(shares, x[:, :, None] * y[:, None, :])
    information = np.maximum((shares * ratio).sum(axis=(1, 2)), 0.0)
    spread = np.maximum((shares * ratio**2).sum(axis=(1, 2)) - information**2, 0.0)
    entropy = -(y * _log_ratio(y, np.ones_like(y))).sum(axis=1)
    varies = (freedom > 0) & (entropy > 0)
    entropy = np.where(varies, entropy, 1.0)
    unbiased = np.maximum(information - freedom / (2.0 * rows), 0.0)
    p = np.where(varies, gammaincc(np.maximum(freedom, 1) / 2.0, rows * information), np.nan)
    found: dict[str, NDArray[np.generic]] = {
        "share": np.where(varies, np.minimum(unbiased / entropy, 1.0), 0.0),
        "stderr": np.where(varies, np.sqrt(spread / rows) / entropy, 0.0),
        "p": p,
        "bend": np.full(total.size, np.nan),
        "bends": np.zeros(total.size, dtype=bool),
        "interacts": np.zeros(total.size, dtype=bool),
    }
    clear = varies & (np.where(varies, p, 1.0) < CLEAR) & (unbiased > 0)
    if clear.any():
        apart, noise = _not_one_way(shares[clear], x[clear])
        left = np.maximum(apart - noise / (2.0 * rows[clear]), 0.0)
        bend = np.minimum(left / unbiased[clear], 1.0)
        sure = gammaincc(np.maximum(noise, 1) / 2.0, rows[clear] * apart) < SURE
        marked = sure & (bend >= LEAST_BEND) & (left / entropy[clear] >= LEAST_SHARE)
        by_mean = _mean_bends(shares[clear], x[clear], y[clear], rows[clear], left)
        found["bend"][clear] = bend
        found["bends"][clear], found["interacts"][clear] = marked & by_mean, marked & ~by_mean
    return found


def _not_one_way(shares: Floats, x: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """How far the counts are from the nearest ones that move one way, as information, and what chance adds.

    The share of rows below each cell of the output is fitted by a monotone function of the column's cells. Such fits
    keep the order of the shares, so that together they are distributions again. Chance adds half a degree of freedom
    per row for each cell that a fit joins with its neighbour.
    """
    below = np.cumsum(shares, axis=2)[:, :, :-1].swapaxes(1, 2)  # (pairs, cuts, cells of the column)
    cuts = np.cumsum(shares.sum(axis=1), axis=1)[:, :-1]
    real = (np.diff(cuts, axis=1, prepend=0.0) > 0) & (cuts < 1.0 - _ROUNDING)
    weight, used = x[:, None, :], (x > 0).sum(axis=1)
    apart, noise = [], []
    for sign in (1.0, -1.0):
        fit, levels = isotonic(sign * below, np.broadcast_to(weight, below.shape))
        fitted = np.diff(sign * fit, axis=1, prepend=0.0, append=weight).swapaxes(1, 2)
        apart.append((shares * _log_ratio(shares, fitted)).sum(axis=(1, 2)))
        noise.append(((used[:, None] - levels) * real).sum(axis=1))
    best = np.argmin(apart, axis=0)
    return np.maximum(np.choose(best, apart), 0.0), np.choose(best, noise)


def _mean_bends(shares: Floats, x: Floats, y: Floats, rows: Floats, left: Floats) -> NDArray[np.bool_]:
    """Whether the output's mean rank goes up and down along the column, and so makes up a part of what is not one-way.

    Parameters
    ----------
    left : array of shape (pairs,)
        Information that no one-way movement explains.
    """
    from scipy.special import gammaincc

    rank = np.cumsum(y, axis=1) - y / 2.0
    middle = (shares * rank[:, None, :]).sum(axis=2)  # of each cell, times its weight
    variance = (y * (rank - 0.5) ** 2).sum(axis=1)
    safe = np.where(x > 0, x, 1.0)
    moves = ((middle - x / 2.0) ** 2 / safe).sum(axis=1) / variance
    apart, noise = [], []
    for sign in (1.0, -1.0):
        fit, levels = isotonic(sign * middle, x)
        apart.append((((middle - sign * fit) ** 2) / safe).sum(axis=1) / variance)
        noise.append((x > 0).sum(axis=1) - levels)
    best = np.argmin(apart, axis=0)
    raw, freedom = np.choose(best, apart), np.choose(best, noise)
    sure = gammaincc(np.maximum(freedom, 1) / 2.0, rows * raw / 2.0) < SURE
    found = np.clip(raw - freedom / rows, 0.0, 1.0 - _ROUNDING)
    return np.asarray(sure & (found >= LEAST_BEND * moves) & (-0.5 * np.log1p(-found) >= MEAN_PART * left))


def isotonic(totals: Floats, weights: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Totals (value times weight) whose values rise along the last axis and are nearest to those given; and how many
    different values there are.

    >>> isotonic(np.array([1.0, 3.0, 2.0, 4.0]), np.ones(4))
    (array([1. , 2.5, 2.5, 4. ]), array(3))
    """
    from excir_dask.kernels.monotone_loops import pool

    flat = (-1, totals.shape[-1])
    found = np.empty_like(totals).reshape(flat)
    levels = np.empty(len(found), dtype=np.int64)
    pool(np.ascontiguousarray(totals).reshape(flat), np.ascontiguousarray(weights).reshape(flat), found, levels)
    return found.reshape(totals.shape), levels.reshape(totals.shape[:-1])


def _log_ratio(one: Floats, other: Floats) -> Floats:
    """log(one / other); 0 where there is nothing."""
    there = (one > 0) & (other > 0)
    return np.log(np.divide(one, other, out=np.ones_like(one), where=there))


_ROUNDING = 1e-12
