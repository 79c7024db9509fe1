"""Dependence and what is not one-way: against scipy and scikit-learn, and by simulation."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from noise_columns import NOISE
from one_pass import refer, watch
from scipy.stats import chi2_contingency, entropy, kstest, spearmanr
from sklearn.isotonic import IsotonicRegression

from excir_dask.kernels.dependence import Dependence, depend, isotonic, rank_correlation

Drawn = Mapping[str, tuple[np.ndarray, np.ndarray]]
"""name -> a column and an output"""


def look(x: np.ndarray, y: np.ndarray, rows: float | None = None) -> Dependence:
    references = refer([x]), refer([y])
    state, _ = watch([x], y[None], references, joint=True)
    return depend(state.pairs.joint, np.full((1, 1), float(x.size if rows is None else rows)))


def bent(rng: np.random.Generator, n: int) -> Drawn:
    """Movements that are not one-way."""
    x, e = rng.standard_normal((2, n))
    u, day = rng.random((5, n)), rng.integers(1, 366, n).astype(float)
    season = np.sin(2 * np.pi * day / 365)
    friedman = 10 * np.sin(np.pi * u[0] * u[1]) + 20 * (u[2] - 0.5) ** 2 + 10 * u[3] + 5 * u[4] + e
    return {
        "square": (x, x**2 + e),
        "season": (day, 10 + 10 * season - 2.5 * u[1] + e),
        "season, noisy": (day, season + e),
        "three periods": (u[0], np.sin(6 * np.pi * u[0]) + e),
        "friedman x3": (u[2], friedman),
    }


def widening(rng: np.random.Generator, n: int) -> Drawn:
    """One factor of a product: the output's spread follows it, and its level does not."""
    a, b, e = rng.standard_normal((3, n))
    return {"product": (a, a * b + e), "positive factor": (u := rng.random(n), u * b + 0.5 * e)}


def one_way(rng: np.random.Generator, n: int) -> Drawn:
    x, e = rng.standard_normal((2, n))
    inflated = np.where(rng.random(n) < 0.6, 0, rng.gamma(2, 1, n))
    whole, flag = np.round(x), (rng.random(n) < 0.05).astype(float)
    count, skewed = rng.poisson(0.1, n).astype(float), rng.lognormal(0, 1.5, n)
    return {
        "linear": (x, x + e),
        "weak": (x, 0.1 * x + e),
        "nearly all": (x, -x + 0.05 * e),
        "skewed column": (skewed, np.log1p(skewed) + e),
        "skewed output": (x, np.exp(x + e)),
        "probability": (x, 1 / (1 + np.exp(-(2 * x + e)))),
        "label": (x, (1.5 * x + e > 1).astype(float)),
        "zero-inflated column": (inflated, inflated + e),
        "zero-inflated output": (x, np.where(rng.random(n) < 0.6, 0, np.maximum(x + e, 0))),
        "rounded column": (whole, whole + e),
        "rounded output": (x, np.round(x + e)),
        "flag": (flag, flag + e),
        "flag and label": (flag, (rng.random(n) < 0.1 + 0.3 * flag).astype(float)),
        "counts": (count, count + e),
        "two modes": (x, 0.2 * x + 10 * (rng.random(n) < 0.3) + 0.05 * e),
        "heavy tails": (x, x + rng.standard_cauchy(n)),
    }


def flags(
    make: Callable[[np.random.Generator, int], Drawn], seeds: range, n: int
) -> dict[str, list[tuple[bool, bool]]]:
    """For each seed, whether a column bends and whether it interacts."""
    found: dict[str, list[tuple[bool, bool]]] = {}
    for seed in seeds:
        for name, (x, y) in make(np.random.default_rng(seed), n).items():
            seen = look(x, y)
            found.setdefault(name, []).append((bool(seen.bends[0, 0]), bool(seen.interacts[0, 0])))
    return found


def test_what_is_not_one_way_is_flagged_and_linear_effects_are_not():
    seeds, n = range(10), 20_000
    for name, found in flags(bent, seeds, n).items():
        assert found == [(True, False)] * 10, name
    for name, found in flags(widening, seeds, n).items():
        assert found == [(False, True)] * 10, name
    for name, found in flags(one_way, seeds, 8000).items():
        assert found == [(False, False)] * 10, name


@pytest.mark.slow
def test_flags_are_right_in_99_of_100_seeds():
    seeds, n = range(1000, 1200), 20_000
    for make in (bent, widening):
        for name, found in flags(make, seeds, n).items():
            assert np.mean([any(each) for each in found]) >= 0.99, name
    for name, found in flags(one_way, seeds, n).items():
        assert np.mean([any(each) for each in found]) < 0.01, name


