"""Column summaries against numpy's own sorting and quantiles."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from excir_dask.kernels.summaries import EXACT_LIMIT, merge_column, quantiles, summarise, trimmed_mean

LEVELS = (0.0, 0.25, 0.5, 0.75, 1.0)
values = st.floats(-1e6, 1e6, allow_nan=False).map(lambda v: round(v, 3))
columns = arrays(np.float64, st.integers(1, 60), elements=values)


@given(columns)
def test_quantiles_of_few_values_are_numpys(x):
    np.testing.assert_allclose(quantiles(summarise(x), LEVELS), np.quantile(x, LEVELS), rtol=1e-14, atol=1e-9)


@given(st.lists(columns, min_size=1, max_size=6))
def test_merging_exact_summaries_is_the_summary_of_all_rows(parts):
    merged, whole = merge_column([summarise(x) for x in parts]), summarise(np.concatenate(parts))
    assert merged.exact
    assert merged.n == whole.n
    np.testing.assert_array_equal(merged.points, whole.points)
    np.testing.assert_array_equal(merged.weights, whole.weights)


@given(columns, st.integers(0, 2**32 - 1))
def test_whole_weights_are_repeated_rows(x, seed):
    w = np.random.default_rng(seed).integers(1, 6, x.size)
    weighted = quantiles(summarise(x, w.astype(float)), LEVELS)
    np.testing.assert_allclose(weighted, np.quantile(np.repeat(x, w), LEVELS), rtol=1e-13, atol=1e-9)


@given(columns, st.floats(0.01, 100))
def test_other_weights_count_by_their_ratios_alone(x, factor):
    w = np.random.default_rng(0).random(x.size) + 0.5
    one, other = summarise(x, w), summarise(x, w * factor + 0)
    np.testing.assert_allclose(quantiles(one, LEVELS), quantiles(other, LEVELS), rtol=1e-9, atol=1e-6)


@given(st.lists(columns, min_size=2, max_size=5), st.data())
def test_weights_are_whole_only_if_those_of_every_part_are(parts, data):
    """One part with other weights is enough: then all of them count by their ratios."""
    whole = [data.draw(st.booleans()) for _ in parts]
    weights = [np.arange(1.0, x.size + 1) + (0.0 if each else 0.5) for x, each in zip(parts, whole, strict=True)]
    merged = merge_column([summarise(x, w) for x, w in zip(parts, weights, strict=True)])
    together = summarise(np.concatenate(parts), np.concatenate(weights))
    assert merged.whole == together.whole == all(whole)
    np.testing.assert_allclose(quantiles(merged, LEVELS), quantiles(together, LEVELS), rtol=1e-13, atol=1e-9)


def test_equal_fractional_weights_are_no_weights():
    x = np.random.default_rng(0).standard_normal(101)
    np.testing.assert_allclose(quantiles(summarise(x, np.full(101, 0.3)), LEVELS), np.quantile(x, LEVELS), atol=1e-12)


@pytest.mark.parametrize("dtype_trap", [0.0, 1e9, -1e-30])
def test_missing_values_leave_the_summary_and_are_counted(dtype_trap):
    x = np.array([np.nan, 1.0, np.inf, 2.0, -np.inf, 3.0]) + dtype_trap
    summary = summarise(x)
    assert (summary.n, summary.missing) == (3, 3)
    np.testing.assert_array_equal(summary.points, np.array([1.0, 2.0, 3.0]) + dtype_trap)


def test_a_long_column_with_few_values_and_many_missing_ones_stays_exact():
    rng = np.random.default_rng(1)
    x = np.where(rng.random(50_000) < 0.5, np.nan, rng.integers(0, 3, 50_000) * 0.1)
    summary = summarise(x)
    assert summary.exact
    assert summary.points.tolist() == [0.0, 0.1, 0.2]
    assert summary.n == np.isfinite(x).sum()


def test_values_that_float32_cannot_hold_apart_are_kept_apart():
    x = np.repeat(1e9 + np.arange(10.0), 1000)
    assert summarise(x).points.size == 10
    wide = 1e9 + np.random.default_rng(0).random(10_000)
    summary = merge_column([summarise(part) for part in np.array_split(wide, 3)])
    assert not summary.exact
    q25 = quantiles(summary, [0.25])[0]
    assert abs((wide < q25).mean() - 0.25) < 1e-3


@pytest.mark.parametrize("scale", [1e-200, 1e-40, 1.0, 1e40, 1e200])
def test_digests_work_at_any_scale(scale):
    x = np.random.default_rng(0).standard_normal(20_000) * scale
    summary = summarise(x)
    q25 = quantiles(summary, [0.25])[0]
    assert abs((x < q25).mean() - 0.25) < 2e-4
    assert summary.low <= x.min()
    assert summary.high >= x.max()


def test_rank_errors_stay_small_over_many_merges():
    rng = np.random.default_rng(2)
    x = np.exp(rng.standard_normal(400_000))
    states = [summarise(part) for part in np.array_split(x, 200)]
    while len(states) > 1:
        states = [merge_column(states[i : i + 8]) for i in range(0, len(states), 8)]
    assert not states[0].exact
    for level in (0.25, 0.5, 0.75):
        assert abs((x < quantiles(states[0], [level])[0]).mean() - level) < 5e-4


def test_a_column_goes_over_to_a_digest_behind_the_limit():
    assert summarise(np.arange(float(EXACT_LIMIT))).exact
    assert not summarise(np.arange(float(EXACT_LIMIT + 1))).exact
    half = EXACT_LIMIT // 2
    assert merge_column([summarise(np.arange(0.0, half)), summarise(np.arange(float(half), 2.0 * half))]).exact
    assert not merge_column(
        [summarise(np.arange(0.0, half + 1)), summarise(np.arange(half + 1.0, 2.0 * half + 1))]
    ).exact


@given(columns)
@settings(max_examples=50)
def test_trimmed_means_are_numpys(x):
    q25, q75 = np.quantile(x, [0.25, 0.75])
    expected = x[(x >= q25) & (x <= q75)].mean() if ((x >= q25) & (x <= q75)).any() else np.nan
    np.testing.assert_allclose(trimmed_mean(summarise(x), q25, q75), expected, rtol=1e-12, atol=1e-9)


def test_an_empty_column_has_no_quantiles():
    summary = summarise(np.full(5, np.nan))
    assert (summary.n, summary.missing) == (0, 5)
    assert np.isnan(quantiles(summary, LEVELS)).all()
    assert merge_column([summary, summarise(np.array([1.0]))]).points.tolist() == [1.0]


def test_merging_does_not_change_its_arguments():
    parts = [summarise(np.random.default_rng(i).standard_normal(5000)) for i in range(3)]
    before = [(part.points.copy(), part.weights.copy()) for part in parts]
    merge_column(parts)
    for part, (points, weights) in zip(parts, before, strict=True):
        np.testing.assert_array_equal(part.points, points)
        np.testing.assert_array_equal(part.weights, weights)


@pytest.mark.parametrize("value", [5.0, 0.1, -1e9, 1e300, 0.0])
def test_a_long_constant_column_has_equal_limits(value):
    summary = summarise(np.full(30_000, value))
    assert summary.low == summary.high == value
    assert summary.points.tolist() == [value]


@pytest.mark.parametrize("share", [0.2, 0.26, 0.5])
@pytest.mark.parametrize("atom", [0.0, 0.1, 1e9 + 0.3])
def test_a_quartile_on_a_value_that_repeats_is_that_value(atom, share):
    rng = np.random.default_rng(0)
    x = np.where(rng.random(60_000) < share, atom, atom + np.abs(rng.standard_normal(60_000)))
    summary = merge_column([summarise(part) for part in np.array_split(x, 4)])
    q10, q60 = quantiles(summary, [0.1, 0.6])
    assert q10 == atom
    assert q60 > atom


def test_infinite_values_among_whole_numbers_are_missing():
    x = np.arange(40_000.0)
    x[7], x[11], x[13] = np.inf, -np.inf, np.nan
    summary = summarise(x)
    assert (summary.n, summary.missing, summary.low, summary.high) == (39_997, 3, 0.0, 39_999.0)
