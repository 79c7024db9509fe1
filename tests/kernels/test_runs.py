"""Quantiles and centres of runs of values: worked examples, with limits as narrow as the runs allow."""

from __future__ import annotations

import numpy as np
import pytest

from excir_dask.kernels.centers import CENTERINGS
from excir_dask.kernels.runs import Elements, Enclosed, Quantile, known, quantile
from excir_dask.kernels.settle_loops import Figure, center_of, jump_of

NAN = float("nan")
CELLS = [(1.0, 1.0), (3.0, 7.0), (9.0, 9.0)]


def runs_of(
    limits: list[tuple[float, float]], weights: list[float], totals: list[float] | None = None, whole: bool = True
) -> Elements:
    low, high = np.array(limits).T
    masses = np.array(weights)
    return Elements(np.cumsum(masses), low, high, masses, np.array(totals or [0.0] * masses.size), whole)


def final(
    centering: str, runs: Elements, q25: Quantile | None, q75: Quantile | None, provisional: float, mean: float
) -> Enclosed | None:
    """The centre of runs whose quartiles are given."""
    figures = [Figure(q is not None, *((q.value, q.low, q.high, *q.around) if q else [NAN] * 5)) for q in (q25, q75)]
    found = known(center_of(runs.arrays, *figures, CENTERINGS[centering].rule, provisional, mean))
    return None if found is None else Enclosed(found.value, found.low, found.high)


@pytest.mark.parametrize(
    ("level", "value", "low", "high", "around"),
    [
        (0.0, 1.0, 1.0, 1.0, (1.0, 1.0)),
        (0.25, 1.5, 1.5, 1.5, (1.0, 3.0)),  # the last 1, and the first value of the next run
        (0.5, 4.0, 3.0, 7.0, (3.0, 7.0)),
        (0.75, 6.5, 3.0, 7.0, (3.0, 7.0)),
        (0.8, 7.0, 7.0, 7.0, (7.0, 7.0)),  # the last value of a run
        (0.9, 8.0, 8.0, 8.0, (7.0, 9.0)),
        (1.0, 9.0, 9.0, 9.0, (9.0, 9.0)),
    ],
)
def test_first_and_last_values_of_a_run_are_exact_and_the_others_interpolated(level, value, low, high, around):
    found = quantile(runs_of(CELLS, [2.0, 3.0, 1.0]), level)
    assert found == Quantile(pytest.approx(value), pytest.approx(low), pytest.approx(high), around)


def test_values_of_runs_without_repeated_rows_are_never_exact():
    found = quantile(runs_of(CELLS, [2.0, 3.0, 1.0], whole=False), 0.8)
    assert found.value == pytest.approx(3.0 + 4.0 * 2.0 / 2.0)
    moved = 1e-9 * 6.0 * (9.0 - 3.0)  # rounding may reach the neighbour by a billionth of all ranks
    assert (found.low, found.high) == (3.0, pytest.approx(7.0 + moved, abs=1e-12))
    assert found.around == (3.0, 9.0)


def test_a_single_row_in_a_run_of_two_values_lies_between_them():
    found = quantile(runs_of([(2.0, 4.0), (5.0, 5.0)], [0.5, 3.0], whole=False), 0.0)
    assert found.value == pytest.approx((0.5 * 3.0 + 0.5 * 5.0) / 1.0)
    moved = 1e-9 * 3.5 * (5.0 - 2.0)
    assert (found.low, found.high) == pytest.approx((3.5 - moved, 4.5 + moved), abs=1e-12)


def test_less_than_one_row_has_a_quantile_too():
    assert quantile(runs_of([(2.0, 2.0)], [0.25], whole=False), 0.75).value == 2.0


