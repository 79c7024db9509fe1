"""Standard errors and the certified effect of centres, against numpy on all rows."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from one_pass import passed, refer, watch
from scipy.stats import chi2

from excir_dask.kernels.groups import score_group
from excir_dask.kernels.recenter import Sums, recentre
from excir_dask.kernels.reference import Reference
from excir_dask.kernels.scores import CHANCE, RANKINGS, Scores, cir, ranks, score
from excir_dask.kernels.settle import ColumnStats

rows = st.integers(2, 30)


def fixed(columns: np.ndarray, center: float) -> Reference:
    """A reference whose centres are given."""
    found = refer(list(columns), "mean")
    flips = np.full_like(found.flip_edges, np.inf)
    flips[:, :3] = [np.nextafter(center, -np.inf), center, np.nextafter(center, np.inf)]
    return replace(found, id=f"at {center}", center=np.full(len(columns), center), flip_edges=flips)


def matrix_sums(x: np.ndarray, y: np.ndarray, mx: float = 0.0, my: float = 0.0, edges: list[int] | None = None) -> Sums:
    """Sums of several columns with several outputs."""
    references = fixed(x, mx), fixed(y, my)
    state, outputs = watch(list(x), y, references, edges=None if edges is None else np.array(edges))
    return recentre(state, outputs, references, (references[0].center, references[1].center))


def sums_of(x: np.ndarray, y: np.ndarray, mx: float = 0.0, my: float = 0.0, edges: list[int] | None = None) -> Sums:
    return matrix_sums(x[None], y[None], mx, my, edges)


def stats(*columns: np.ndarray, error: float = 0.0) -> ColumnStats:
    """Statistics of columns whose centres may be off by ``error``."""
    found = passed(columns, np.arange(float(columns[0].size)), "mean").features
    return replace(found, error=np.full(len(columns), error))


def scored(
    x: np.ndarray,
    y: np.ndarray,
    mx: float = 0.0,
    my: float = 0.0,
    *,
    dx: float = 0.0,
    dy: float = 0.0,
    edges: list[int] | None = None,
    whole_units: bool = False,
) -> Scores:
    """Scores of a feature at given centres that may be off by ``dx`` and ``dy``."""
    units = 1 if edges is None else int(np.count_nonzero(np.diff(edges)))
    return score(sums_of(x, y, mx, my, edges), stats(x, error=dx), stats(y, error=dy), units, whole_units)


def plain_cir(x: np.ndarray, y: np.ndarray, mx: float, my: float) -> float:
    p = (x - mx) * (y - my)
    return (1 + p.sum() / np.abs(p).sum()) / 2 if np.abs(p).sum() > 0 else 0.5


@given(rows, st.integers(0, 2**32 - 1), st.floats(0, 2), st.floats(0, 2))
@settings(max_examples=200)
def test_no_centre_within_its_error_changes_a_score_by_more_than_the_bound(n, seed, dx, dy):
    rng = np.random.default_rng(seed)
    x, y = rng.choice([0.0, 0.0, 0.0, 1.0, -2.0], n), rng.choice([0.0, 0.0, 0.0, 1.0, -1.0], n)
    found = scored(x, y, dx=dx, dy=dy)
    for right, up in product((-1.0, -0.5, 0.0, 0.5, 1.0), repeat=2):
        moved = plain_cir(x, y, right * dx, up * dy)
        if np.ptp(x) > 0 and np.ptp(y) > 0:
            assert abs(moved - found.cir[0, 0]) <= found.center_bound[0, 0] + 1e-12


def test_both_centres_off_at_once_count_in_every_row():
    """One row moves at these centres, and all hundred would at others: the product of both errors decides."""
    x, y = np.append(np.zeros(100), 1.0), np.append(np.zeros(100), -1.0)
    found = scored(x, y, dx=0.05, dy=0.05)
    assert abs(plain_cir(x, y, -0.05, -0.05) - found.cir[0, 0]) > 0.05 + 0.05
    assert found.center_bound[0, 0] == pytest.approx(0.05 + 0.05 + 101 * 0.05 * 0.05)


def test_the_bound_is_that_of_numpy():
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((2, 50))
    moves = np.abs((x - 0.1) * (y - 0.2)).sum()
    effect = 0.01 * np.abs(y - 0.2).sum() + 0.03 * np.abs(x - 0.1).sum() + 50 * 0.01 * 0.03
    assert scored(x, y, 0.1, 0.2, dx=0.01, dy=0.03).center_bound[0, 0] == pytest.approx(effect / moves)
    assert scored(x, y, 0.1, 0.2, dx=10.0).center_bound[0, 0] == 1.0


def units_of(x: np.ndarray, y: np.ndarray, edges: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """N and D of every unit of rows that has some."""
    p = x * y
    filled = [slice(*pair) for pair in pairwise(edges) if pair[1] > pair[0]]
    return np.array([p[u].sum() for u in filled]), np.array([np.abs(p[u]).sum() for u in filled])


def resembling(units: int, size: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Rows that differ between units far more than inside one."""
    rng = np.random.default_rng(seed)
    x, y = np.repeat(rng.standard_normal((2, units)), size, axis=1) + 0.01 * rng.standard_normal((2, units * size))
    return x, y, list(range(0, units * size + 1, size))


