"""What chance gives: the score of a column that has nothing to do with the output, and how far a score is from it.

Under independence the mean of a product is the product of the means. So a column scores not 0.5 then but
``null = (1 + k_x k_y) / 2`` with k the tilt, the mean of x~ over the mean of |x~|: a rare flag and a skewed output lie
on one side of their centres, and agree whatever they mean. ``lift`` is the part of the way from there to 1 (or to 0)
that a score goes, as in Cohen's kappa.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LEVEL = 0.001
"""share of features without any relation among those that are said to be beyond chance (Benjamini and Hochberg)"""

BEYOND = 3.29
"""standard errors from chance that correspond to this level for a single feature"""

SATURATED = 0.01
"""distance of chance from 0 or 1 below which a score says nothing: nearly all rows agree whatever the column means"""

_ROUNDING = 1e-12
"""scores that differ by less are equal"""


def null(tilt: Floats, output_tilt: Floats) -> Floats:
    """The score that chance gives.

    >>> null(np.array([0.0, 1.0]), np.array([[0.4, 0.4]]))
    array([[0.5, 0.7]])
    """
    return np.asarray((1.0 + tilt * output_tilt) / 2.0)


def lift(cir: Floats, null: Floats) -> Floats:
    """Chance-corrected score from -1 to 1; 0 where chance is all there can be.

    Where chance is not known (NaN, in results of earlier versions), it is taken to be 0.5.

    >>> lift(np.array([0.9, 0.3, 1.0, 0.75]), np.array([0.8, 0.6, 1.0, np.nan]))
    array([ 0.5, -0.5,  0. ,  0.5])
    """
    null = np.where(np.isnan(null), 0.5, null)
    away = cir - null
    away = np.where(np.abs(away) < _ROUNDING, 0.0, away)
    room = np.where(away > 0, 1.0 - null, null)
    return np.clip(np.divide(away, room, out=np.zeros(away.shape), where=away != 0.0), -1.0, 1.0)


def lift_error(cir: Floats, null: Floats, stderr: Floats) -> Floats:
    """Standard error of a lift from that of its score, at most 1.

    The error of ``null`` itself is left out. Under independence and with many rows that makes the result too large: the
    errors of a score are those of its chance level plus uncorrelated ones. For related columns a shift of the chance
    level moves the lift by (1 - lift) of it. Two errors cover 92 to 100% over thirteen kinds of pairs (5,000 rows).

    >>> lift_error(np.array([0.9, 0.3]), np.array([0.8, 0.6]), np.array([0.01, 0.01])).round(4)
    array([0.05  , 0.0167])
    """
    null = np.where(np.isnan(null), 0.5, null)
    room = np.where(cir >= null, 1.0 - null, null)
    return np.minimum(np.divide(stderr, room, out=np.ones(room.shape), where=room > _ROUNDING), 1.0)


def p_value(correlation: Floats, rows: Floats) -> Floats:
    """Probability of a correlation as far from 0, or further, under independence.

    The numerator of a score minus what chance gives is n times the covariance, whatever the centres. Over all orders of
    the rows, the squared correlation has the mean 1/(n - 1), whatever the columns: that of the beta distribution which
    is its law for normal columns, and nearly so for others.

    >>> p_value(np.array([0.0, 0.1, 1.0]), np.array([400.0, 400.0, 400.0])).round(4)
    array([1.    , 0.0456, 0.    ])
    """
    from scipy.special import betainc

    enough = rows > 2.0
    p = betainc(np.where(enough, rows - 2.0, 1.0) / 2.0, 0.5, 1.0 - np.minimum(correlation**2, 1.0))
    return np.where(enough, p, np.where(np.isnan(correlation), np.nan, 1.0))


def by_chance(p: Floats, level: float = LEVEL) -> NDArray[np.bool_]:
    """Which of several p-values chance explains: Benjamini and Hochberg's rule keeps the false ones among the others
    below ``level``. NaN, where nothing was tested, is not said to be chance.

    >>> by_chance(np.array([1e-9, 0.2, 0.0007, np.nan, 0.9]))
    array([False,  True,  True, False,  True])
    """
    tested = ~np.isnan(p)
    ordered = np.sort(p[tested])
    passing = np.flatnonzero(ordered <= level * np.arange(1, ordered.size + 1) / max(ordered.size, 1))
    limit = ordered[passing[-1]] if passing.size else -1.0
    return np.asarray(tested & (np.where(tested, p, 0.0) > limit))


def any_of(p: Floats) -> float:
    """The p-value of several tests together, however they depend on each other (Bonferroni); NaN where none was made.

    >>> any_of(np.array([0.01, 0.5, np.nan]))
    0.02
    """
    made = p[~np.isnan(p)]
    return float(min(made.min() * made.size, 1.0)) if made.size else float("nan")


def either(first: Floats | float, second: Floats | float) -> Floats:
    """The same for two tests, element by element; of one of them where the other is NaN."""
    both = 2.0 * np.fmin(first, second)
    alone = np.isnan(first) | np.isnan(second)
    return np.asarray(np.minimum(np.where(alone, both / 2.0, both), 1.0))
