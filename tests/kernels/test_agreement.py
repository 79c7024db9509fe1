"""Measures of agreement against scipy, scikit-learn and brute force; perfect for a vector and itself, always."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import linalg, stats
from sklearn.metrics import ndcg_score

from excir_dask.kernels.agreement import (
    FLOOR,
    GRID,
    LEAST_BANDWIDTH,
    affine,
    dense_ranks,
    jaccard,
    jaccard_chance,
    kendall,
    largest,
    ndcg,
    procrustes,
    spearman,
    symmetric_kl,
    top_size,
)
from excir_dask.kernels.scores import ranks

relaxed = settings(max_examples=100)
SCORES = {spearman: 1.0, kendall: 1.0, procrustes: 0.0, affine: 0.0, symmetric_kl: 0.0}
# whole steps give ties and constants, floats give values that differ by next to nothing
values = st.one_of(st.floats(0, 1), st.integers(0, 4).map(lambda step: step / 4))
vectors = st.integers(1, 12).flatmap(lambda d: arrays(float, d, elements=values))
pairs = st.integers(1, 12).flatmap(
    lambda d: st.tuples(arrays(float, d, elements=values), arrays(float, d, elements=values))
)


def place(a: np.ndarray) -> np.ndarray:
    return ranks(np.abs(2 * a - 1), np.zeros(a.size))


def test_chance_is_the_mean_over_all_pairs_of_sets():
    for d in range(1, 8):
        for k in range(1, d + 1):
            sets = [set(chosen) for chosen in combinations(range(d), k)]
            mean = np.mean([len(a & b) / len(a | b) for a in sets for b in sets])
            assert jaccard_chance(d, k) == pytest.approx(mean, abs=1e-12)


@pytest.mark.parametrize(
    ("d", "chance"), [(10, 0.672), (13, 0.454), (20, 0.259), (30, 0.161), (40, 0.117), (64, 0.071)]
)
def test_chance_of_the_top_eight(d, chance):
    assert round(jaccard_chance(d, 8), 3) == chance


def test_chance_of_a_large_top_is_soon_known():
    assert jaccard_chance(20_000, 5_000) == pytest.approx(1 / 7, abs=1e-4)


def test_the_top_is_never_everything():
    assert [top_size(8, d) for d in (1, 2, 3, 4, 7, 8, 9, 100)] == [1, 1, 1, 2, 3, 4, 8, 8]


@given(seed=st.integers(0, 2**32 - 1), d=st.integers(1, 20), k=st.integers(1, 20))
@relaxed
def test_jaccard_is_that_of_the_sets(seed, d, k):
    rng = np.random.default_rng(seed)
    a, b = rng.permutation(d) + 1, rng.permutation(d) + 1
    k = min(k, d)
    top_a, top_b = set(np.argsort(a)[:k]), set(np.argsort(b)[:k])
    assert jaccard(a, b, k) == jaccard(b, a, k) == len(top_a & top_b) / len(top_a | top_b)


def test_places_close_the_gaps():
    np.testing.assert_array_equal(dense_ranks(np.array([9, 1, 5])), [3, 1, 2])


@given(pair=pairs)
@relaxed
def test_rank_correlations_are_those_of_scipy(pair):
    a, b = np.round(pair[0], 12), np.round(pair[1], 12)
    constant = np.ptp(a) == 0, np.ptp(b) == 0
    expected = (float(all(constant)),) * 2
    if not any(constant):
        expected = stats.spearmanr(a, b).statistic, stats.kendalltau(a, b).statistic
    assert spearman(a, b) == pytest.approx(expected[0], abs=1e-12)
    assert kendall(a, b) == pytest.approx(expected[1], abs=1e-12)


@given(pair=pairs)
@relaxed
def test_residuals_are_those_of_the_matrices(pair):
    a, b = np.round(pair[0], 6), np.round(pair[1], 6)
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        assert procrustes(a, b) == affine(a, b) == float(np.ptp(a) != np.ptp(b))
        return
    x, y = ((v - v.mean())[:, None] / np.linalg.norm(v - v.mean()) for v in (a, b))
    turn, _ = linalg.orthogonal_procrustes(x, y)
    assert procrustes(a, b) == pytest.approx(np.linalg.norm(x @ turn - y) ** 2 / 2, abs=1e-9)
    assert procrustes(a, b) == pytest.approx(1 - abs(np.corrcoef(a, b)[0, 1]), abs=1e-9)
    design = np.column_stack([a, np.ones(a.size)])
    rest = b - design @ np.linalg.lstsq(design, b, rcond=None)[0]
    assert affine(a, b) == pytest.approx(np.sqrt(np.mean(rest**2)) / b.std(), abs=1e-7)


@given(seed=st.integers(0, 2**32 - 1), scale=st.floats(0.05, 0.5), turn=st.sampled_from([1, -1]))
@relaxed
def test_shape_does_not_see_shift_scale_and_mirror(seed, scale, turn):
    a = np.random.default_rng(seed).random(10)
    b = 0.5 + turn * scale * (a - 0.5)
    assert procrustes(a, b) < 1e-12
    assert affine(a, b) < 1e-7


@given(seed=st.integers(0, 2**32 - 1))
@relaxed
def test_rank_correlations_do_not_see_a_monotone_change(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.random(15), rng.random(15)
    assert spearman(a, b) == spearman(a**3, np.sqrt(b))
    assert kendall(a, b) == kendall(a**3, np.sqrt(b))


@given(seed=st.integers(0, 2**32 - 1), size=st.integers(4, 60))
@relaxed
def test_divergence_is_that_of_the_kernel_densities_of_scipy(seed, size):
    rng = np.random.default_rng(seed)
    a, b = rng.random(size), rng.beta(2, 2, size)
    assume(min(a.std(ddof=1), b.std(ddof=1)) * size**-0.2 > LEAST_BANDWIDTH)
    p, q = (stats.gaussian_kde(scores)(GRID) for scores in (a, b))
    p, q = (FLOOR / GRID.size + (1 - FLOOR) * density / density.sum() for density in (p, q))
    assert symmetric_kl(a, b) == pytest.approx(stats.entropy(p, q) + stats.entropy(q, p), rel=1e-6, abs=1e-9)


def test_divergence_of_normal_scores_is_the_known_one():
    shares = (np.arange(4000) + 0.5) / 4000
    a, b = stats.norm(0.4, 0.1).ppf(shares), stats.norm(0.6, 0.1).ppf(shares)
    assert symmetric_kl(a, b) == pytest.approx(0.2**2 / 0.1**2, rel=0.08)  # the kernels widen both


def test_divergence_of_constants_is_finite_and_grows_with_their_distance():
    found = [symmetric_kl(np.full(3, 0.5), np.full(3, 0.5 + shift)) for shift in (0.0, 0.01, 0.1, 0.4)]
    assert found[0] == 0
    assert found == sorted(found)
    assert found[-1] < 50
    assert symmetric_kl(np.array([0.0]), np.array([1.0])) < 50


def test_divergence_does_not_see_which_feature_has_which_score():
    a = np.random.default_rng(0).random(3000)
    assert symmetric_kl(a, a[::-1]) < 1e-20


@given(seed=st.integers(0, 2**32 - 1), d=st.integers(2, 15), k=st.integers(1, 15))
@relaxed
def test_ndcg_is_that_of_scikit_learn(seed, d, k):
    rng = np.random.default_rng(seed)
    gains, order = np.round(rng.random(d), 2), rng.permutation(d) + 1
    if gains.max() == 0:
        return
    assert ndcg(gains, order, k) == pytest.approx(ndcg_score([gains], [-order], k=k), abs=1e-12)
    assert ndcg(gains, order) == pytest.approx(ndcg_score([gains], [-order]), abs=1e-12)


def test_nothing_to_gain_is_nothing_lost():
    assert ndcg(np.zeros(4), np.array([4, 3, 2, 1]), 2) == 1.0


@given(a=vectors, k=st.integers(1, 12))
@relaxed
def test_every_measure_is_perfect_for_a_vector_and_itself(a, k):
    for measure, perfect in SCORES.items():
        assert measure(a, a.copy()) == perfect, measure.__name__
    assert jaccard(place(a), place(a), top_size(k, a.size)) == 1.0
    assert ndcg(np.abs(2 * a - 1), place(a)) == ndcg(np.abs(2 * a - 1), place(a), k) == 1.0
    assert largest(a, a.copy(), place(a)) == (0.0, None)


@given(pair=pairs)
@relaxed
def test_every_measure_is_a_number_in_its_range_and_the_same_from_the_other_side(pair):
    a, b = pair
    for measure in SCORES:
        assert measure(a, b) == pytest.approx(measure(b, a), abs=1e-7), measure.__name__
    assert -1 - 1e-12 <= spearman(a, b) <= 1 + 1e-12
    assert -1 <= kendall(a, b) <= 1
    assert 0 <= procrustes(a, b) <= 1
    assert 0 <= affine(a, b) <= 1
    assert 0 <= symmetric_kl(a, b) < 50
    assert 0 <= ndcg(np.abs(2 * a - 1), place(b), 4) <= 1 + 1e-12


@given(pair=pairs, seed=st.integers(0, 2**32 - 1))
@relaxed
def test_the_order_of_features_plays_no_part(pair, seed):
    a, b = pair
    order = np.random.default_rng(seed).permutation(a.size)
    for measure in SCORES:
        assert measure(a, b) == pytest.approx(measure(a[order], b[order]), abs=1e-6), measure.__name__


def test_values_that_only_rounding_tells_apart_tie():
    a = np.array([0.3, 0.1 + 0.2, 0.7])
    assert a[0] != a[1]
    assert spearman(a, np.array([0.3, 0.3, 0.7])) == kendall(a, np.array([0.3, 0.3, 0.7])) == 1.0
    assert largest(a, np.array([0.3, 0.3, 0.7]), np.array([1, 2, 3])) == (0.0, None)


def test_of_equal_shifts_the_first_by_rank_is_named():
    assert largest(np.zeros(3), np.array([0.0, 0.5, -0.5]), np.array([3, 2, 1])) == (0.5, 2)


@pytest.mark.parametrize("size", [2, 199, 200, 201, 230])
@pytest.mark.parametrize("seed", range(10))
def test_kendalls_tau_of_few_and_of_many_features_is_that_of_scipy(size, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 40, (2, size)) / 40
    a[:2], b[:2] = [0.1, 0.2], [0.2, 0.1]
    assert kendall(a, b) == pytest.approx(stats.kendalltau(a, b).statistic, abs=1e-12)
    assert kendall(a, a) == kendall(a, a + 1e-14) == 1.0
    assert kendall(a, np.full(size, 0.5)) == kendall(np.full(size, 0.5), b) == 0.0
    assert kendall(np.full(size, 0.5), np.full(size, 0.7)) == 1.0
