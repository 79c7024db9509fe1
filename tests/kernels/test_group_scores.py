"""Scores of groups, from the sums of their members."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from excir_dask.kernels.chance import lift
from excir_dask.kernels.groups import GroupScore, score_group
from excir_dask.kernels.scores import cir


@given(st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_a_group_scores_like_the_sum_of_its_members(size, seed):
    rng = np.random.default_rng(seed)
    d, scales = rng.random(size) + 0.1, rng.random(size) + 0.1
    n = d * rng.uniform(-1, 1, size)
    nulls, errors = rng.uniform(0.2, 0.8, size), rng.random(size) * 0.01
    found = score_group(n, d, scales, (1 + n / d) / 2, nulls, errors)
    null = np.average(nulls, weights=d)
    assert found.cir == pytest.approx((1 + n.sum() / d.sum()) / 2)
    assert found.cir_scaled == pytest.approx((1 + (n / scales).sum() / (d / scales).sum()) / 2)
    assert found.null == pytest.approx(null)
    away = found.cir - null
    assert found.lift == pytest.approx(away / (1 - null if away > 0 else null))
    assert found.strength == abs(found.lift)
    assert found.strength_unsigned == pytest.approx(np.abs(n).sum() / d.sum())
    assert found.direction == np.sign(away)
    assert (found.numerator, found.denominator) == (pytest.approx(n.sum()), pytest.approx(d.sum()))


def group(n: np.ndarray, d: np.ndarray, scales: np.ndarray) -> GroupScore:
    """A group whose members chance gives one half."""
    return score_group(n, d, scales, cir(n, d), np.full(n.size, 0.5), np.zeros(n.size))


def test_a_group_of_one_has_the_lift_and_the_error_of_its_member():
    for score, null in ((0.9, 0.7), (0.4, 0.7), (0.7, 0.7)):
        found = score_group(*np.array([[2 * score - 1], [1.0], [1.0], [score], [null], [0.02]]))
        assert (found.null, found.lift_stderr) == (pytest.approx(null), pytest.approx(0.02))
        assert found.lift == pytest.approx(lift(np.array([score]), np.array([null]))[0])


def test_members_without_a_scale_add_nothing_to_the_scaled_score():
    found = group(np.array([1.0, -3.0]), np.array([2.0, 3.0]), np.array([0.5, 0.0]))
    assert found.cir_scaled == pytest.approx((1 + 1 / 2) / 2)
    assert found.cir == pytest.approx((1 - 2 / 5) / 2)


def test_a_group_in_which_nothing_moves_is_one_half():
    found = group(np.zeros(2), np.zeros(2), np.zeros(2))
    assert (found.cir, found.cir_scaled, found.strength, found.strength_unsigned, found.direction) == (
        0.5,
        0.5,
        0,
        0,
        0,
    )
