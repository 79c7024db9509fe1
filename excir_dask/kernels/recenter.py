"""From a state to sums at the exact centres.

The cells of a bracket say in which of them a quantile lies, and how far off its value can be. With the final centres
a + dx and b + dy, N follows from the moments exactly, and D = sum|p| - dx sum(s m) - dy sum(w s d) + dx dy sum(w s),
but for the rows between the provisional and the final centre, whose sign changes. Those are taken back per cell around
the centre; only the cell in which the final centre lies is uncertain, and its sums say by how much. Its rows are taken
to lie evenly in it: that leaves a tenth of the error of leaving them as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from excir_dask.kernels.array_records import per_pair
from excir_dask.kernels.reference import Reference
from excir_dask.kernels.state import ColumnState, State

Floats = NDArray[np.float64]


Pairs = Annotated[Floats, "outputs", "columns"]


@dataclass(frozen=True)
class Sums:
    """What scores follow from, at the final centres: x~ and y~ are distances from those, p = w x~ y~."""

    numerator: Pairs
    """N = sum p"""
    denominator: Pairs
    """D = sum |p|"""
    column_doubt: Pairs
    """the denominator is no further off because of the column's centre, rounding apart"""
    output_doubt: Pairs
    """the same because of the output's centre"""
    squares: Pairs
    """sum p^2; this and the next four are at the provisional centres, close enough for standard errors"""
    signed_squares: Pairs
    """sum p|p|"""
    unit_squares: Pairs
    """sum over units (row groups) of N_u^2"""
    unit_mixed: Pairs
    """sum over units of N_u D_u"""
    unit_masses: Pairs
    """sum over units of D_u^2"""
    abs_y: Pairs
    """at least the sum of w |y~| over the rows where the column has a value"""
    abs_x: Annotated[Floats, "columns"]
    """at least the sum of w |x~|"""
    weight: Annotated[Floats, "columns"]
    """sum of w over the rows where the column has a value"""
    tilt: Annotated[Floats, "columns"]
    """k = sum w x~ / sum w |x~|: 0 where values lie evenly around the centre, 1 where none lies below it"""
    output_tilt: Pairs
    """the same of the output, over the rows where the column has a value"""
    correlation: Pairs
    """Pearson's, over the same rows; NaN where a square is too large or too small for a float"""
    slope: Pairs
    """change of N/D per unit by which the column's centre moves, for small moves"""
    output_slope: Pairs
    """the same for the output's centre"""
    rows: Annotated[Floats, "columns"]
    """(sum w)^2 / sum w^2, the rows that the weights are worth (Kish)"""

    @property
    def known(self) -> NDArray[np.bool_]:
        """N and D are numbers; products of huge values may be too large for that."""
        return np.asarray(np.isfinite(self.numerator) & np.isfinite(self.denominator))

    @property
    def uncertain(self) -> Floats:
        """The denominator is no further off, rounding apart."""
        return self.column_doubt + self.output_doubt


def recentre(
    state: State,
    outputs: ColumnState,
    references: tuple[Reference, Reference],
    centers: tuple[Floats, Floats],
) -> Sums:
    """Sums at the final centres.

    Parameters
    ----------
    state : State
        Of the columns.
    outputs : ColumnState
        Runs of columns may have outputs of their own: all outputs of the first, then those of the next.
    references : (Reference, Reference)
        Of the columns and of the outputs.
    centers : (array, array)
        Final centres of the columns and of the outputs.
    """
    columns, pairs = state.columns, state.pairs
    shifts = [center - reference.center for center, reference in zip(centers, references, strict=True)]
    count, width = pairs.sums.shape[:2]
    x, y = shifts[0][None, :], per_pair(shifts[1], count, width)
    n, d, squares, signed, t0, t1, t2 = np.moveaxis(pairs.sums, -1, 0)
    weight = columns.weight[None, :]
    across = _crossed(references[0], columns, shifts[0])
    output_across = _crossed(references[1], outputs, shifts[1])
    turned = np.einsum("kjcs,jc->kjs", pairs.flips, across.whole)
    turned += _per_output(pairs.output_flips, output_across.whole)
    partial = np.einsum("kjcs,jc->kjs", pairs.flips, across.partial)
    output_partial = _per_output(pairs.output_flips, output_across.partial)
    output_width, output_even, output_unsure, output_weight, output_passed, weights, balance = (
        per_pair(each, count, width)
        for each in (output_across.width, output_across.even, output_across.unsure, output_across.weight,
                     output_across.passed, outputs.weight, outputs.balance)
    )  # fmt: skip
    # |p| of a row whose sign stays is linear in both shifts; of one whose sign changes it is the opposite
    t0, t1, t2, d = np.moveaxis(np.stack([t0, t1, t2, d], axis=-1) - 2.0 * turned, -1, 0)
    numerator = n - x * pairs.output_total - y * columns.total[None, :] + weight * x * y
    denominator = d - x * t2 - y * t1 + x * y * t0
    guess = across.even[None, :] * np.abs(partial[..., 2] - y * partial[..., 0])
    output_guess = output_even * np.abs(output_partial[..., 1] - x * output_partial[..., 0])
    # a row of the cell that the final centre lies in is no further from it than the cell is wide
    with np.errstate(invalid="ignore"):  # infinite widths are dealt with below
        most = 2.0 * across.width[None, :] * (np.abs(partial[..., 2]) + np.abs(y) * across.unsure[None, :])
        output_most = 2.0 * output_width * (np.abs(output_partial[..., 1]) + np.abs(x) * output_unsure)
    whole = np.maximum(denominator + guess + output_guess, np.abs(numerator))
    slopes = _slopes(
        numerator,
        whole,
        (t2 - y * t0, t1 - x * t0),
        (pairs.output_total - y * weight, columns.total[None, :] - x * weight),
    )
    # of the outputs, what is known is of all rows, not of those where a column has a value
    share = weight / np.where(weights > 0, weights, 1.0)
    # rows around both centres change their sign twice
    twice = 4.0 * np.abs(x * y) * np.minimum(across.weight[None, :], output_weight)
    return Sums(
        numerator,
        whole,
        np.where(np.isinf(across.width)[None, :], np.inf, most - guess + twice),
        np.where(np.isinf(output_width), np.inf, output_most - output_guess),
        squares,
        signed,
        pairs.units[..., 0],
        pairs.units[..., 1],
        pairs.units[..., 2],
        pairs.output_absolute + np.abs(y) * weight,
        columns.absolute + np.abs(shifts[0]) * columns.weight,
        columns.weight,
        _tilt(columns.total, columns.absolute, columns.balance, columns.weight, shifts[0], across.passed),
        _tilt(
            pairs.output_total,
            pairs.output_absolute,
            share * balance,
            weight,
            y,
            share * output_passed,
        ),
        _correlation(state, n),
        *slopes,
        np.divide(columns.weight**2, columns.weight_squares, out=np.zeros(x.size), where=columns.weight_squares > 0),
    )