@pytest.mark.parametrize("whole_units", [False, True])
def test_the_error_between_units_is_that_of_a_ratio_of_sums_of_units(whole_units):
    """A linearised ratio estimator over U units: U / (U - 1) sum (N_u - r D_u)^2 / D^2."""
    x, y, edges = resembling(units=7, size=20)
    n, d = units_of(x, y, edges)
    ratio = n.sum() / d.sum()
    variance = 7 / 6 * ((n - ratio * d) ** 2).sum() / d.sum() ** 2
    found = scored(x, y, edges=edges, whole_units=whole_units)
    assert found.stderr_by[0, 0]
    assert found.stderr[0, 0] == pytest.approx(np.sqrt(variance) / 2, rel=1e-9)
    assert found.stderr_rows[0, 0] < found.stderr[0, 0] / 2


def test_units_without_rows_do_not_change_the_error():
    x, y, edges = resembling(units=4, size=20)
    plain = scored(x, y, edges=edges)
    with_empty = scored(x, y, edges=[0, 0, 20, 20, 40, 60, 60, 80, 80])
    assert with_empty.stderr[0, 0] == plain.stderr[0, 0] > 0


@given(rows, st.integers(0, 2**32 - 1))
def test_the_error_by_rows_is_that_of_a_ratio_of_sums_of_rows(n, seed):
    x, y = np.random.default_rng(seed).standard_normal((2, n))
    p = x * y
    ratio = p.sum() / np.abs(p).sum()
    variance = ((p - ratio * np.abs(p)) ** 2).sum() / np.abs(p).sum() ** 2
    found = scored(x, y)
    assert found.stderr[0, 0] == found.stderr_rows[0, 0] == pytest.approx(np.sqrt(variance) / 2, abs=1e-8)
    assert found.n_eff[0, 0] == pytest.approx(np.abs(p).sum() ** 2 / (p * p).sum())
    assert not found.stderr_by[0, 0]


@pytest.mark.parametrize(("times", "decides"), [(0.99, False), (1.01, True)])
def test_units_decide_where_their_spread_is_more_than_chance_gives(times, decides):
    """The variance between units over that of rows is chi-squared with U - 1 degrees over U - 1 by chance."""
    x, y, edges = resembling(units=5, size=4)
    sums = sums_of(x, y, edges=edges)
    n, d = float(sums.numerator[0, 0]), float(sums.denominator[0, 0])
    ratio = n / d
    by_rows = (1 + ratio**2) * sums.squares / d**2 - 2 * ratio * sums.signed_squares / d**2
    wanted = times * by_rows * chi2.isf(CHANCE, 4) / 4
    # N_u = ratio D_u but for one addend of the squares, which alone is then the spread
    changed = replace(
        sums, unit_squares=wanted * d**2 * 4 / 5, unit_mixed=np.zeros((1, 1)), unit_masses=np.zeros((1, 1))
    )
    found = score(changed, stats(x), stats(y), units=5)
    assert bool(found.stderr_by[0, 0]) is decides
    expected = wanted if decides else by_rows
    np.testing.assert_allclose(found.stderr, np.sqrt(expected) / 2, rtol=1e-9)


@pytest.mark.parametrize("rank_by", RANKINGS)
@given(low=st.floats(0, 1), high=st.floats(0, 1), share=st.floats(0, 1))
def test_the_value_of_a_ranking_lies_between_its_limits(rank_by, low, high, share):
    low, high = sorted([low, high])
    cir = np.clip(low + share * (high - low), low, high)
    for null in (0.5, 0.0, 0.3, 1.0):
        chance = np.array([null])
        least, most = RANKINGS[rank_by].limits(np.array([low]), np.array([high]), chance)
        assert least[0] - 1e-9 <= RANKINGS[rank_by].value(np.array([cir]), chance)[0] <= most[0] + 1e-9


