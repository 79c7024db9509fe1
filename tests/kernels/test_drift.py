"""Drift between states, against scipy on all rows."""

from __future__ import annotations

import numpy as np
import pytest
from one_pass import awkward_columns, refer, watch
from scipy import stats

from excir_dask.kernels.drift import Drift, drift

CHANGES = {
    "nothing": lambda x, rng: x,
    "shift": lambda x, rng: x + 0.3 * np.subtract(*np.quantile(x, [0.75, 0.25])),
    "far": lambda x, rng: x + 10.0 * (np.ptp(x) or 1.0),
    "scale": lambda x, rng: 1.5 * x,
    "atom": lambda x, rng: np.where(rng.random(x.size) < 0.2, x[0], x),
    "one value": lambda x, rng: np.full(x.size, x.max()),
}


def drifted(before: np.ndarray, after: np.ndarray, weights=None, pilot: int | None = None) -> Drift:
    """Drift of one column; the reference is from the first rows of the earlier one."""
    reference = refer([before[:pilot]], complete=pilot is None)
    first, second = (
        watch([x], np.zeros((1, x.size)), (reference, refer([np.zeros(3)])), w)[0].columns
        for x, w in zip((before, after), weights or (None, None), strict=True)
    )
    return drift(first, second, reference, "midhinge")


@pytest.mark.parametrize("pilot", [None, 400])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("seed", range(2))
def test_exact_distances_lie_between_the_limits(seed, change, pilot):
    rng = np.random.default_rng(seed)
    days = [awkward_columns(rng, rng.normal(size=n)) for n in (2000, 1500)]
    for name in days[0]:
        one, two = (day[name][np.isfinite(day[name])] for day in days)
        two = CHANGES[change](two, rng)
        found = drifted(one, two, pilot=pilot)
        exact = stats.ks_2samp(one, two, method="asymp")
        assert found.ks[0] <= exact.statistic + 1e-12, name
        assert exact.statistic <= found.ks_high[0] + 1e-12, name
        moved = stats.wasserstein_distance(one, two) / (found.spread[0] or 1.0)
        room = 1e-9 * (1.0 + moved) + 1e-9 * np.abs(one).max() / (found.spread[0] or 1.0)
        assert found.wasserstein_low[0] - room <= moved <= found.wasserstein_high[0] + room, name
        assert found.wasserstein_low[0] - room <= found.wasserstein[0] <= found.wasserstein_high[0] + room, name
        if change == "far":
            assert found.ks[0] == 1.0, name
            assert found.ks_p[0] < 1e-6, name
            assert found.psi[0] > 1.0, name


@pytest.mark.parametrize("seed", range(10))
def test_distances_are_close_where_columns_are_smooth_or_have_few_values(seed):
    rng = np.random.default_rng(seed)
    for make in (
        lambda shift: rng.normal(size=4000) + shift,
        lambda shift: rng.integers(0, 12, 4000).astype(float) + np.rint(4 * shift),
        lambda shift: (rng.random(4000) < 0.3 + shift / 2).astype(float),
        lambda shift: np.where(rng.random(4000) < 0.6, 0.0, rng.exponential(1.0 + shift, 4000)),
    ):
        one, two = make(0.0), make(0.25)
        found = drifted(one, two)
        exact = stats.ks_2samp(one, two, method="asymp")
        assert found.ks[0] == pytest.approx(exact.statistic, abs=0.02)
        assert found.ks_high[0] - found.ks[0] < 0.2
        moved = stats.wasserstein_distance(one, two) / found.spread[0]
        assert found.wasserstein[0] == pytest.approx(moved, rel=0.1, abs=0.02)


def test_p_values_of_nothing_are_not_too_small():
    rng = np.random.default_rng(0)
    found = [drifted(rng.normal(size=300), rng.normal(size=200)).ks_p[0] for _ in range(300)]
    for level in (0.01, 0.05, 0.2):
        assert np.mean(np.array(found) <= level) <= level + 3 * np.sqrt(level / len(found))
    assert np.mean(np.array(found) <= 0.5) > 0.3, "and not far too large"


def test_psi_of_nothing_is_about_what_chance_gives():
    rng = np.random.default_rng(0)
    found = [drifted(rng.normal(size=600), rng.normal(size=300)) for _ in range(100)]
    expected = np.mean([each.psi_chance[0] for each in found])
    assert np.mean([each.psi[0] for each in found]) == pytest.approx(expected, rel=0.15)


def test_psi_is_that_of_the_coarse_shares():
    rng = np.random.default_rng(0)
    one, two = (rng.choice([0.0, 1.0, 5.0], 50_000, p=p) for p in ([0.5, 0.3, 0.2], [0.4, 0.3, 0.3]))
    p, q = (np.array([np.mean(x == value) for value in (0.0, 1.0, 5.0)]) for x in (one, two))
    assert drifted(one, two).psi[0] == pytest.approx(((q - p) * np.log(q / p)).sum(), rel=1e-3)
    assert drifted(one, one).psi[0] == 0.0


def test_whole_weights_count_as_repeated_rows_and_weigh_less_in_the_test():
    rng = np.random.default_rng(0)
    one, two = rng.normal(size=500), rng.normal(0.2, 1.0, size=400)
    weights = [rng.integers(1, 4, x.size).astype(float) for x in (one, two)]
    found = drifted(one, two, weights)
    repeated = [np.repeat(x, w.astype(int)) for x, w in zip((one, two), weights, strict=True)]
    assert found.ks[0] == pytest.approx(stats.ks_2samp(*repeated, method="asymp").statistic, abs=0.03)
    assert found.ks_p[0] > drifted(*repeated).ks_p[0], "repeated rows are not independent"


def test_quartiles_shift_in_spreads_and_missing_shares_are_told():
    rng = np.random.default_rng(0)
    one = rng.normal(size=4000)
    spread = np.subtract(*np.quantile(one, [0.75, 0.25]))
    two = np.where(rng.random(4000) < 0.25, np.nan, one + 0.02 * spread)
    found = drifted(one, two)
    assert found.spread[0] == pytest.approx(spread)
    there = two[np.isfinite(two)]
    expected = (np.quantile(there, 0.25) - np.quantile(one, 0.25)) / spread
    assert found.q25_shift[0] == pytest.approx(expected, abs=1e-3)
    assert (found.missing_before[0], found.missing_after[0]) == (0.0, np.isnan(two).mean())
    assert np.isnan(drifted(one, one + 9.0).q25_shift[0]), "far outside the brackets nothing is claimed"


def test_a_column_without_values_on_one_side_has_no_distance():
    found = drifted(np.arange(20.0), np.full(20, np.nan))
    assert np.isnan([found.psi[0], found.ks[0], found.ks_p[0], found.wasserstein[0], found.center_shift[0]]).all()
    assert found.missing_after[0] == 1.0


def test_constants_that_differ_are_far_apart():
    found = drifted(np.full(50, 3.0), np.full(60, 4.0))
    assert (found.ks[0], found.wasserstein[0]) == (1.0, 1.0)
    same = drifted(np.full(50, 3.0), np.full(60, 3.0))
    assert (same.ks[0], same.ks_high[0], same.psi[0], same.wasserstein[0], same.ks_p[0]) == (0.0, 0.0, 0.0, 0.0, 1.0)