def test_a_quantile_outside_the_brackets_is_not_known():
    runs = runs_of([(NAN, NAN), (1.0, 2.0), (NAN, NAN)], [2.0, 4.0, 2.0])
    assert quantile(runs, 0.0) is None
    assert quantile(runs, 0.2) is None  # ranks 1.4 to 2.4: one of the two is below the bracket
    assert quantile(runs, 2.0 / 7.0).value == 1.0
    assert quantile(runs, 0.5).around == (1.0, 2.0)
    assert quantile(runs, 5.0 / 7.0).value == 2.0
    assert quantile(runs, 0.75) is None


def test_the_error_of_a_figure_is_its_distance_from_the_further_limit():
    assert Enclosed(4.0, 3.0, 7.0).error == 3.0
    assert Enclosed(6.5, 3.0, 7.0).error == 3.5


def test_a_midhinge_lies_between_the_midhinges_of_the_limits():
    q25, q75 = Quantile(2.0, 1.0, 4.0, (1.0, 4.0)), Quantile(10.0, 9.0, 14.0, (9.0, 14.0))
    assert final("midhinge", runs_of(CELLS, [1.0] * 3), q25, q75, 0.0, 0.0) == Enclosed(6.0, 5.0, 9.0)
    for one, other in ((None, q75), (q25, None)):
        for centering in ("midhinge", "trimmed"):
            assert final(centering, runs_of(CELLS, [1.0] * 3), one, other, 0.0, 0.0) is None


def exactly(value: float) -> Quantile:
    return Quantile(value, value, value, (value, value))


def test_a_trimmed_mean_has_the_values_between_the_quartiles_with_both():
    limits = [(0.0, 0.0), (1.0, 1.0), (2.0, 2.0), (4.0, 4.0), (9.0, 9.0)]
    weights, provisional = [3.0, 2.0, 1.0, 5.0, 7.0], 1.5
    totals = [w * (low - provisional) for w, (low, _) in zip(weights, limits, strict=True)]
    found = final("trimmed", runs_of(limits, weights, totals), exactly(1.0), exactly(4.0), provisional, float("nan"))
    mean = (2.0 * 1.0 + 1.0 * 2.0 + 5.0 * 4.0) / 8.0
    assert (found.value, found.low, found.high) == pytest.approx((mean, mean, mean))


def test_a_trimmed_mean_leaves_out_what_lies_between_the_brackets_and_the_tails():
    limits = [(NAN, NAN), (1.0, 1.0), (NAN, NAN), (4.0, 4.0), (NAN, NAN)]
    found = final(
        "trimmed",
        runs_of(limits, [9.0, 1.0, 3.0, 1.0, 9.0], [-90.0, 1.0, 6.0, 4.0, 90.0]),
        exactly(1.0),
        exactly(4.0),
        0.0,
        0.0,
    )
    assert found.value == pytest.approx((1.0 + 6.0 + 4.0) / 5.0)


def test_a_trimmed_mean_without_values_is_the_midhinge_between_the_quartiles():
    gap = runs_of([(0.0, 0.0), (10.0, 10.0)], [4.0, 4.0])
    q25, q75 = Quantile(2.0, 1.0, 3.0, (0.0, 10.0)), Quantile(8.0, 7.0, 9.0, (0.0, 10.0))
    assert final("trimmed", gap, q25, q75, 0.0, 0.0) == Enclosed(5.0, 1.0, 9.0)


def test_a_trimmed_mean_of_a_run_at_the_first_quartile_is_unsure_by_all_of_it():
    runs = runs_of([(0.0, 4.0), (5.0, 5.0), (9.0, 9.0)], [2.0, 6.0, 4.0], [4.0, 30.0, 36.0])
    found = final("trimmed", runs, Quantile(3.0, 2.0, 4.0, (0.0, 4.0)), exactly(5.0), 0.0, 0.0)
    share = (4.0 - 3.0) / (4.0 - 0.0)
    weight = 2.0 * share + 6.0
    center = (4.0 * share + 30.0) / weight
    reach = 2.0 / (weight - 2.0) * max(center - 2.0, 5.0 - center)
    assert found.value == pytest.approx(center)
    assert (found.low, found.high) == pytest.approx((center - reach, min(center + reach, 5.0)))


