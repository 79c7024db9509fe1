"""What noise alone does to an order, against known distributions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau, norm
from scipy.stats import t as student
from sklearn.metrics import ndcg_score

from excir_dask.audit.noise import DRAWS, Order, jaccard, kendall, ndcg, noise_floor

PRIMARY = {"strength": lambda c: np.abs(2 * c - 1), "cir": lambda c: c}


@given(st.integers(2, 12), st.integers(1, 12), st.sampled_from(list(PRIMARY)), st.integers(0, 2**32 - 1))
def test_orders_agree_as_scipy_and_sets_have_it(size, k, rank_by, seed):
    rng = np.random.default_rng(seed)
    was, now = rng.random((2, size))
    k = min(k, size)
    one, other = PRIMARY[rank_by](was), PRIMARY[rank_by](now)
    tops = [set(np.argsort(-v)[:k]) for v in (one, other)]
    order = Order(rank_by, np.full(size, 0.5), np.full(size, 0.5))
    assert jaccard(was, now, k, order) == pytest.approx(len(tops[0] & tops[1]) / len(tops[0] | tops[1]))
    assert kendall(was, now, k, order) == pytest.approx(kendalltau(one, other).statistic)
    gains, strengths = PRIMARY["strength"](was), PRIMARY["strength"](now)
    assert ndcg(was, now, k, order) == pytest.approx(ndcg_score([gains], [strengths], k=k))


def test_equal_scores_keep_their_order():
    was, now = np.array([0.9, 0.7, 0.7, 0.5]), np.array([0.9, 0.7 + 1e-14, 0.7 + 2e-14, 0.5])
    order = Order("strength", np.full(4, 0.5), np.full(4, 0.5))
    assert jaccard(was, now, 2, order) == 1.0
    assert ndcg(was, now, 2, order) == 1.0


def floor(value, level=0.1, *, was=None, now=None, errors=(0.01, 0.01), degrees=(1e6, 1e6), size=50):
    """The floor of an order whose agreement is ``value`` of the two simulated runs."""
    was = np.full(size, 0.7) if was is None else np.asarray(was, dtype=float)
    now = was if now is None else np.asarray(now, dtype=float)
    of_run = [np.broadcast_to(np.asarray(e, dtype=float), was.shape) for e in (*errors, *degrees)]
    return noise_floor(was, now, *of_run, level, value)


def simulated(**options) -> tuple[np.ndarray, np.ndarray]:
    """All simulated runs of a baseline and of a window."""
    seen: list[tuple[np.ndarray, np.ndarray]] = []
    floor(lambda a, b: float(len(seen.append((a, b)) or seen)), **options)
    one, other = (np.array(runs) for runs in zip(*seen, strict=True))
    assert one.shape[0] == DRAWS
    return one, other


def test_runs_are_drawn_around_one_truth_by_the_error_of_each():
    one, other = simulated(errors=(0.01, 0.03))
    assert one.mean() == pytest.approx(0.7, abs=5e-4)
    assert other.mean() == pytest.approx(0.7, abs=1e-3)
    assert one.std() == pytest.approx(0.01, rel=0.03)
    assert other.std() == pytest.approx(0.03, rel=0.03)
    assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 0.03


def test_the_truth_is_the_mean_of_both_runs_weighted_by_their_errors():
    one, other = simulated(was=np.full(50, 0.7), now=np.full(50, 0.8), errors=(0.01, 0.02))
    for run in (one, other):
        assert run.mean() == pytest.approx((0.7 / 0.01**2 + 0.8 / 0.02**2) / (1 / 0.01**2 + 1 / 0.02**2), abs=1e-3)
    exact, _ = simulated(was=np.full(50, 0.7), now=np.full(50, 0.8), errors=(0.0, 0.02))
    assert np.ptp(exact) == 0
    assert exact[0, 0] == pytest.approx(0.7)


@pytest.mark.parametrize(("errors", "truth"), [(2.9, 0.5), (3.1, 0.7)])
def test_a_score_not_clear_of_one_half_is_noise(errors, truth):
    """Clear is three errors of the mean of both runs."""
    each = 0.2 / errors * np.sqrt(2)
    one, _ = simulated(errors=(each, each), degrees=(1e6, 1e6))
    inside = np.clip(truth + each * norm.ppf((np.arange(1000) + 0.5) / 1000), 0, 1).mean()
    assert one.mean() == pytest.approx(inside, abs=2e-3)


def test_simulated_scores_stay_scores():
    one, other = simulated(was=np.full(50, 0.98), errors=(0.2, 0.3))
    assert (one.min() >= 0, one.max(), other.max()) == (True, 1.0, 1.0)


@pytest.mark.parametrize("degrees", [(5.0, 1e6), (1e6, 5.0), (5.0, 300.0)])
def test_errors_of_few_degrees_have_students_tails(degrees):
    for run, df in zip(simulated(degrees=degrees), degrees, strict=True):
        drawn = (run - 0.7) / 0.01
        share = (np.abs(drawn) > 3).mean()
        assert share == pytest.approx(2 * student.sf(3, df), abs=3e-3)


def test_the_floor_is_the_quantile_of_what_was_simulated():
    numbers = iter(np.random.default_rng(1).permutation(DRAWS) / DRAWS)
    assert floor(lambda a, b: float(next(numbers)), level=0.1) == 39 / DRAWS
    numbers = iter(np.random.default_rng(1).permutation(DRAWS) / DRAWS)
    assert floor(lambda a, b: float(next(numbers)), level=1 / DRAWS) == 0.0


def test_a_level_that_no_simulation_reaches_is_as_far_out_as_of_a_normal_distribution():
    numbers = iter(np.random.default_rng(1).permutation(DRAWS) / DRAWS)
    level = 1e-5
    middle = (DRAWS - 1) / 2 / DRAWS
    expected = middle - middle * norm.ppf(level) / norm.ppf(1 / DRAWS)
    assert floor(lambda a, b: float(next(numbers)), level=level) == pytest.approx(expected)


def test_the_floor_of_a_difference_is_that_of_two_errors():
    found = floor(lambda a, b: float(a[0] - b[0]), level=0.05, errors=(0.03, 0.04))
    assert found == pytest.approx(norm.ppf(0.05) * 0.05, rel=0.15)
