"""What chance gives: the level, the lift and the test, against numpy, scipy and noise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from noise_columns import NOISE
from one_pass import Passed, awkward_columns, passed, refer, settled, watch
from scipy.stats import false_discovery_control, kstest, pearsonr

from excir_dask.kernels.chance import by_chance, either, lift, lift_error, p_value
from excir_dask.kernels.scores import score

OUTPUTS = {
    "skewed": lambda z, e: np.exp(z),
    "label": lambda z, e: (z > 1.5).astype(float),
    "margin": lambda z, e: 2 * z + e,
}


def all_passed(columns: list[np.ndarray], outputs: np.ndarray) -> Passed:
    references = refer(columns), refer(list(outputs))
    state, seen = watch(columns, outputs, references)
    return settled(references, state, seen, "midhinge")


@pytest.mark.parametrize("pilot", [None, 1000])
@pytest.mark.parametrize("weighted", [False, True])
def test_chance_and_correlation_are_those_of_numpy_at_the_final_centres(pilot, weighted):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        z = rng.standard_normal(4000)
        columns = awkward_columns(rng, z)
        y = np.exp(z + rng.standard_normal(z.size))
        w = rng.gamma(2, 1, z.size) if weighted else np.ones(z.size)
        found = passed(list(columns.values()), y, weights=w if weighted else None, pilot=pilot, blocks=3)
        for j, (name, x) in enumerate(columns.items()):
            there = np.isfinite(x)
            if not found.features.varies[j] or found.features.missed[j]:
                continue
            a, b, mass = x[there] - found.features.center[j], y[there] - found.outputs.center[0], w[there]
            tilts = [np.average(v, weights=mass) / np.average(np.abs(v), weights=mass) for v in (a, b)]
            near = 1e-4 + found.scores.center_bound[0, j]
            assert found.scores.null[0, j] == pytest.approx((1 + tilts[0] * tilts[1]) / 2, abs=near), name
            covariance = np.cov(a, b, aweights=mass)
            expected = covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
            assert found.sums.correlation[0, j] == pytest.approx(expected, abs=2e-5), name
            assert found.sums.rows[j] == pytest.approx(mass.sum() ** 2 / (mass**2).sum())


@given(st.floats(0, 1), st.floats(0, 1))
def test_lift_is_the_share_of_the_way_from_chance(cir, null):
    found = float(lift(np.array([cir]), np.array([null]))[0])
    assert -1 <= found <= 1
    assert abs(cir - null) < 1e-11 or np.sign(found) == np.sign(cir - null)
    assert found == pytest.approx(2 * cir - 1) or null != 0.5
    assert null + found * ((1 - null) if found > 0 else null) == pytest.approx(cir, abs=1e-11)


def test_a_score_that_can_only_be_chance_has_no_lift_and_any_error():
    ones, errors = np.ones(2), np.array([0.0, 0.1])
    assert lift(ones, ones).tolist() == [0.0, 0.0]
    assert lift_error(ones, ones, errors).tolist() == [1.0, 1.0]


@given(st.integers(4, 40), st.integers(0, 2**32 - 1))
def test_the_p_value_is_that_of_pearson(n, seed):
    x, y = np.random.default_rng(seed).standard_normal((2, n))
    expected = pearsonr(x, y)
    found = p_value(np.array([expected.statistic]), np.array([float(n)]))
    assert found[0] == pytest.approx(expected.pvalue, abs=1e-9)


@given(st.lists(st.floats(1e-12, 1), min_size=1, max_size=20), st.sampled_from([0.001, 0.05]))
def test_chance_is_what_benjamini_and_hochberg_leave(drawn, level):
    p = np.array(drawn)
    expected = false_discovery_control(p) > level
    np.testing.assert_array_equal(by_chance(np.append(p, np.nan), level), np.append(expected, False))


def test_two_tests_count_twice_and_one_alone_once():
    nan = np.nan
    found = either(np.array([0.1, 0.6, 0.1, nan, nan]), np.array([0.3, 0.9, nan, 0.2, nan]))
    np.testing.assert_allclose(found, [0.2, 1.0, 0.1, 0.2, nan])


def test_rows_that_resemble_each_other_and_uneven_weights_count_for_fewer():
    rng = np.random.default_rng(0)
    x, y = (np.repeat(rng.standard_normal(40), 50) + 0.3 * rng.standard_normal(2000) for _ in range(2))
    references = refer([x]), refer([y])
    state, outputs = watch([x], y[None], references, edges=np.arange(0, 2001, 50))
    found = settled(references, state, outputs, "midhinge")
    grouped = score(found.sums, found.features, found.outputs, 40)
    assert found.scores.rows[0, 0] == 2000
    assert grouped.rows[0, 0] < 200
    assert grouped.p_chance[0, 0] > found.scores.p_chance[0, 0]
    weights = rng.gamma(0.5, 1, 2000)
    assert passed([x], y, weights=weights).scores.rows[0, 0] == pytest.approx(weights.sum() ** 2 / (weights**2).sum())


def noise_p(seed: int, n: int) -> np.ndarray:
    """(outputs, columns) p-values of columns that have nothing to do with the outputs."""
    rng = np.random.default_rng(seed)
    z, e = rng.standard_normal((2, n))
    outputs = np.array([make(z, e) for make in OUTPUTS.values()])
    return all_passed([make(rng, n) for make in NOISE.values()], outputs).scores.p_chance


def test_p_values_of_noise_are_uniform():
    found = np.array([noise_p(seed, 4000) for seed in range(40)])
    for k, output in enumerate(OUTPUTS):
        for j, name in enumerate(NOISE):
            assert kstest(found[:, k, j], "uniform").pvalue > 1e-3, (output, name)


@pytest.mark.slow
def test_p_values_of_noise_are_uniform_over_many_seeds():
    found = np.array([noise_p(seed, 20_000) for seed in range(300)])
    for k, output in enumerate(OUTPUTS):
        for j, name in enumerate(NOISE):
            assert kstest(found[:, k, j], "uniform").pvalue > 1e-3, (output, name)
            assert (found[:, k, j] < 0.001).mean() <= 0.01, (output, name)
