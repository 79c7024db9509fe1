"""Intervals and the stability of the top, against plain simulation and scipy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit
from scipy.stats import norm
from scipy.stats import t as student

from excir_dask.kernels import uncertainty
from excir_dask.kernels.scores import ranks
from excir_dask.kernels.uncertainty import intervals, smaller_errors, stability

PRIMARY = {"strength": lambda c: np.abs(2 * c - 1), "cir": lambda c: c}
"""what ranks follow"""


def arrays(*numbers: float) -> np.ndarray:
    return np.array(numbers, dtype=float)


@given(st.floats(0.01, 0.99), st.floats(1e-4, 0.2), st.floats(3, 1e6), st.floats(0.5, 0.999))
def test_intervals_are_students_on_the_scale_of_odds(score, error, n_eff, level):
    ((low,), (high,)) = intervals(arrays(score), arrays(error), arrays(n_eff), level)
    reach = student.ppf((1 + level) / 2, n_eff - 1) * error / (score * (1 - score))
    assert low == pytest.approx(expit(logit(score) - reach), rel=1e-7)
    assert high == pytest.approx(expit(logit(score) + reach), rel=1e-7)
    assert low < score < high


def test_a_score_that_few_rows_carry_has_at_least_one_degree_of_freedom():
    few = intervals(arrays(0.7), arrays(0.01), arrays(0.3))
    assert few == intervals(arrays(0.7), arrays(0.01), arrays(2.0))
    assert few[0] < intervals(arrays(0.7), arrays(0.01), arrays(3.0))[0]


def test_a_score_without_error_is_itself():
    assert [v.tolist() for v in intervals(arrays(0.3, 0.0, 1.0, 0.5), np.zeros(4), np.full(4, 50.0))] == [
        [0.3, 0.0, 1.0, 0.5],
        [0.3, 0.0, 1.0, 0.5],
    ]


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_a_unanimous_score_is_off_by_what_the_sample_may_have_missed(level):
    """With n effective rows, a share of -log(1 - level) / n is missed with probability 1 - level."""
    low, high = intervals(arrays(1.0, 0.0), arrays(0.01, 0.01), arrays(400.0, 400.0), level)
    missed = -np.log(1 - level) / 400
    np.testing.assert_allclose(low, [1 - missed, 0.0])
    np.testing.assert_allclose(high, [1.0, missed])
    assert intervals(arrays(1.0), arrays(0.01), arrays(0.1), 0.5)[0][0] == pytest.approx(1 + np.log(0.5))


def test_a_score_of_which_nothing_is_known_may_be_anything():
    low, high = intervals(arrays(1.0, 0.0), arrays(0.5, 0.5), arrays(1e9, 1e9))
    assert (low.tolist(), high.tolist()) == ([0.0, 0.0], [1.0, 1.0])
    low, high = intervals(arrays(1.0), arrays(0.49), arrays(1e9))
    assert low[0] > 0.9


def simulated(
    cir: np.ndarray,
    stderr: np.ndarray,
    n_eff: np.ndarray,
    k: int,
    target: float,
    rank_by: str,
    draws: int = 20_000,
) -> tuple[float, float, np.ndarray]:
    """Expected Jaccard, probability and membership by plain sorting of many drawn rankings."""
    rng = np.random.default_rng(99)
    primary = PRIMARY[rank_by]
    mine = set(np.argsort(-primary(cir), kind="stable")[:k])
    drawn = np.clip(cir + stderr * rng.standard_t(np.maximum(n_eff - 1, 1), (draws, cir.size)), 0, 1)
    tops = [set(row[:k]) for row in np.argsort(-primary(drawn), axis=1, kind="stable")]
    overlaps = np.array([len(mine & top) / len(mine | top) for top in tops])
    inside = np.array([np.mean([j in top for top in tops]) for j in range(cir.size)])
    return float(overlaps.mean()), float((overlaps >= target).mean()), inside


@pytest.mark.parametrize("rank_by", PRIMARY)
@pytest.mark.parametrize("rows", [5.0, 30.0, 1000.0])
def test_stability_is_what_plain_simulation_gives(rank_by, rows):
    rng = np.random.default_rng(3)
    cir = rng.uniform(0.1, 0.9, 9)
    stderr, n_eff = np.full(9, 0.06), np.full(9, rows)
    order = ranks(PRIMARY[rank_by](cir), np.zeros(9))
    found = stability(cir, stderr, n_eff, order, 3, 0.5, rank_by, draws=20_000)
    jaccard, probability, inside = simulated(cir, stderr, n_eff, 3, 0.5, rank_by)
    assert found.k == 3
    assert found.jaccard == pytest.approx(jaccard, abs=0.015)
    assert found.probability == pytest.approx(probability, abs=0.02)
    np.testing.assert_allclose(found.inside, inside, atol=0.02)
    assert found.inside.sum() == pytest.approx(3)


def test_scores_without_errors_are_sure():
    found = stability(arrays(0.9, 0.2, 0.5), np.zeros(3), np.full(3, 9.0), np.array([1, 2, 3]), 1, 0.9)
    assert (found.k, found.jaccard, found.probability, found.inside.tolist()) == (1, 1.0, 1.0, [1.0, 0.0, 0.0])


def test_at_most_half_of_the_features_are_the_top():
    assert stability(arrays(0.9, 0.2, 0.5, 0.6), np.zeros(4), np.full(4, 9.0), np.arange(4) + 1, 8, 0.9).k == 2


def test_two_features_that_noise_exchanges_are_a_coin_flip():
    found = stability(arrays(0.7, 0.7, 0.5), arrays(0.01, 0.01, 0.0), np.full(3, 1e6), np.array([1, 2, 3]), 1, 1.0)
    assert found.probability == found.jaccard == pytest.approx(0.5, abs=0.03)
    np.testing.assert_allclose(found.inside, [0.5, 0.5, 0.0], atol=0.03)


@pytest.mark.parametrize(("target", "probability"), [(1.0, 0.5), (1 / 3, 1.0), (0.34, 0.5)])
def test_the_target_is_met_by_an_overlap_that_equals_it(target, probability):
    """One of two is sure, and the second is either of two: the Jaccard is 1 or a third."""
    cir, stderr = arrays(0.99, 0.7, 0.7, 0.5, 0.5), arrays(0.0, 0.01, 0.01, 0.0, 0.0)
    found = stability(cir, stderr, np.full(5, 1e6), np.arange(5) + 1, 2, target)
    assert found.probability == pytest.approx(probability, abs=0.03)
    assert found.jaccard == pytest.approx((1 + 1 / 3) / 2, abs=0.02)


def test_equal_scores_stay_in_the_order_of_the_sample():
    """Scores at the edge do not vary: the first by rank is the top in every simulation."""
    found = stability(
        np.full(4, 0.5),
        arrays(0.0, 0.0, 0.0, 1e-9),
        np.full(4, 50.0),
        np.array([3, 1, 2, 4]),
        1,
        1.0,
        rank_by="cir",
    )
    assert found.inside[1] == pytest.approx(0.5, abs=0.05)
    assert found.inside[[0, 2]].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("seed", [0, 1])
def test_a_simulation_can_be_repeated_and_its_size_in_memory_changes_little(monkeypatch, seed):
    rng = np.random.default_rng(1)
    cir = rng.uniform(0.3, 0.7, 30)
    given_ones = cir, np.full(30, 0.03), np.full(30, 40.0), ranks(np.abs(2 * cir - 1), np.zeros(30)), 5, 0.6
    once, again = (stability(*given_ones, draws=1001, seed=seed) for _ in range(2))
    assert once.inside.tolist() == again.inside.tolist()
    monkeypatch.setattr(uncertainty, "_VALUES", 700)
    chunked = stability(*given_ones, draws=1001, seed=seed)
    assert chunked.jaccard == pytest.approx(once.jaccard, abs=0.03)
    assert chunked.inside.sum() == pytest.approx(5)
    monkeypatch.setattr(uncertainty, "_VALUES", 1)
    assert stability(*given_ones, draws=10, seed=seed).inside.sum() == pytest.approx(5)
    assert stability(*given_ones, draws=1001, seed=seed + 7).inside.tolist() != once.inside.tolist()


@given(st.integers(2, 12), st.integers(1, 6), st.sampled_from(list(PRIMARY)), st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_features_left_out_of_the_simulation_are_never_in_the_top(size, k, rank_by, seed):
    rng = np.random.default_rng(seed)
    k = min(k, max(size // 2, 1))
    cir, stderr, n_eff = rng.random(size), rng.random(size) * 0.05, rng.uniform(3, 300, size)
    drawn = np.clip(cir + stderr * rng.standard_t(n_eff - 1, (2000, size)), 0, 1)
    primary = PRIMARY[rank_by]
    tops = np.argsort(-primary(drawn), axis=1)[:, :k]
    found = stability(cir, stderr, n_eff, ranks(primary(cir), np.zeros(size)), k, 0.5, rank_by, draws=300)
    often = np.bincount(tops.ravel(), minlength=size) / 2000
    np.testing.assert_allclose(found.inside, often, atol=0.15)


def test_a_strength_around_one_half_reaches_down_to_nothing():
    """0.5 is inside the reach of the first, so that it may be weaker than both ends of it."""
    cir, stderr = arrays(0.52, 0.55, 0.54), arrays(0.02, 1e-6, 1e-6)
    found = stability(cir, stderr, np.full(3, 1e6), np.array([3, 1, 2]), 1, 1.0)
    above = norm.sf(0.03 / 0.02) + norm.cdf(-0.07 / 0.02)
    np.testing.assert_allclose(found.inside, [above, 1 - above, 0.0], atol=0.02)


def test_features_that_chance_explains_come_last_in_simulations_too():
    """The first two are strongest; chance explains the one for sure, and the other where it is drawn near 0.8."""
    cir, stderr, n_eff = arrays(0.95, 0.9, 0.6, 0.59), arrays(0.01, 0.05, 0.001, 0.001), np.full(4, 1e6)
    null, reach = arrays(0.5, 0.8, 0.5, 0.5), arrays(np.inf, 0.1, 0.0, 0.0)
    found = stability(cir, stderr, n_eff, np.array([3, 1, 2, 4]), 2, 1.0, null=null, reach=reach)
    assert found.inside[0] == 0.0
    assert found.inside[1] == pytest.approx(0.5, abs=0.05)
    assert found.inside[2] == 1.0
    by_cir = stability(cir, stderr, n_eff, np.array([1, 2, 3, 4]), 2, 1.0, "cir", null=null, reach=reach)
    assert by_cir.inside[0] == 1.0


def test_a_larger_share_has_smaller_errors():
    """Of a share f of all rows, an error that estimates all rows is that of independent rows times sqrt(1 - f)."""
    errors = arrays(0.1, 0.02)
    for share, wanted in ((0.2, 0.5), (0.5, 0.2), (0.1, 0.9)):
        expected = errors / np.sqrt(1 - share) * np.sqrt(share) * np.sqrt((1 - wanted) / wanted)
        np.testing.assert_allclose(smaller_errors(errors, share, wanted), expected)
    assert smaller_errors(errors, 0.3, 0.3) == pytest.approx(errors)
    assert smaller_errors(errors, 0.3, 1.0).tolist() == [0.0, 0.0]
