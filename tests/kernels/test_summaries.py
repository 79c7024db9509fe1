"""Column summaries against numpy's own sorting and quantiles."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from excir_dask.kernels.summaries import EXACT_LIMIT, merge_column, quantiles, rank_scale, summarise, trimmed_mean

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


def spread_out(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Values of which nearly all are distinct, and weights that grow with them."""
    x = rng.standard_normal(rows)
    return x, np.exp(x / 2) + 0.1


@pytest.mark.parametrize("parts", [1, 5])
def test_digests_of_weighted_rows_place_quantiles_by_weight(parts):
    x, w = spread_out(np.random.default_rng(6), 20_000)
    pairs = zip(np.array_split(x, parts), np.array_split(w, parts), strict=True)
    summary = merge_column([summarise(*pair) for pair in pairs])
    assert not summary.exact
    assert (summary.n, summary.whole) == (20_000, False)
    assert summary.weight == pytest.approx(w.sum())
    assert summary.weights.sum() == pytest.approx(w.sum())
    assert summary.total == pytest.approx((w * x).sum())
    for level in (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0):
        share = w[x < quantiles(summary, [level])[0]].sum() / w.sum()
        assert abs(share - level) < 1e-3


def test_a_heavy_row_is_a_quantile_for_as_long_as_its_weight_lasts():
    rng = np.random.default_rng(7)
    x, w = np.sort(rng.random(6000)), np.ones(6000)
    w[1500] = 6000.0  # of 12,000 in all: from an eighth on, half of the weight
    summary = summarise(x, w)
    assert not summary.exact
    found = quantiles(summary, [0.2, 0.3, 0.5, 0.6])
    np.testing.assert_allclose(found, x[1500], atol=6e-3)  # a digest draws a heavy point apart
    assert quantiles(summary, [0.1])[0] < x[1500] - 0.02
    assert quantiles(summary, [0.66])[0] > x[1500] + 0.02


def test_bins_have_equal_weight_and_their_middle_value():
    """A thousand bins of ten rows each, whose middle ones the digest is shown."""
    x = np.arange(10_000.0)
    summary = summarise(x, np.full(10_000, 0.5))
    assert summary.weights.sum() == 5000.0
    levels = np.linspace(0.01, 0.99, 99)
    np.testing.assert_allclose(quantiles(summary, levels), levels * 10_000, atol=12)


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_are_made_only_where_they_are_asked_for(weighted):
    x, w = np.arange(5.0), np.full(5, 2.0) if weighted else None
    assert summarise(x, w).total == (20.0 if weighted else 10.0)
    assert np.isnan(summarise(x, w, with_total=False).total)
    assert summarise(np.full(3, np.nan), None if w is None else w[:3]).total == 0.0


@given(columns, st.sampled_from([0.0, 0.5]), st.integers(0, 2**32 - 1))
def test_a_weighted_summary_counts_limits_and_sums_its_rows(x, part, seed):
    rng = np.random.default_rng(seed)
    x = np.where(rng.random(x.size) < 0.2, rng.choice([np.nan, np.inf, -np.inf], x.size), x)
    w = rng.integers(1, 5, x.size) + part
    found = summarise(x, w)
    present = np.isfinite(x)
    assert (found.n, found.missing) == (present.sum(), (~present).sum())
    assert found.weight == pytest.approx(w[present].sum())
    assert found.whole == (part == 0.0 or not present.any())
    assert (found.low, found.high) == (x[present].min(initial=np.inf), x[present].max(initial=-np.inf))
    assert found.total == pytest.approx((w * x)[present].sum(), abs=1e-6)
    assert found.exact
    assert found.points.tolist() == np.unique(x[present]).tolist()
    assert found.weights.tolist() == [w[x == v].sum() for v in found.points]


def test_merged_parts_add_rows_weights_and_sums_and_keep_the_outer_limits():
    rng = np.random.default_rng(8)
    parts = [np.append(rng.standard_normal(3000) + shift, np.nan) for shift in (0.0, 5.0, -5.0)]
    merged = merge_column([summarise(part) for part in parts])
    x = np.concatenate(parts)
    assert (merged.n, merged.missing, merged.weight, merged.whole, merged.exact) == (9000, 3, 9000.0, True, False)
    assert (merged.low, merged.high) == (np.nanmin(x), np.nanmax(x))
    assert merged.total == pytest.approx(np.nansum(x))
    assert merged.weights.sum() == 9000.0


