"""From sums to scores: plain arithmetic on arrays of shape (outputs, columns)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from excir_dask.kernels import chance
from excir_dask.kernels.array_records import per_pair
from excir_dask.kernels.recenter import Sums
from excir_dask.kernels.settle import ColumnStats

Floats = NDArray[np.float64]

LOW_SUPPORT = 30.0
"""effective rows below which a score is flagged"""

CHANCE = 0.01
"""probability that the spread between row groups decides although rows are independent"""

WIDE_BOUND = 0.01
"""certified effect of approximate centres above which a score is flagged; most are below 0.002"""


FEW = 1.5
"""rows that a sample may easily miss: sets the least error of a score that few rows carry"""

UNKNOWN = 0.5
"""standard error of a score when nothing is known about it"""

LARGE_JUMP = 0.1
"""of the interquartile range: the effect of a centre's smaller jump is that of a small move"""

_LEAST_SQUARE = 1e-319
"""mean of p^2 below which squares are rounded away; a float ends at 5e-324"""


@dataclass(frozen=True)
class Ranking:
    """What ranks follow. A new one is a new entry of ``RANKINGS``, and a column of that name in the tables."""

    of: str
    """column that the value is made of, and whose errors make ranks uncertain"""
    value: Callable[[Floats, Floats], Floats]
    """from that column and ``null``; the largest comes first"""
    limits: Callable[[Floats, Floats, Floats], tuple[Floats, Floats]]
    """smallest and largest value while that column is between two limits, given ``null``"""
    chance_last: bool = True
    """features that chance explains come behind all others"""

    def order(self, value: Floats, chance: NDArray[np.bool_]) -> Floats:
        """What ranks are made of: values are from 0 to 1, so those that chance explains are put below 0."""
        return value - chance if self.chance_last else value

    @property
    def has_groups(self) -> bool:
        """Groups have such a value too: it follows from sums, which groups share."""
        return self.of == "cir"


def strength(cir: Floats, null: Floats) -> Floats:
    """How far a score is from what chance gives, from 0 to 1, whatever its direction."""
    return np.abs(chance.lift(cir, null))


def _strength_limits(low: Floats, high: Floats, null: Floats) -> tuple[Floats, Floats]:
    ends = np.stack([chance.lift(low, null), chance.lift(high, null)])
    sizes = np.abs(ends)
    return np.where((ends[0] < 0) & (ends[1] > 0), 0.0, sizes.min(axis=0)), sizes.max(axis=0)


RANKINGS: dict[str, Ranking] = {
    "strength": Ranking("cir", strength, _strength_limits),
    "dependence": Ranking("dependence", lambda value, null: value, lambda low, high, null: (low, high)),
    "cir": Ranking("cir", lambda cir, null: cir, lambda low, high, null: (low, high), chance_last=False),
}


@dataclass(frozen=True)
class Scores:
    """Everything scored, (outputs, columns)."""

    cir: Floats
    null: Floats
    """cir of a column like this one that has nothing to do with the output"""
    lift: Floats
    """part of the way from null to 1 that cir goes; negative: to 0"""
    lift_stderr: Floats
    """standard error of lift"""
    p_chance: Floats
    """probability of a covariance as far from 0 if the column had nothing to do with the output; NaN: not tested. The
    test of ranks (``Dependence.rank_p``) takes its place where rows were counted by cells"""
    rows: Floats
    """independent rows that tests count with: fewer if weights differ, or if rows of a row group resemble each other"""
    z: Floats
    """correlation in standard errors under independence"""
    strength: Floats
    """abs(lift)"""
    direction: NDArray[np.int8]
    """1 with the output, -1 against it, 0 neither"""
    stderr: Floats
    """standard error of cir"""
    stderr_rows: Floats
    """the same if rows were independent"""
    stderr_by: NDArray[np.bool_]
    """True where the spread between row groups decides, because rows of one group resemble each other"""
    n_eff: Floats
    """effective number of rows that carry the score, D^2 / sum p^2"""
    center_bound: Floats
    """largest change of cir that approximate centres can have caused"""
    center_jump: Floats
    """standard error of cir because a centre jumps with a few rows more or less; 0 for most columns"""
    out_of_range: NDArray[np.bool_]
    """products or their squares are no numbers: nothing is known about the error, or about the score either"""