def test_what_does_not_vary_scores_one_half_without_error_and_without_doubt():
    rng = np.random.default_rng(0)
    x = np.stack([rng.standard_normal(40), np.full(40, 3.0), np.full(40, np.nan)])
    y = np.stack([rng.standard_normal(40), np.full(40, -2.0)])
    found = score(matrix_sums(x, y), stats(*x, error=0.1), stats(*y, error=0.1), 1)
    still = np.array([[False, True, True], [True, True, True]])
    for name, value in (("cir", 0.5), ("strength", 0.0), ("direction", 0), ("stderr", 0.0), ("stderr_rows", 0.0)):
        assert (getattr(found, name)[still] == value).all(), name
        assert (getattr(found, name)[~still] != value).all(), name
    for name, value in (("n_eff", 0.0), ("center_bound", 0.0), ("center_jump", 0.0), ("stderr_by", False)):
        assert (getattr(found, name)[still] == value).all(), name
    assert found.n_eff[0, 0] > 1
    assert 0 < found.center_bound[0, 0] <= 1
    assert found.direction.dtype == np.int8


def test_columns_that_vary_but_never_together_may_be_off_by_anything():
    """Products are all zero at these centres, and anything at others."""
    x, y = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])
    found = scored(x, y, dx=0.1, dy=0.1)
    assert (found.cir[0, 0], found.center_bound[0, 0], found.n_eff[0, 0]) == (0.5, 1.0, 0.0)
    assert (found.stderr[0, 0], found.stderr_by[0, 0]) == (0.0, False)


@given(st.integers(3, 30), st.integers(0, 2**32 - 1))
def test_scores_of_every_pair_are_those_of_numpy(n, seed):
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((2, n)), rng.standard_normal((3, n))
    found = score(matrix_sums(x, y), stats(*x), stats(*y), 1)
    p = y[:, None, :] * x[None, :, :]
    ratio = p.sum(axis=2) / np.abs(p).sum(axis=2)
    np.testing.assert_allclose(found.cir, (1 + ratio) / 2)
    tilts = [v.sum(axis=1) / np.abs(v).sum(axis=1) for v in (x, y)]
    chance = tilts[0] * tilts[1][:, None]
    np.testing.assert_allclose(found.null, (1 + chance) / 2)
    apart = np.abs(ratio - chance) > 1e-9  # few rows may all lie on one side of a centre
    room = np.where(ratio > chance, 1 - chance, 1 + chance)[apart]
    np.testing.assert_allclose(found.lift[apart], (ratio - chance)[apart] / room, rtol=1e-6)
    np.testing.assert_array_equal(found.strength, np.abs(found.lift))
    np.testing.assert_array_equal(found.direction[apart], np.sign(ratio - chance)[apart])


def test_a_centre_that_jumps_moves_scores_by_at_most_half():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 30))
    sums = sums_of(x, y)
    moves, abs_x, abs_y = np.abs(x * y).sum(), np.abs(x).sum(), np.abs(y).sum()
    for jx, jy in ((0.3, 0.0), (0.0, 0.4), (0.3, 0.4), (9.0, 9.0)):  # above a tenth of the spread
        features, outputs = (replace(stats(v), jump=np.array([j])) for v, j in ((x, jx), (y, jy)))
        found = score(sums, features, outputs, 1).center_jump[0, 0]
        assert found == pytest.approx(min((jx * abs_y + jy * abs_x) / moves / 2, 0.5))


def test_a_small_jump_counts_with_half_of_what_it_changes():
    rng = np.random.default_rng(1)
    x = rng.standard_normal(4000)
    y = np.exp(x + rng.standard_normal(4000))
    x, y = x - np.quantile(x, [0.25, 0.75]).mean(), y - np.quantile(y, [0.25, 0.75]).mean()
    found = passed([x], y)

    def cir(dx: float, dy: float) -> float:
        p = (x - dx) * (y - dy)
        return (1 + p.sum() / np.abs(p).sum()) / 2

    for jx, jy in ((0.02, 0.0), (0.0, 0.02)):
        features, outputs = (
            replace(each, jump=np.array([j])) for each, j in ((found.features, jx), (found.outputs, jy))
        )
        change = abs(cir(jx / 2, jy / 2) - cir(-jx / 2, -jy / 2))
        assert change > 1e-4
        assert score(found.sums, features, outputs, 1).center_jump[0, 0] == pytest.approx(change / 2, rel=0.05)


@pytest.mark.parametrize("scale", [1e-150, 1e-75, 1e75, 1e150])
def test_scores_and_errors_do_not_depend_on_the_scale_of_columns(scale):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 60))
    edges = [0, 20, 40, 60]
    plain, scaled = (scored(v, y, edges=edges) for v in (x, x * scale))
    for name in ("cir", "stderr_rows", "n_eff", "strength"):
        np.testing.assert_allclose(getattr(scaled, name), getattr(plain, name), rtol=1e-9)