def _per_output(flips: Floats, cells: Floats) -> Floats:
    """Sums over the cells around the outputs' centres that count, (outputs, columns, four)."""
    outputs, columns = flips.shape[:2]
    runs = cells.shape[0] // outputs
    split = flips.reshape(outputs, runs, columns // runs, *flips.shape[2:])
    found = np.einsum("kbjcs,bkc->kbjs", split, cells.reshape(runs, outputs, cells.shape[1]))
    summed: Floats = found.reshape(outputs, columns, flips.shape[3])
    return summed


def _tilt(total: Floats, absolute: Floats, balance: Floats, weight: Floats, shift: Floats, passed: Floats) -> Floats:
    """Sum of distances over sum of absolute distances from the final centre.

    The former is exact. In the latter the rows that the centre passed count with the middles of their cells.
    """
    below = absolute - shift * balance + 2.0 * passed
    ratio = np.divide(total - shift * weight, below, out=np.zeros(below.shape), where=below > 0)
    return np.clip(ratio, -1.0, 1.0)


def _slopes(
    numerator: Floats, denominator: Floats, signed: tuple[Floats, Floats], plain: tuple[Floats, Floats]
) -> tuple[Floats, Floats]:
    """Change of N/D per unit by which the column's and the output's centre move; 0 where it is no number.

    Parameters
    ----------
    signed, plain : pairs of arrays
        Sums of the other side's distances to its centre, with the sign of the product and without it.
    """
    moves = denominator > 0
    with np.errstate(over="ignore", invalid="ignore"):
        ratio = np.divide(numerator, denominator, out=np.zeros(denominator.shape), where=moves)
        found = [
            np.divide(ratio * turn - total, denominator, out=np.zeros(denominator.shape), where=moves)
            for turn, total in zip(signed, plain, strict=True)
        ]
    first, second = (np.where(np.isfinite(each), each, 0.0) for each in found)
    return first, second


def _correlation(state: State, products: Floats) -> Floats:
    columns, pairs = state.columns, state.pairs
    weight = np.where(columns.weight > 0, columns.weight, 1.0)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        spread = np.sqrt(columns.squares - columns.total**2 / weight)
        output_spread = np.sqrt(pairs.output_squares - pairs.output_total**2 / weight)
        found = (products - pairs.output_total * (columns.total / weight)) / spread / output_spread
    return np.clip(np.where(np.isfinite(found), found, np.nan), -1.0, 1.0)


@dataclass(frozen=True)
class _Crossed:
    """Which cells lie between the provisional and the final centre of each column."""

    whole: Floats
    """(columns, FLIP_EDGES) 1 for the cells between them"""
    partial: Floats
    """(columns, FLIP_EDGES) 1 for the cell that the final centre lies in"""
    width: Floats
    """how far a row of that cell can be from the final centre and still have changed its sign; infinite where the final
    centre is beyond all cells, so that nothing is known of the rows on the way"""
    even: Floats
    """what the distances of those rows that changed their sign come to, twice, if the cell were evenly filled"""
    unsure: Floats
    """weight of that cell"""
    weight: Floats
    """weight of all of these cells"""
    passed: Floats
    """sum of w times the distance from the final centre, over the rows between the two centres, by middles of cells"""


def _crossed(reference: Reference, state: ColumnState, shift: Floats) -> _Crossed:
    from excir_dask.kernels.recenter_loops import crossed_cells

    whole, partial = np.zeros((2, *reference.flip_edges.shape))
    figures = np.zeros((3, shift.size))
    edges, weights = np.ascontiguousarray(reference.flip_edges), np.ascontiguousarray(state.flip_weight)
    crossed_cells(edges, weights, reference.center, shift, whole, partial, figures)
    width, even, passed = figures
    unsure = (partial * state.flip_weight).sum(axis=1)
    weight = ((whole + partial) * state.flip_weight).sum(axis=1)
    return _Crossed(whole, partial, width, even, unsure, weight, passed)