def group_ranking(rank_by: str) -> str:
    """What ranks of groups follow where those of features follow ``rank_by``."""
    return rank_by if RANKINGS[rank_by].has_groups else "strength"


def cir(numerator: Floats, denominator: Floats) -> Floats:
    """Share of co-movement that is aligned, (1 + N/D) / 2; exactly one half where nothing moves.

    >>> cir(np.array([3.0, -1.0, 0.0]), np.array([3.0, 2.0, 0.0]))
    array([1.  , 0.25, 0.5 ])
    """
    moves = denominator > 0
    ratio = np.divide(numerator, denominator, out=np.zeros_like(denominator), where=moves)
    return (1.0 + np.clip(ratio, -1.0, 1.0)) / 2.0


def score(
    sums: Sums,
    features: ColumnStats,
    outputs: ColumnStats,
    units: int | NDArray[np.int64],
    whole_units: bool = False,
) -> Scores:
    """Scores, their standard errors and the certified effect of approximate centres.

    Parameters
    ----------
    sums : Sums
    features, outputs : ColumnStats
    units : int or array
        Units of rows (row groups) behind the sums; of each run of columns that has outputs of its own.
    whole_units : bool
        The rows are a sample of whole units, so the spread between those is what matters.
    """
    shape = sums.numerator.shape
    spread, by_output = features.q75 - features.q25, outputs.q75 - outputs.q25
    still, dy, jy, output_spread = (
        per_pair(each, *shape) for each in (outputs.constant, outputs.error, outputs.jump, by_output)
    )
    rows_of = np.atleast_1d(np.asarray(units))
    groups = np.repeat(rows_of, shape[1] // rows_of.size)[None, :]
    constant = features.constant[None, :] | still | (features.n == 0)[None, :]
    lost = ~constant & ~sums.known
    numerator = np.where(constant | lost, 0.0, sums.numerator)
    denominator = np.where(constant | lost, 0.0, sums.denominator)
    unsquared = (denominator > 0) & ~((sums.squares >= _LEAST_SQUARE * features.n) & (sums.squares < np.inf))
    score = cir(numerator, denominator)
    moves = denominator > 0
    safe = np.where(moves, denominator, 1.0)
    ratio = np.clip(numerator / safe, -1.0, 1.0)
    # roots before squares: D^2 may be too large for a float where D and the sums of squares are not
    squares, signed_squares = (np.where(unsquared | lost, 0.0, each) for each in (sums.squares, sums.signed_squares))
    square = np.where(unsquared, 1.0, (np.sqrt(squares) / safe) ** 2)
    signed = np.sign(signed_squares) * (np.sqrt(np.abs(signed_squares)) / safe) ** 2
    variance = np.where(unsquared | lost, 1.0, (1.0 + ratio**2) * square - 2.0 * ratio * signed)
    by_rows = np.where(moves | lost, np.sqrt(np.maximum(variance, 0.0)) / 2.0, 0.0)
    between = np.where(unsquared | lost, 0.0, _between_units(sums, groups, safe, ratio))
    by_units = between > np.maximum(variance, np.finfo(float).tiny) * _threshold(groups, whole_units)
    variance = np.where(by_units, between, variance)
    dx = features.error[None, :]
    stderr = np.where(moves | lost, np.sqrt(np.maximum(variance, 0.0)) / 2.0, 0.0)
    n_eff = np.divide(1.0, square, out=np.zeros_like(square), where=moves & (square > 0))
    null = np.where(moves, chance.null(sums.tilt[None, :], sums.output_tilt), 0.5)
    lift = chance.lift(score, null)
    careful = np.where(moves, np.maximum(stderr, np.minimum(FEW / np.maximum(n_eff, 1.0), UNKNOWN)), 0.0)
    likeness = np.divide(stderr, by_rows, out=np.ones_like(stderr), where=by_units & (by_rows > 0))
    rows = sums.rows[None, :] / np.maximum(likeness, 1.0) ** 2
    correlation = np.where(constant, np.nan, sums.correlation)
    z = np.nan_to_num(correlation) * np.sqrt(np.maximum(rows - 1.0, 0.0))
    with np.errstate(over="ignore", invalid="ignore"):  # sums of huge values are no numbers: nothing is known then
        effect = dx * sums.abs_y + dy * sums.abs_x[None, :] + sums.weight[None, :] * dx * dy
        jump = _jump_effect(features.jump[None, :], spread[None, :], sums.abs_y / safe, sums.slope)
        jump += _jump_effect(jy, output_spread, sums.abs_x[None, :] / safe, sums.output_slope)
        # other centres change N and D; what is uncertain changes D alone, and a ratio of at most 1 by half as much
        least = denominator - sums.uncertain
        bound = np.divide(effect, least, out=np.ones_like(effect), where=least > 0) + sums.uncertain / safe / 2.0
    unknown = ~moves & ~(effect + sums.uncertain == 0)  # nothing moves, as far as approximate centres tell
    bound = np.where(constant, 0.0, np.where(moves, np.where(bound <= 1.0, bound, 1.0), unknown))
    return Scores(
        cir=score,
        null=null,
        lift=lift,
        lift_stderr=np.where(moves, chance.lift_error(score, null, careful), 0.0),
        p_chance=chance.p_value(correlation, rows),
        rows=rows,
        z=z,
        strength=np.abs(lift),
        direction=np.sign(np.where(lift == 0, np.round(z, 6), lift)).astype(np.int8),
        stderr=stderr,
        stderr_rows=by_rows,
        stderr_by=by_units & moves,
        n_eff=n_eff,
        center_bound=bound,
        center_jump=np.where(moves, np.where(jump <= 0.5, jump, 0.5), 0.0),
        out_of_range=lost | unsquared,
    )


def _jump_effect(jump: Floats, spread: Floats, most: Floats, slope: Floats) -> Floats:
    """Standard error of scores because a centre may jump.

    A small jump (of whole numbers with few values) moves N/D along its slope, and half of it counts: scores lie between
    those of both centres. A large one counts with the most that it can change.

    Parameters
    ----------
    jump, spread : arrays
        How far the centre jumps, and the interquartile range.
    most, slope : arrays of shape (outputs, columns)
        Change of N/D per unit: at most, and for small moves.
    """
    per_unit = np.where(jump > LARGE_JUMP * spread, most, np.abs(slope) / 2.0)
    return np.where(jump > 0, jump * per_unit / 2.0, 0.0)


def _between_units(sums: Sums, units: NDArray[np.int64], denominator: Floats, ratio: Floats) -> Floats:
    """Variance of N/D from the spread between row groups; 0 where there are too few or numbers are too large."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        spread = (
            sums.unit_squares / denominator**2
            - 2.0 * ratio * (sums.unit_mixed / denominator**2)
            + ratio**2 * (sums.unit_masses / denominator**2)
        ) * (units / (units - 1.0))
    return np.where((units >= 2) & np.isfinite(spread), spread, 0.0)


def _threshold(units: NDArray[np.int64], whole_units: bool) -> Floats:
    """How many times as large as the variance of independent rows the one between row groups must be to decide."""
    if whole_units:
        return np.ones(units.shape)
    from scipy.special import chdtri

    free = np.maximum(units - 1.0, 1.0)
    return np.where(units < 2, np.inf, chdtri(free, CHANCE) / free)


def ranks(primary: Floats, support: Floats) -> NDArray[np.int64]:
    """Ranks from 1 by ``primary``, largest first; ties by ``support``, then by position.

    Values that differ by less than 1e-12 tie: rounding must not decide an order.

    >>> ranks(np.array([0.5, 1.0, 1.0]), np.array([9.0, 2.0, 4.0]))
    array([3, 2, 1])
    """
    order = np.lexsort((np.arange(primary.size), -np.round(support, 6), -np.round(primary, 12)))
    found = np.empty(primary.size, dtype=np.int64)
    found[order] = np.arange(1, primary.size + 1)
    return found