def test_units_of_numbers_too_large_to_square_do_not_decide():
    """Squares of sums overflow where sums of squares do not: rows decide then."""
    x, y, edges = resembling(units=7, size=20)
    x = x * np.sqrt(1e308 / ((x * y) ** 2).sum())
    sums = sums_of(x, y, edges=edges)
    assert np.isfinite(sums.squares[0, 0])
    assert np.isinf(sums.unit_masses[0, 0])
    found = scored(x, y, edges=edges)
    assert not found.stderr_by[0, 0]
    assert found.stderr[0, 0] == found.stderr_rows[0, 0] > 0


@pytest.mark.parametrize(("units", "whole_units"), [(1, False), (1, True), (0, False)])
def test_a_single_unit_has_no_spread(units, whole_units):
    x, y, edges = resembling(units=4, size=10)
    sums = sums_of(x, y, edges=edges)
    found = score(sums, stats(x), stats(y), units, whole_units)
    assert not found.stderr_by[0, 0]
    assert found.stderr[0, 0] == found.stderr_rows[0, 0]


def test_samples_of_whole_units_take_the_larger_spread():
    """No more than chance between units, but the sample was drawn by them."""
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((2, 60))
    edges = list(range(0, 61, 10))
    by_rows, by_units = scored(x, y, edges=edges), scored(x, y, edges=edges, whole_units=True)
    assert not by_rows.stderr_by[0, 0]
    assert by_units.stderr_by[0, 0] == (by_units.stderr[0, 0] > by_rows.stderr[0, 0])
    assert by_units.stderr[0, 0] >= by_rows.stderr[0, 0]


def test_two_units_have_a_spread():
    x, y, edges = resembling(units=2, size=200, seed=5)
    assert scored(x, y, edges=edges, whole_units=True).stderr_by[0, 0]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=12))
def test_ranks_follow_the_primary_then_support_then_position(drawn):
    primary, support = (np.array(v, dtype=float) / 4 for v in zip(*drawn, strict=True))
    order = sorted(range(len(drawn)), key=lambda i: (-primary[i], -support[i], i))
    found = ranks(primary + 1e-14, support)
    assert [order.index(i) + 1 for i in range(len(drawn))] == found.tolist()
    assert found.dtype == np.int64


@pytest.mark.parametrize(("gap", "first"), [(4e-13, 1), (2e-12, 2)])
def test_scores_closer_than_rounding_tie(gap, first):
    assert ranks(np.array([0.5, 0.5 + gap]), np.zeros(2)).tolist()[0] == first


@pytest.mark.parametrize(("gap", "first"), [(4e-7, 1), (2e-6, 2)])
def test_support_closer_than_rounding_ties(gap, first):
    assert ranks(np.zeros(2), np.array([9.0, 9.0 + gap])).tolist()[0] == first


@given(st.floats(0, 1), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_limits_of_a_ranking_hold_everything_between_the_limits_of_scores(one, other, seed):
    low, high = (np.array([v]) for v in sorted((one, other)))
    between = np.random.default_rng(seed).uniform(low, high, 50)
    for ranking in RANKINGS.values():
        half = np.array([0.5])
        least, most = ranking.limits(low, high, half)
        values = ranking.value(between, half)
        assert least[0] - 1e-12 <= values.min() <= values.max() <= most[0] + 1e-12
        ends = ranking.value(np.append(low, high), half)
        assert most[0] == ends.max()
        assert least[0] == (0.0 if ranking is RANKINGS["strength"] and low < 0.5 < high else ends.min())


def test_cir_of_nothing_is_one_half():
    assert cir(np.zeros(2), np.zeros(2)).tolist() == [0.5, 0.5]


def test_ranks_break_ties_by_support_then_by_position():
    assert ranks(np.array([0.3, 0.3, 0.9, 0.3 + 1e-14]), np.array([1.0, 5.0, 0.0, 5.0])).tolist() == [4, 2, 1, 3]


def test_a_group_of_opposites_cancels_but_its_unsigned_strength_remains():
    n, d = np.array([3.0, -3.0]), np.array([4.0, 4.0])
    found = score_group(n, d, np.array([1.0, 2.0]), cir(n, d), np.full(2, 0.5), np.zeros(2))
    assert found.cir == 0.5
    assert found.direction == 0
    assert found.strength_unsigned == 0.75
    assert found.cir_scaled == pytest.approx((1 + 1.5 / 6) / 2)