def test_an_exact_part_joins_a_digest_with_its_weights():
    rng = np.random.default_rng(9)
    long, short = rng.standard_normal(6000), np.full(6000, 0.25)
    merged = merge_column([summarise(long), summarise(short), summarise(np.full(2, np.nan))])
    x = np.append(long, short)
    assert not merged.exact
    for level in (0.2, 0.9):
        assert abs((x < quantiles(merged, [level])[0]).mean() - level) < 2e-3
    np.testing.assert_allclose(quantiles(merged, [0.4, 0.5, 0.6, 0.75]), 0.25, atol=5e-3)


def test_one_part_is_itself():
    part = summarise(np.arange(5.0))
    assert merge_column([part]) is part


def test_quantiles_of_digests_are_between_the_middles_of_centroids_and_within_limits():
    weights = np.array([2.0, 4.0, 2.0])
    summary = replace(
        summarise(np.arange(8.0)), exact=False, points=np.array([1.0, 3.0, 9.0]), weights=weights, low=1.5, high=7.0
    )
    found = quantiles(summary, [0.0, 0.125, 0.3125, 0.5, 0.6875, 0.875, 1.0])
    np.testing.assert_allclose(found, [1.5, 1.5, 2.0, 3.0, 6.0, 7.0, 7.0])


@pytest.mark.parametrize(("weight", "scale"), [(2.0**50, 4 / 2.0**50), (2.0**49, 1.0)])
def test_whole_weights_too_large_for_ranks_are_scaled(weight, scale):
    assert rank_scale(4, weight, True) == scale


def test_ranks_of_fractional_weights_are_scaled_to_rows_and_of_none_stay():
    assert rank_scale(4, 2.0, False) == 2.0
    assert rank_scale(4, 2.0, True) == 1.0
    assert rank_scale(0, 0.0, False) == 1.0


@given(columns, st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_trimmed_means_are_over_closed_intervals(x, one, other):
    low, high = sorted([x[0], other])
    inside = x[(x >= low) & (x <= high)]
    found = trimmed_mean(summarise(x), low, high)
    np.testing.assert_allclose(found, inside.mean() if inside.size else np.nan, rtol=1e-9, atol=1e-6)
    weights = np.arange(1.0, x.size + 1)
    chosen = (x >= low) & (x <= high)
    expected = np.average(x[chosen], weights=weights[chosen]) if chosen.any() else np.nan
    np.testing.assert_allclose(trimmed_mean(summarise(x, weights), low, high), expected, rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("rows", [4 * 4096, 4 * 4096 + 1, 50_000])
@pytest.mark.parametrize("kind", ["distinct", "a tenth repeats", "float32"])
def test_long_columns_are_summarised_alike_however_they_are_put_in_order(rows, kind):
    """Short ones are sorted, in float32 where that holds them; long ones are counted unless values repeat."""
    rng = np.random.default_rng(10)
    x = rng.standard_normal(rows)
    if kind == "a tenth repeats":
        x = np.where(rng.random(rows) < 0.1, 1.5, x)
    if kind == "float32":
        x = x.astype(np.float32).astype(float)
    summary = summarise(x)
    assert not summary.exact
    ordered = np.sort(x)
    for level in np.linspace(0.05, 0.95, 19):
        value = quantiles(summary, [level])[0]
        first, behind = np.searchsorted(ordered, value, "left"), np.searchsorted(ordered, value, "right")
        assert first / rows - 1e-3 <= level <= behind / rows + 1e-3
    if kind == "a tenth repeats":
        assert quantiles(summary, [0.89])[0] == 1.5


def test_bins_of_few_more_rows_than_bins_have_whole_rows():
    """2,500 rows in 1,000 bins: two or three in each, and none is lost."""
    summary = summarise(np.arange(2500.0))
    assert not summary.exact
    assert summary.weights.sum() == 2500.0
    levels = np.array([0.0, 0.1, 0.5, 0.9, 1.0])
    np.testing.assert_allclose(quantiles(summary, levels), levels * 2500, atol=4)
