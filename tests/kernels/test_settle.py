"""Quartiles and centres of all rows from counts per cell, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from one_pass import awkward_columns, exact_center, passed, refer, watch, weighted_quantiles

from excir_dask.kernels.array_records import concatenated, replaced
from excir_dask.kernels.centers import CENTERINGS, Centering
from excir_dask.kernels.runs import Elements, quantile
from excir_dask.kernels.settle import settle
from excir_dask.kernels.state import ColumnState

seeds = st.integers(0, 2**32 - 1)


def seen(x: np.ndarray, reference, weights: np.ndarray | None = None, totals: bool = True) -> ColumnState:
    """State of a column over all rows."""
    y = np.zeros((1, x.size))
    return watch([x], y, (reference, refer(list(y))), weights, totals=totals)[0].columns


@pytest.mark.parametrize("centering", CENTERINGS)
@given(values=st.lists(st.integers(0, 12), min_size=2, max_size=30), pilot=st.integers(1, 30))
def test_a_centre_is_within_its_error_whatever_the_pilot_saw(centering, values, pilot):
    x = np.array(values, dtype=float)
    stats = settle(
        seen(x, refer([x[:pilot]], centering, complete=False)), refer([x[:pilot]], centering, False), centering
    )
    assert abs(stats.center[0] - exact_center(x, centering)) <= stats.error[0] + 1e-12


@given(values=st.lists(st.integers(0, 40), min_size=2, max_size=40), pilot=st.integers(1, 40))
def test_a_quartile_outside_its_bracket_is_missed_and_never_a_value(values, pilot):
    x = np.array(values, dtype=float)
    reference = refer([x[:pilot]], "midhinge", complete=False)
    stats = settle(seen(x, reference), reference, "midhinge")
    q25, q75 = np.quantile(x, [0.25, 0.75])
    if not stats.missed[0]:
        reach = 2 * stats.error[0]  # the midhinge's error is half the sum of those of the quartiles
        assert abs(stats.q25[0] - q25) <= reach + 1e-12
        assert abs(stats.q75[0] - q75) <= reach + 1e-12
    else:
        assert np.isnan([stats.q25[0], stats.q75[0]]).any()


def test_a_pilot_of_other_rows_misses_and_says_so():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(5000)
    reference = refer([x + 10.0], complete=False)
    stats = settle(seen(x, reference), reference, "midhinge")
    assert stats.missed.tolist() == [True]
    assert np.isnan(stats.q25[0])
    assert stats.center[0] == reference.center[0]
    assert stats.error[0] == x.max() - x.min()


@pytest.mark.parametrize("weights", [None, "whole", "fractional"])
@pytest.mark.parametrize("centering", CENTERINGS)
def test_quartiles_and_centres_of_awkward_columns_are_those_of_numpy(centering, weights):
    rng = np.random.default_rng(1)
    columns = awkward_columns(rng, rng.normal(size=6000))
    w = {None: None, "whole": rng.integers(1, 5, 6000).astype(float), "fractional": rng.lognormal(size=6000)}[weights]
    found = passed(list(columns.values()), rng.normal(size=6000), centering, w, blocks=3).features
    for j, (name, x) in enumerate(columns.items()):
        there = np.isfinite(x)
        masses = np.ones(there.sum()) if w is None else w[there]
        scale = 1e-13 * np.abs(x[there]).max()
        assert abs(found.center[j] - exact_center(x[there], centering, masses)) <= found.error[j] + scale, name
        if not found.missed[j]:
            expected = weighted_quantiles(x[there], masses, [0.25, 0.75])
            spread = np.subtract(*np.quantile(x[there], [0.76, 0.24])) + scale
            np.testing.assert_allclose([found.q25[j], found.q75[j]], expected, atol=2e-3 * spread, err_msg=name)


def test_columns_without_values_and_constant_ones_are_exact():
    columns = [np.full(5, np.nan), np.full(5, 0.1), np.array([4.0, 1.0, np.nan, 2.0, 8.0])]
    found = passed(columns, np.arange(5.0)).features
    assert found.n.tolist() == [0, 5, 4]
    assert found.missing.tolist() == [5, 0, 1]
    assert found.constant.tolist() == [False, True, False]
    assert found.varies.tolist() == [False, False, True]
    assert found.center.tolist()[:2] == [0.0, 0.1]
    assert found.error.tolist()[:2] == [0.0, 0.0]
    assert (found.q25[2], found.q75[2]) == (1.75, 5.0)
    assert np.isnan(found.q25[0])


def test_a_smooth_column_does_not_jump_and_one_with_a_gap_at_its_centre_does():
    rng = np.random.default_rng(0)
    gap = np.where(np.arange(20_000) < 10_000, 0.0, 100.0) + rng.random(20_000)
    columns = [rng.standard_normal(20_000), gap, np.ones(20_000)]
    stats = passed(columns, rng.standard_normal(20_000), "median").features
    assert stats.jump[0] == stats.jump[2] == 0.0
    assert stats.jump[1] == pytest.approx(100.0, abs=1.0)
    assert passed(columns, columns[0], "mean").features.jump.tolist() == [0.0] * 3
    assert passed(columns, columns[0], "midhinge").features.jump[1] == 0.0


def test_a_centring_is_added_by_one_entry(monkeypatch):
    lower = Centering(lambda summary, q25, q50, q75: q25, levels=(0.25,))
    monkeypatch.setitem(CENTERINGS, "first quartile", lower)
    x = np.random.default_rng(0).lognormal(size=5000)
    stats = passed([x], x, "first quartile").features
    assert abs(stats.center[0] - np.quantile(x, 0.25)) <= stats.error[0] < 1e-3


def test_statistics_of_some_columns_can_be_replaced_and_stand_side_by_side():
    rng = np.random.default_rng(0)
    columns = [rng.standard_normal(50) + j for j in range(4)]
    whole = passed(columns, columns[0]).features
    parts = [passed(columns[:1], columns[0]).features, passed(columns[1:], columns[0]).features]
    joined = concatenated(parts)
    np.testing.assert_array_equal(joined.center, whole.center)
    where = np.array([False, True, False, True])
    other = passed([columns[0], columns[2]], columns[0]).features
    np.testing.assert_array_equal(replaced(whole, where, other).center, whole.center[[0, 0, 2, 2]])


def elements(values: list[tuple[float, float]], weights: list[float], totals: list[float], whole: bool) -> Elements:
    low, high = np.array(values, dtype=float).T
    masses = np.array(weights, dtype=float)
    return Elements(np.cumsum(masses), low, high, masses, np.array(totals, dtype=float), whole)


def test_ranks_of_fractional_weights_are_known_up_to_rounding():
    runs = [elements([(v, v) for v in (10, 20, 30, 40, 50)], [1.0] * 5, [0.0] * 5, whole) for whole in (True, False)]
    whole, fractional = (quantile(each, 0.25) for each in runs)
    assert (whole.low, whole.value, whole.high) == (20.0, 20.0, 20.0)
    assert fractional.around == (10.0, 30.0)
    assert 20.0 - 1e-6 < fractional.low < fractional.value == 20.0 < fractional.high < 20.0 + 1e-6


@pytest.mark.parametrize("seed", range(10))
def test_a_smooth_column_of_few_rows_does_not_jump(seed):
    x = np.random.default_rng(seed).standard_normal(100)
    reference = refer([x])
    assert settle(seen(x, reference), reference, "midhinge").jump.tolist() == [0.0]