@given(st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_isotonic_fits_are_those_of_scikit_learn(size, seed):
    rng = np.random.default_rng(seed)
    values, weights = rng.standard_normal(size), rng.random(size) + 0.01
    expected = IsotonicRegression().fit(np.arange(size), values, weights).predict(np.arange(size))
    found, levels = isotonic(values * weights, weights)
    np.testing.assert_allclose(found, expected * weights, atol=1e-12)
    assert levels == np.unique(expected.round(12)).size


def test_cells_without_rows_do_not_change_a_fit():
    values, weights = np.array([3.0, 0.0, 1.0, 5.0, 0.0]), np.array([1.0, 0.0, 2.0, 1.0, 0.0])
    found, levels = isotonic(values, weights)
    expected, same = isotonic(values[weights > 0], weights[weights > 0])
    np.testing.assert_allclose(found[weights > 0], expected)
    assert levels == same == 2
    assert (found[weights == 0] == 0).all()


@given(st.integers(0, 2**32 - 1), st.floats(0, 0.5))
def test_information_and_its_test_are_those_of_scipy(seed, related):
    rng = np.random.default_rng(seed)
    joint = rng.poisson(rng.uniform(20, 60, (4, 4)) + 200 * related * np.eye(4)).astype(float)
    rows = joint.sum()
    test = chi2_contingency(joint, correction=False, lambda_="log-likelihood")
    found = depend(joint[None, None], np.full((1, 1), rows))
    assert found.p[0, 0] == pytest.approx(test.pvalue, rel=1e-6, abs=1e-15)
    share = max(test.statistic / (2 * rows) - test.dof / (2 * rows), 0) / entropy(joint.sum(axis=0))
    assert found.share[0, 0] == pytest.approx(share, abs=1e-12)


def test_the_error_of_a_dependence_is_its_spread_over_samples():
    found = []
    for seed in range(40):
        x, e = np.random.default_rng(seed).standard_normal((2, 2000))
        seen = look(x, x + e)
        found.append((seen.share[0, 0], seen.stderr[0, 0]))
    shares, errors = np.array(found).T
    assert shares.std() == pytest.approx(errors.mean(), rel=0.35)


def test_half_as_many_independent_rows_double_what_chance_takes():
    x, e = np.random.default_rng(0).standard_normal((2, 5000))
    whole, half = look(x, 0.1 * x + e), look(x, 0.1 * x + e, rows=2500)
    assert half.p[0, 0] > whole.p[0, 0]
    assert half.share[0, 0] < whole.share[0, 0]
    assert half.stderr[0, 0] == pytest.approx(whole.stderr[0, 0] * np.sqrt(2))


@pytest.mark.parametrize("n", [40, 150, 600])
def test_few_rows_do_not_make_a_dependence(n):
    """Cells are joined until they have rows enough: noise stays noise, and a copy stays a copy."""
    p = []
    for seed in range(30):
        x, y = np.random.default_rng(seed).standard_normal((2, n))
        p.append(look(x, y).p[0, 0])
        assert look(x, x).share[0, 0] > 0.7
    assert np.mean(np.array(p) < 0.01) <= 0.075


def test_what_does_not_vary_or_was_not_counted_is_not_tested():
    joint = np.zeros((1, 2, 16, 16))
    joint[0, 0, 3] = 10.0
    found = depend(joint, np.full((1, 2), 160.0))
    assert found.share.tolist() == [[0.0, 0.0]]
    assert np.isnan(found.p).all()
    nothing = depend(np.zeros((1, 2, 0, 0)), np.full((1, 2), 160.0))
    for name in ("share", "stderr", "p", "bend"):
        assert np.isnan(getattr(nothing, name)).all(), name
    assert not (nothing.bends | nothing.interacts).any()


def test_a_dependence_is_unknown_where_one_cell_holds_nearly_all_rows_of_a_column_that_varies():
    """As with a reference of rows that lie elsewhere; a rare flag has such a cell too, and is known."""
    joint = np.zeros((1, 2, 16, 16))
    joint[0, :, 15], joint[0, :, 3, :8] = 1000.0, 50.0
    rows, spread = np.full((1, 2), joint[0, 0].sum()), np.array([0.7, 0.0])
    found = depend(joint, rows, spread, np.array([1.0]))
    for figure in (found.share, found.stderr, found.p):
        assert np.isnan(figure[0]).tolist() == [True, False]
    assert not (found.bends | found.interacts)[0, 0]
    assert found.p[0, 1] == depend(joint, rows).p[0, 1] < 1e-6
    outputs = depend(joint.swapaxes(2, 3), rows, np.ones(2), np.array([1.0]))
    assert np.isnan(outputs.share).all()


@given(st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=2, max_size=5))
def test_the_rank_correlation_is_spearmans(drawn):
    joint = np.array(drawn, dtype=float)
    pairs = [(i, j) for i, row in enumerate(drawn) for j, count in enumerate(row) for _ in range(count)]
    found = rank_correlation(joint)
    if min(len(set(each)) for each in zip(*pairs, strict=True)) > 1 if pairs else False:
        assert found == pytest.approx(spearmanr(*zip(*pairs, strict=True)).statistic, abs=1e-9)
    else:
        assert np.isnan(found)


def rank_p(seed: int, n: int) -> list[float]:
    """Of noise of every kind against an output with a long tail."""
    rng = np.random.default_rng(seed)
    y = np.exp(1.5 * rng.standard_normal(n))
    return [float(look(make(rng, n), y).rank_p[0, 0]) for make in NOISE.values()]


def test_rank_tests_of_noise_are_uniform_where_the_output_is_skewed():
    found = np.array([rank_p(seed, 4000) for seed in range(60)])
    for j, name in enumerate(NOISE):
        assert kstest(found[:, j], "uniform").pvalue > 1e-3, name


@pytest.mark.slow
def test_rank_tests_of_noise_are_uniform_in_their_tails():
    found = np.array([rank_p(seed, 20_000) for seed in range(600)])
    for j, name in enumerate(NOISE):
        assert kstest(found[:, j], "uniform").pvalue > 1e-3, name
    assert (found < 0.001).mean() <= 0.002


def test_a_few_rows_with_huge_values_do_not_pass_for_a_relation():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 5000))
    x[:3], y[:3] = 1e6, 1e6
    assert look(x, y).rank_p[0, 0] > 0.01
    assert look(x, x + y).rank_p[0, 0] < 1e-9
