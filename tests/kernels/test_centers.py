"""Certified distances between approximate and exact centres, against numpy on all rows."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from oracle import CENTERS

from excir_dask.kernels.centers import (
    BRACKET,
    CENTERINGS,
    Centering,
    ColumnStats,
    center_errors,
    centers,
    concatenate,
    describe,
)
from excir_dask.kernels.summaries import summarise
from excir_dask.kernels.sums import OutputSide, count_below
from excir_dask.kernels.trim import trim, with_trimmed

ESTIMATES = {0.25: "q25", 0.5: "q50", 0.75: "q75"}
small = st.lists(st.integers(0, 12), min_size=2, max_size=14)


def side(rows: int, weights: np.ndarray | None = None) -> OutputSide:
    """What scan 2 counts with: the weights alone matter here."""
    zero = np.zeros((1, rows))
    return OutputSide(zero, centers(describe([summarise(zero[0])], "mean"), "mean"), weights)


def doubted(x: np.ndarray, centering: str, thresholds: np.ndarray, weights: np.ndarray | None = None) -> ColumnStats:
    """Statistics of a column as if a digest had placed its quantiles in the middle of the given thresholds."""
    stats = describe([summarise(x, weights)], centering)
    middles = np.clip((thresholds[:, 1] + thresholds[:, 2]) / 2, x.min(), x.max())
    estimates = {ESTIMATES[level]: middles[k : k + 1] for k, level in enumerate(CENTERINGS[centering].levels)}
    return replace(stats, exact=np.array([False]), thresholds=thresholds[None], trimmed=np.array([np.nan]), **estimates)


def certified(
    x: np.ndarray, centering: str, thresholds: np.ndarray, weights: np.ndarray | None = None
) -> tuple[float, float]:
    """The centre that a run would use with such quantiles, and how far off it can be."""
    stats = doubted(x, centering, thresholds, weights)
    if centering == "trimmed":
        stats = with_trimmed(stats, trim([x], stats.q25, stats.q75, weights))
    center = centers(stats, centering).center
    below = count_below(x, stats.thresholds[0], side(x.size, weights))[None]
    return float(center[0]), float(center_errors(stats, centering, center, below)[0])


def brackets(draw: st.DrawFn, levels: int) -> np.ndarray:
    """Thresholds around each level, as far from the quantile as they like."""
    tenths = st.lists(st.integers(-20, 140), min_size=len(BRACKET), max_size=len(BRACKET), unique=True)
    return np.sort(np.array([draw(tenths) for _ in range(levels)]), axis=1) / 10 + 0.05


@st.composite
def cases(draw: st.DrawFn, centering: str) -> tuple[np.ndarray, np.ndarray]:
    x = np.array(draw(small), dtype=float)
    return x, np.sort(brackets(draw, len(CENTERINGS[centering].levels)), axis=0)


@pytest.mark.parametrize("centering", ["midhinge", "median", "trimmed"])
@given(data=st.data())
def test_a_certified_centre_is_within_its_bound_however_wrong_its_quantiles_are(centering, data):
    x, thresholds = data.draw(cases(centering))
    assume(np.ptp(x) > 0)
    center, bound = certified(x, centering, thresholds)
    exact = CENTERS[centering](x) if centering != "trimmed" else _trimmed(x)
    assert abs(center - exact) <= bound + 1e-12


def _trimmed(x: np.ndarray) -> float:
    """The midhinge where no value lies between the quartiles."""
    q25, q75 = np.quantile(x, [0.25, 0.75])
    inside = x[(x >= q25) & (x <= q75)]
    return float(inside.mean()) if inside.size else (q25 + q75) / 2


@given(small, st.integers(0, 2**32 - 1), st.data())
def test_whole_weights_certify_what_repeated_rows_do(values, seed, data):
    x = np.array(values, dtype=float)
    assume(np.ptp(x) > 0)
    weights = np.random.default_rng(seed).integers(1, 5, x.size)
    thresholds = brackets(data.draw, 1)
    repeated = certified(np.repeat(x, weights), "median", thresholds)
    assert certified(x, "median", thresholds, weights.astype(float)) == pytest.approx(repeated, abs=1e-12)


@given(small, st.data())
def test_equal_weights_of_any_size_certify_what_plain_rows_do(values, data):
    x = np.array(values, dtype=float)[: 2 * (len(values) // 2)]  # of an odd number a count may equal the rank
    assume(np.ptp(x) > 0)
    thresholds = brackets(data.draw, 1)
    plain = certified(x, "median", thresholds)
    assert certified(x, "median", thresholds, np.full(x.size, 0.3)) == pytest.approx(plain, abs=1e-12)


@pytest.mark.parametrize("factor", [0.1, 0.3, 7.7])
def test_rounding_of_scaled_weights_never_certifies_a_threshold_too_near(factor):
    """The median of three is the second value, and one of three weights below a threshold is just its rank."""
    x, weights = np.array([1.0, 2.0, 3.0]), np.full(3, factor)
    lower = certified(x, "median", np.array([[1.0, 1.9, 2.9, 3.0]]), weights)
    upper = certified(x, "median", np.array([[1.0, 1.1, 2.1, 3.0]]), weights)
    assert (lower, upper) == (pytest.approx((2.4, 1.4)), pytest.approx((1.6, 1.4)))


def test_a_median_between_two_values_needs_both_below_the_upper_threshold():
    """The median of these is 15, though as many values as its rank are below 10.5."""
    center, bound = certified(np.array([0.0, 10.0, 20.0, 30.0]), "median", np.array([[8.0, 9.0, 10.5, 21.0]]))
    assert (center, bound) == (9.75, pytest.approx(21.0 - 9.75))


def test_the_nearest_thresholds_that_enclose_a_quantile_give_the_bound():
    x = np.arange(101.0)
    assert certified(x, "median", np.array([[30.0, 49.0, 51.0, 80.0]]))[1] == pytest.approx(1.0)
    assert certified(x, "median", np.array([[30.0, 50.5, 52.0, 80.0]]))[1] == pytest.approx(51.25 - 30.0)
    assert certified(x, "median", np.array([[30.0, 48.0, 49.5, 80.0]]))[1] == pytest.approx(80.0 - 48.75)
    assert certified(x, "median", np.array([[60.0, 61.0, 62.0, 63.0]]))[1] == pytest.approx(61.5)
    assert certified(x, "median", np.array([[10.0, 11.0, 12.0, 13.0]]))[1] == pytest.approx(100.0 - 11.5)


def test_the_bound_of_a_midhinge_is_the_mean_of_those_of_its_quartiles():
    x = np.arange(101.0)
    thresholds = np.array([[10.0, 24.0, 27.0, 40.0], [60.0, 70.0, 79.0, 90.0]])
    assert certified(x, "midhinge", thresholds) == (pytest.approx((25.5 + 74.5) / 2), pytest.approx((1.5 + 4.5) / 2))


def test_the_bound_of_a_trimmed_mean_counts_the_farther_side():
    x = np.concatenate([np.arange(75.0) + 0.5, np.full(26, 1000.0)])
    thresholds = np.array([[10.0, 24.0, 26.0, 40.0], [60.0, 74.0, 1001.0, 1002.0]])
    stats = doubted(x, "trimmed", thresholds)
    center = np.array([50.0])
    below = np.array([[(x < t).sum() for t in row] for row in thresholds])[None].astype(float)
    moved, inside = 2 + 27, 74 - 26  # values between the inner thresholds, and between the two pairs of them
    expected = moved * (1001.0 - 50.0) / inside
    assert center_errors(stats, "trimmed", center, below)[0] == pytest.approx(expected)
    mirrored = doubted(-x, "trimmed", -thresholds[::-1, ::-1])
    below = np.array([[(-x < t).sum() for t in row] for row in -thresholds[::-1, ::-1]])[None].astype(float)
    assert center_errors(mirrored, "trimmed", -center, below)[0] == pytest.approx(expected)


def test_a_trimmed_mean_without_a_value_that_is_surely_inside_can_be_anywhere():
    x = np.arange(11.0)
    thresholds = np.array([[0.5, 1.5, 5.5, 6.5], [5.0, 5.5, 8.5, 9.5]])
    assert certified(x, "trimmed", thresholds)[1] == pytest.approx(10.0)


@pytest.mark.parametrize("centering", ["midhinge", "median"])
@pytest.mark.parametrize("atom", [0.0, 0.1, -7.3])
def test_a_quantile_on_a_value_that_repeats_is_certified_exactly(atom, centering):
    """Values strictly below a threshold are counted: one on the repeated value itself would miss all its rows."""
    rng = np.random.default_rng(0)
    x = np.where(rng.random(12_000) < 0.8, atom, atom + rng.standard_normal(12_000))
    stats = describe([summarise(x)], centering)
    assert not stats.exact[0]
    below = count_below(x, stats.thresholds[0], side(x.size))[None]
    errors = center_errors(stats, centering, centers(stats, centering).center, below)
    assert errors[0] <= 1e-12


def test_exact_and_constant_columns_have_no_error_but_rounding():
    columns = [np.arange(5.0), np.full(5, 3.0), np.full(5, np.nan)]
    stats = describe([summarise(x) for x in columns], "midhinge")
    errors = center_errors(stats, "midhinge", centers(stats, "midhinge").center, np.zeros(stats.thresholds.shape))
    eps = np.finfo(float).eps
    np.testing.assert_allclose(errors, [4 * eps * 2.0, 4 * eps * 3.0, 0.0], rtol=1e-12)


@pytest.mark.parametrize("centering", CENTERINGS)
def test_every_centring_of_the_registry_has_an_oracle_and_agrees_with_it(centering):
    x = np.random.default_rng(3).lognormal(size=501)
    stats = describe([summarise(x, None, CENTERINGS[centering].needs_totals)], centering)
    assert centers(stats, centering).center[0] == pytest.approx(CENTERS[centering](x), rel=1e-12)


def test_a_centring_is_added_by_one_entry(monkeypatch):
    monkeypatch.setitem(CENTERINGS, "first quartile", Centering(lambda stats: stats.q25, levels=(0.25,)))
    x = np.arange(101.0)
    center, bound = certified(x, "first quartile", np.array([[10.0, 23.0, 28.0, 40.0]]))
    assert center == 25.5
    assert bound == pytest.approx(2.5)


def test_statistics_are_those_of_the_rows():
    columns = [
        np.array([4.0, 1.0, np.nan, 2.0, 8.0]),
        np.full(4, np.nan),
        np.full(3, 6.0),
        np.array([3.0]),
    ]
    stats = describe([summarise(x) for x in columns], "mean")
    assert stats.n.tolist() == [4, 0, 3, 1]
    assert stats.missing.tolist() == [1, 4, 0, 0]
    assert stats.n.dtype == stats.missing.dtype == np.int64
    assert stats.weight.tolist() == [4.0, 0.0, 3.0, 1.0]
    assert stats.scale.tolist() == [1.0] * 4
    assert stats.constant.tolist() == [False, False, True, True]
    assert stats.exact.tolist() == [True] * 4
    assert stats.exact.dtype == bool
    np.testing.assert_array_equal(stats.low, [1.0, np.inf, 6.0, 3.0])
    np.testing.assert_array_equal(stats.high, [8.0, -np.inf, 6.0, 3.0])
    np.testing.assert_allclose(stats.mean, [3.75, np.nan, 6.0, 3.0])
    np.testing.assert_allclose(stats.q25, [1.75, np.nan, 6.0, 3.0])
    np.testing.assert_allclose(stats.q50, [3.0, np.nan, 6.0, 3.0])
    np.testing.assert_allclose(stats.q75, [5.0, np.nan, 6.0, 3.0])
    np.testing.assert_allclose(stats.trimmed, [3.0, np.nan, 6.0, 3.0])
    assert stats.thresholds.shape == (4, 0, len(BRACKET))


@pytest.mark.parametrize(
    ("centering", "expected"), [("midhinge", 3.375), ("median", 3.0), ("mean", 3.75), ("trimmed", 3.0)]
)
def test_centres_of_columns_that_vary_are_those_asked_for_and_others_are_their_value(centering, expected):
    columns = [np.array([4.0, 1.0, np.nan, 2.0, 8.0]), np.full(3, np.nan), np.full(3, 0.1), np.array([0.0, 10.0])]
    found = centers(describe([summarise(x) for x in columns], centering), centering)
    assert found.center.tolist() == [expected, 0.0, 0.1, 5.0]
    assert found.missing.tolist() == [True, True, False, False]


def test_a_constant_column_is_centred_on_its_value_though_sums_round():
    x = np.full(10, 0.1)
    stats = replace(describe([summarise(x)], "mean"), mean=np.array([0.1 + 1e-9]))
    assert centers(stats, "mean").center.tolist() == [0.1]


def test_fractional_weights_are_scaled_to_ranks():
    stats = describe([summarise(np.arange(4.0), np.full(4, 0.5)), summarise(np.arange(4.0), np.full(4, 2.0))], "mean")
    assert stats.scale.tolist() == [2.0, 1.0]
    assert stats.weight.tolist() == [2.0, 8.0]


def test_thresholds_are_around_quantiles_of_digests_alone():
    rng = np.random.default_rng(0)
    long, short = rng.standard_normal(20_000), np.arange(9.0)
    stats = describe([summarise(short), summarise(long)], "midhinge")
    assert stats.exact.tolist() == [True, False]
    assert np.isnan(stats.thresholds[0]).all()
    assert np.isnan(stats.trimmed[1])
    assert not np.isnan(stats.trimmed[0])
    for k, level in enumerate((0.25, 0.75)):
        shares = [(long < t).mean() for t in stats.thresholds[1, k]]
        np.testing.assert_allclose(shares, [level + offset for offset in BRACKET], atol=3e-4)
        assert stats.thresholds[1, k, 1] < (stats.q25, stats.q75)[k][1] < stats.thresholds[1, k, 2]


def test_blocks_of_columns_stand_side_by_side():
    rng = np.random.default_rng(0)
    summaries = [summarise(x) for x in (np.arange(5.0), rng.standard_normal(3000), np.full(4, np.nan), np.ones(3))]
    whole = describe(summaries, "midhinge")
    joined = concatenate([describe(summaries[:1], "midhinge"), describe(summaries[1:], "midhinge")])
    for name in (field.name for field in fields(whole)):
        np.testing.assert_array_equal(getattr(joined, name), getattr(whole, name), err_msg=name)
        np.testing.assert_array_equal(getattr(whole.subset(slice(1, 3)), name), getattr(whole, name)[1:3])


@pytest.mark.parametrize("centering", ["midhinge", "median"])
@given(values=st.lists(st.integers(0, 3), min_size=2, max_size=40))
def test_a_centre_jumps_if_ranks_two_errors_up_and_down_are_far_apart(centering, values):
    x = np.array(values, dtype=float)
    levels = np.array(CENTERINGS[centering].levels)
    reach = 2 * np.sqrt(levels * (1 - levels) / x.size)
    up, down = (np.quantile(x, np.clip(levels + sign * reach, 0, 1)).mean() for sign in (1, -1))
    spread = np.subtract(*np.quantile(x, [0.75, 0.25]))
    far = up - down > max(8 * reach.max(), 0.1) * spread
    assume(abs(up - down - max(8 * reach.max(), 0.1) * spread) > 1e-9)
    found = describe([summarise(x)], centering).jump[0]
    assert found == pytest.approx(up - down if far and np.ptp(x) > 0 else 0.0, abs=1e-12)


def test_a_smooth_column_does_not_jump_and_one_with_a_gap_at_its_centre_does():
    rng = np.random.default_rng(0)
    smooth = rng.standard_normal(20_000)
    gap = np.where(np.arange(20_000) < 10_000, 0.0, 100.0) + rng.random(20_000)
    stats = describe([summarise(smooth), summarise(gap), summarise(np.ones(5)), summarise(np.ones(1))], "median")
    assert stats.jump[0] == 0.0
    assert stats.jump[1] == pytest.approx(100.0, abs=1.0)
    assert stats.jump[2:].tolist() == [0.0, 0.0]
    assert describe([summarise(gap)], "mean").jump.tolist() == [0.0]
    assert describe([summarise(gap)], "midhinge").jump.tolist() == [0.0]
