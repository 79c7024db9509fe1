"""BlockCIR: a group's sums are the sums of its members', so groups need no scan of their own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from excir_dask.kernels.scores import cir

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class GroupScore:
    """One group against one output."""

    cir: float
    """(1 + N_G/D_G) / 2, the paper's score: members count by their own scale"""
    cir_scaled: float
    """the same with every member divided by its scale first"""
    strength: float
    """abs(2 cir - 1)"""
    strength_unsigned: float
    """sum of |N_j| over sum of D_j: what is left when members may move against each other"""
    direction: int
    numerator: float
    denominator: float


def score_group(numerators: Floats, denominators: Floats, scales: Floats) -> GroupScore:
    """Score of a group from its members' sums.

    Parameters
    ----------
    numerators, denominators : arrays of shape (members,)
        N_j and D_j.
    scales : array of shape (members,)
        Interquartile ranges (or a substitute); a member with scale 0 is constant and adds nothing.

    Examples
    --------
    >>> pair = score_group(np.array([4.0, -4.0]), np.array([5.0, 5.0]), np.array([1.0, 1.0]))
    >>> pair.cir, pair.strength_unsigned
    (0.5, 0.8)
    """
    usable = scales > 0
    inverse = np.divide(1.0, scales, out=np.zeros_like(scales), where=usable)
    sums = np.array([numerators.sum(), np.dot(numerators, inverse)])
    masses = np.array([denominators.sum(), np.dot(denominators, inverse)])
    plain, scaled = cir(sums, masses)
    unsigned = float(np.abs(numerators).sum() / masses[0]) if masses[0] > 0 else 0.0
    return GroupScore(
        cir=float(plain),
        cir_scaled=float(scaled),
        strength=abs(2.0 * float(plain) - 1.0),
        strength_unsigned=unsigned,
        direction=int(np.sign(plain - 0.5)),
        numerator=float(sums[0]),
        denominator=float(masses[0]),
    )