def test_a_run_that_begins_at_the_third_quartile_is_outside_of_a_trimmed_mean():
    runs = runs_of([(0.0, 0.0), (4.0, 8.0)], [4.0, 2.0], [0.0, 12.0])
    assert final("trimmed", runs, exactly(0.0), exactly(4.0), 0.0, 0.0).value == 0.0


def test_a_trimmed_mean_that_rests_on_unsure_values_lies_between_the_quartiles():
    runs = runs_of([(0.0, 4.0), (9.0, 9.0)], [6.0, 1.0], [12.0, 9.0])
    found = final("trimmed", runs, Quantile(1.0, 0.5, 2.0, (0.0, 4.0)), Quantile(3.0, 2.5, 3.5, (0.0, 4.0)), 0.0, 0.0)
    assert (found.low, found.high) == (0.5, 3.5)


def test_a_trimmed_mean_reaches_as_far_as_either_quartile():
    runs = runs_of([(0.0, 0.0), (10.0, 20.0), (21.0, 21.0)], [8.0, 2.0, 3.0], [0.0, 30.0, 63.0])
    q25, q75 = Quantile(0.0, 0.0, 0.0, (0.0, 0.0)), Quantile(15.0, 10.0, 20.0, (10.0, 20.0))
    found = final("trimmed", runs, q25, q75, 0.0, 0.0)
    half = (15.0 - 10.0) / (20.0 - 10.0)
    weight = 8.0 + 2.0 * half
    center = 30.0 * half / weight
    assert found.value == pytest.approx(center)
    assert found.high == pytest.approx(center + 2.0 / (weight - 2.0) * (20.0 - center))


@pytest.mark.parametrize(("rows", "jump"), [(400.0, 100.0), (64.0, 0.0)])
def test_a_jump_is_the_distance_of_centres_two_standard_errors_apart(rows, jump):
    """Of a median ten rows off a gap: a standard error of its rank is 10 rows of 400, and 4 rows of 64."""
    runs = runs_of([(0.0, 0.0), (100.0, 100.0)], [rows / 2 - 10.0, rows / 2 + 10.0])
    assert jump_of(runs.arrays, int(rows), np.array([0.5]), 100.0) == jump


def test_a_jump_of_few_rows_must_exceed_what_a_smooth_density_gives():
    runs = runs_of([(0.0, 0.0), (5.0, 5.0)], [50.0, 50.0])
    smooth = 8.0 * 2.0 * 0.05  # eight times two standard errors of the rank of a median of 100 rows
    assert jump_of(runs.arrays, 100, np.array([0.5]), 5.0 / smooth * 0.99) == 5.0
    assert jump_of(runs.arrays, 100, np.array([0.5]), 5.0 / smooth * 1.01) == 0.0


def test_the_jump_of_two_quartiles_is_half_of_that_of_one():
    runs = runs_of([(0.0, 0.0), (50.0, 50.0), (60.0, 60.0)], [2500.0, 5000.0, 2500.0])
    assert jump_of(runs.arrays, 10_000, np.array([0.25, 0.75]), 60.0) == (50.0 + 10.0) / 2.0


def test_a_jump_beyond_the_brackets_reaches_to_the_last_known_value():
    runs = runs_of([(NAN, NAN), (1.0, 1.0), (8.0, 8.0), (NAN, NAN)], [4990.0, 10.0, 10.0, 4990.0])
    assert jump_of(runs.arrays, 10_000, np.array([0.5]), 8.0) == 7.0


def test_one_row_and_centres_without_quantiles_do_not_jump():
    runs = runs_of([(0.0, 0.0), (5.0, 5.0)], [1.0, 1.0])
    assert jump_of(runs.arrays, 1, np.array([0.5]), 0.1) == 0.0
    assert jump_of(runs.arrays, 2, np.array([]), 0.1) == 0.0
    assert jump_of(runs.arrays, 2, np.array([0.5]), 0.1) == 5.0
