"""BlockCIR: a group's sums are the sums of its members', so groups need no scan of their own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from excir_dask.kernels import chance
from excir_dask.kernels.scores import cir

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class GroupScore:
    """One group against one output."""

    cir: float
    """(1 + N_G/D_G) / 2, the paper's score: members count by their own scale"""
    cir_scaled: float
    """the same with every member divided by its scale first"""
    null: float
    """cir of members like these that have nothing to do with the output; NaN where that of a member is not known"""
    lift: float
    """part of the way from null to 1 that cir goes; negative: to 0"""
    lift_stderr: float
    """at least the standard error of lift: members are taken to err together"""
    strength: float
    """abs(lift)"""
    strength_unsigned: float
    """sum of |N_j| over sum of D_j: what is left when members may move against each other"""
    direction: int
    numerator: float
    denominator: float


def score_group(
    numerators: Floats, denominators: Floats, scales: Floats, scores: Floats, nulls: Floats, errors: Floats
) -> GroupScore:
    """Score of a group from its members' sums.

    Parameters
    ----------
    numerators, denominators : arrays of shape (members,)
        N_j and D_j.
    scales : array of shape (members,)
        Interquartile ranges (or a substitute); a member with scale 0 is constant and adds nothing.
    scores, nulls, errors : arrays of shape (members,)
        The members' own cir, null and standard errors of lift. A group's cir is the mean of its members', weighted by
        D_j, and so is what chance gives. How the errors of members correlate is unknown, so they are added as if they
        all erred together.

    Examples
    --------
    >>> half, none = np.full(2, 0.5), np.zeros(2)
    >>> pair = score_group(np.array([4.0, -4.0]), np.array([5.0, 5.0]), np.ones(2), np.array([0.9, 0.1]), half, none)
    >>> pair.cir, pair.strength_unsigned
    (0.5, 0.8)
    """
    usable = scales > 0
    inverse = np.divide(1.0, scales, out=np.zeros_like(scales), where=usable)
    sums = np.array([numerators.sum(), np.dot(numerators, inverse)])
    masses = np.array([denominators.sum(), np.dot(denominators, inverse)])
    plain, scaled = cir(sums, masses)
    unsigned = float(np.abs(numerators).sum() / masses[0]) if masses[0] > 0 else 0.0
    weights = denominators / masses[0] if masses[0] > 0 else np.zeros_like(denominators)
    null = float(np.dot(weights, nulls)) if masses[0] > 0 else 0.5
    error = float(np.dot(weights, errors * np.where(scores >= nulls, 1.0 - nulls, nulls)))
    ends = np.array([plain]), np.array([null])
    lift = float(chance.lift(*ends)[0])
    return GroupScore(
        cir=float(plain),
        cir_scaled=float(scaled),
        null=null,
        lift=lift,
        lift_stderr=float(chance.lift_error(*ends, np.array([error]))[0]) if error > 0 else error,
        strength=abs(lift),
        strength_unsigned=unsigned,
        direction=int(np.sign(lift)),
        numerator=float(sums[0]),
        denominator=float(masses[0]),
    )
