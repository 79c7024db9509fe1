"""Co-movement sums, scores and the certified bound against plain numpy."""

import numpy as np
import pytest
from oracle import cir as exact_cir

from excir_dask.errors import InternalError
from excir_dask.kernels.centers import Centers, center_errors, centers, describe
from excir_dask.kernels.groups import score_group
from excir_dask.kernels.scores import cir, ranks, score
from excir_dask.kernels.summaries import summarise
from excir_dask.kernels.sums import (
    OutputSide,
    co_movement,
    concatenate_sums,
    count_below,
    merge_row_sums,
    merge_sums,
    row_sums,
)


def at(center, thresholds=(0.0, 0.5, 0.7, 0.9), missing=False):
    center = np.atleast_1d(np.asarray(center, dtype=float))
    grid = np.tile(np.asarray(thresholds, dtype=float), (center.size, 1, 1))
    return Centers(center, np.full(center.size, missing), grid)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 10_001))
    y = np.stack([x[0] + rng.standard_normal(10_001), -x[1]])
    return x, y, rng.random(10_001) + 0.1


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_are_those_of_numpy(data, weighted):
    x, y, w = data
    weights = w if weighted else None
    side = OutputSide(y, at([0.1, 0.2]), weights)
    sums = co_movement(iter(x), side, at([0.3, -0.2, 0.0]))
    ww = w if weighted else np.ones(x.shape[1])
    moves = x - np.array([[0.3], [-0.2], [0.0]])
    for k, m_y in enumerate([0.1, 0.2]):
        p = ww * moves * (y[k] - m_y)
        np.testing.assert_allclose(sums.numerator[k], p.sum(axis=1), rtol=1e-12)
        np.testing.assert_allclose(sums.denominator[k], np.abs(p).sum(axis=1), rtol=1e-12)
        np.testing.assert_allclose(sums.squares[k], (p * p).sum(axis=1), rtol=1e-12)
        np.testing.assert_allclose(sums.signed_squares[k], (p * np.abs(p)).sum(axis=1), rtol=1e-12)
        np.testing.assert_allclose(sums.abs_y[k], np.abs(ww * (y[k] - m_y)).sum(), rtol=1e-12)
    np.testing.assert_allclose(sums.abs_x, (ww * np.abs(moves)).sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(sums.weight, ww.sum(), rtol=1e-12)
    np.testing.assert_allclose(sums.below[:, 0, 1], (ww * (x < 0.5)).sum(axis=1), rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_missing_values_add_nothing(data, weighted):
    x, y, w = data
    gaps = x[0].copy()
    gaps[::3], gaps[1::7], gaps[2::11] = np.nan, np.inf, -np.inf
    present = np.isfinite(gaps)
    weights = w if weighted else None
    with_gaps = co_movement([gaps], OutputSide(y, at([0.1, 0.2]), weights), at(0.3, missing=True))
    side = OutputSide(y[:, present], at([0.1, 0.2]), None if weights is None else w[present])
    without = co_movement([gaps[present]], side, at(0.3))
    for name in ("numerator", "denominator", "squares", "abs_y", "abs_x", "weight", "below"):
        np.testing.assert_allclose(getattr(with_gaps, name), getattr(without, name), rtol=1e-12)


def test_blocks_of_rows_add_up_and_blocks_of_columns_stand_side_by_side(data):
    x, y, _ = data
    centers_x, centers_y = at([0.3, -0.2, 0.0]), at([0.1, 0.2])
    side = OutputSide(y, centers_y, edges=np.array([0, 4000, 4001, y.shape[1]]))
    whole = co_movement(x, side, centers_x)
    rows = [slice(0, 4000), slice(4000, 4001), slice(4001, None)]
    merged = merge_sums([co_movement(x[:, r], OutputSide(y[:, r], centers_y), centers_x) for r in rows])
    blocks = [slice(0, 1), slice(1, 3)]
    joined = concatenate_sums([co_movement(x[c], side, centers_x.subset(c)) for c in blocks])
    assert merged.centers == joined.centers == whole.centers
    for name in set(whole.__dataclass_fields__) - {"centers"}:
        np.testing.assert_allclose(getattr(merged, name), getattr(whole, name), rtol=1e-11, atol=1e-9)
        np.testing.assert_array_equal(getattr(joined, name), getattr(whole, name))


@pytest.mark.parametrize("other", [at([0.3, -0.2, 0.1]), at([0.3, -0.2, 0.0], thresholds=(0.0, 0.5, 0.7, 1.0))])
def test_sums_at_different_centres_cannot_be_added(data, other):
    x, y, _ = data
    side, centers_x = OutputSide(y, at([0.1, 0.2])), at([0.3, -0.2, 0.0])
    sums = co_movement(x, side, centers_x)
    for combine in (merge_sums, concatenate_sums):
        with pytest.raises(
            InternalError, match=f"centres {other.identity}-.* cannot be added to sums at {centers_x.identity}"
        ):
            combine([sums, co_movement(x, side, other)])
        with pytest.raises(InternalError, match="cannot be added"):
            combine([sums, co_movement(x, OutputSide(y, at([0.1, 0.25])), centers_x)])
    with pytest.raises(InternalError, match="cannot be added"):
        merge_row_sums([row_sums(y, side), row_sums(y, OutputSide(y, at([0.1, 0.25])))])


def test_rows_are_counted_apart_from_columns(data):
    _, y, w = data
    side = OutputSide(y, at([0.1, 0.2]), w, np.array([0, 4000, 4000, y.shape[1]]))
    found = merge_row_sums([row_sums(y, side), row_sums(y, side)])
    assert found.units == 4
    np.testing.assert_allclose(found.below[:, 0, 1], 2 * (w * (y < 0.5)).sum(axis=1), rtol=1e-12)


def test_no_rows_at_all_give_zeros():
    side = OutputSide(np.empty((1, 0)), at(0.0))
    sums = co_movement([np.empty(0)], side, at(0.0))
    assert sums.denominator.tolist() == [[0.0]]
    assert count_below(np.empty(0), np.ones(4), side).tolist() == [0.0] * 4


def certified(x, y, centering="midhinge"):
    """CIR, certified bound and true error of one feature whose quantiles come from a digest of its rows."""
    xs, ys = describe([summarise(x)], centering), describe([summarise(y)], centering)
    cx, cy = centers(xs, centering), centers(ys, centering)
    side = OutputSide(y[None], cy)
    sums = co_movement([x], side, cx)
    ex = center_errors(xs, centering, cx.center, sums.below)
    ey = center_errors(ys, centering, cy.center, row_sums(y[None], side).below)
    found = score(sums, xs, ys, ex, ey, units=1)
    return found.cir[0, 0], found.center_bound[0, 0], abs(found.cir[0, 0] - exact_cir(x, y, centering))


@pytest.mark.parametrize("centering", ["midhinge", "median", "mean"])
def test_the_certified_bound_is_never_below_the_true_error(centering):
    rng = np.random.default_rng(3)
    for trial in range(60):
        n = int(rng.integers(3000, 30_000))
        x = [rng.standard_normal, rng.standard_cauchy, rng.standard_exponential][trial % 3](n)
        if trial % 4 == 0:  # atoms
            x = np.where(rng.random(n) < rng.uniform(0.1, 0.9), 0.0, x)
        if trial % 5 == 0:  # sorted
            x = np.sort(x)
        y = rng.normal() * x + rng.standard_normal(n)
        _, bound, error = certified(x, y, centering)
        assert error <= bound + 1e-12


def test_a_wrong_quantile_is_found_out_and_the_bound_widened():
    rng = np.random.default_rng(4)
    x, y = rng.standard_normal(20_000), rng.standard_normal(20_000)
    xs = describe([summarise(x)], "midhinge")
    off = xs.thresholds + 0.05  # as if the digest had been wrong by more than the narrow pair
    from dataclasses import replace

    wrong = replace(xs, thresholds=off, q25=xs.q25 + 0.05, q75=xs.q75 + 0.05)
    cx = centers(wrong, "midhinge")
    cy = centers(describe([summarise(y)], "midhinge"), "midhinge")
    side = OutputSide(y[None], cy)
    sums = co_movement([x], side, cx)
    errors = center_errors(wrong, "midhinge", cx.center, sums.below)
    exact = np.quantile(x, [0.25, 0.75]).mean()
    assert errors[0] >= abs(cx.center[0] - exact) >= 0.04


def test_cir_of_nothing_is_one_half():
    assert cir(np.zeros(2), np.zeros(2)).tolist() == [0.5, 0.5]


def test_ranks_break_ties_by_support_then_by_position():
    assert ranks(np.array([0.3, 0.3, 0.9, 0.3 + 1e-14]), np.array([1.0, 5.0, 0.0, 5.0])).tolist() == [4, 2, 1, 3]


def test_a_group_of_opposites_cancels_but_its_unsigned_strength_remains():
    found = score_group(np.array([3.0, -3.0]), np.array([4.0, 4.0]), np.array([1.0, 2.0]))
    assert found.cir == 0.5
    assert found.direction == 0
    assert found.strength_unsigned == 0.75
    assert found.cir_scaled == pytest.approx((1 + 1.5 / 6) / 2)
