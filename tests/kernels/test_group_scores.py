"""Scores of groups, from the sums of their members."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from excir_dask.kernels.groups import score_group


@given(st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_a_group_scores_like_the_sum_of_its_members(size, seed):
    rng = np.random.default_rng(seed)
    d, scales = rng.random(size) + 0.1, rng.random(size) + 0.1
    n = d * rng.uniform(-1, 1, size)
    found = score_group(n, d, scales)
    assert found.cir == pytest.approx((1 + n.sum() / d.sum()) / 2)
    assert found.cir_scaled == pytest.approx((1 + (n / scales).sum() / (d / scales).sum()) / 2)
    assert found.strength == pytest.approx(abs(n.sum() / d.sum()))
    assert found.strength_unsigned == pytest.approx(np.abs(n).sum() / d.sum())
    assert found.direction == np.sign(n.sum())
    assert (found.numerator, found.denominator) == (pytest.approx(n.sum()), pytest.approx(d.sum()))


def test_members_without_a_scale_add_nothing_to_the_scaled_score():
    found = score_group(np.array([1.0, -3.0]), np.array([2.0, 3.0]), np.array([0.5, 0.0]))
    assert found.cir_scaled == pytest.approx((1 + 1 / 2) / 2)
    assert found.cir == pytest.approx((1 - 2 / 5) / 2)


def test_a_group_in_which_nothing_moves_is_one_half():
    found = score_group(np.zeros(2), np.zeros(2), np.zeros(2))
    assert (found.cir, found.cir_scaled, found.strength, found.strength_unsigned, found.direction) == (
        0.5,
        0.5,
        0,
        0,
        0,
    )
