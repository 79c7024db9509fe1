"""Errors of a window's scores, of groups and of differences, by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from scipy.stats import t as student

from excir_dask.audit.score_errors import alike, difference_degrees, feature_errors, group_errors, reach, t_limit

ROWS = {"n_eff": 400.0, "stderr_rows": 0.02, "stderr": 0.02, "stderr_by": "rows", "center_jump": 0.0}


def features(*rows: dict[str, object]) -> pd.DataFrame:
    table = [{**ROWS, "feature": f"f{i}", "cir": 0.6, "denominator": 1.0, **row} for i, row in enumerate(rows)]
    return pd.DataFrame(table)


def by_groups(stderr: float, **more: object) -> dict[str, object]:
    """A feature whose error the spread between row groups decides."""
    return {"stderr": stderr, "stderr_by": "row groups", **more}


def check(table: pd.DataFrame, row_groups: int, errors: list[float], degrees: list[float]) -> None:
    found = feature_errors(table, row_groups)
    np.testing.assert_allclose(found[0], errors)
    np.testing.assert_allclose(found[1], degrees)


def test_errors_of_independent_rows_have_the_degrees_of_their_effective_rows():
    check(features({}, {"n_eff": 1.5, "stderr": 0.5}), 40, [0.02, 0.5], [399.0, 1.0])


def test_what_does_not_vary_has_no_error():
    check(features({"n_eff": 0.0, "stderr": 0.3, "center_jump": 0.2}, {}), 40, [0.0, 0.02], [1.0, 399.0])


def test_few_effective_rows_and_a_centre_that_jumps_are_errors_too():
    few, jump = {"n_eff": 10.0, "stderr": 0.001}, {"center_jump": 0.15}
    check(features(few, jump), 40, [0.15, np.hypot(0.02, 0.15)], [9.0, 399.0])


def test_an_error_by_row_groups_has_their_degrees():
    """One feature of thirty is what chance gives, so the others stay as they are."""
    table = features(by_groups(0.05), by_groups(0.06, n_eff=30.0), *[{}] * 58)
    found = feature_errors(table.iloc[[0, *range(2, 60)]], 50)
    assert (found[0][0], found[1][0]) == (0.05, 49.0)
    assert set(found[0][1:]) == {0.02}
    assert set(found[1][1:]) == {399.0}
    fewer = feature_errors(table.iloc[1:], 50)
    assert (fewer[0][0], fewer[1][0]) == (0.06, 29.0)


def test_where_rows_are_alike_every_feature_has_at_least_the_median_of_the_ratios():
    table = features(
        by_groups(0.04), by_groups(0.06), by_groups(0.20, stderr_rows=0.05), {}, {"stderr": 0.1}, {"n_eff": 0.0}
    )
    # ratios of 2, 3 and 4 over rows
    check(table, 20, [0.06, 0.06, 0.20, 0.06, 0.1, 0.0], [19.0, 19.0, 19.0, 19.0, 19.0, 1.0])


def test_few_row_groups_show_likeness_by_a_single_feature():
    table = features(by_groups(0.04), *[{}] * 20)
    assert feature_errors(table, 7)[0].tolist() == [0.04] * 21
    assert feature_errors(table, 8)[0].tolist() == [0.04] + [0.02] * 20


def test_an_error_by_row_groups_without_one_by_rows_says_nothing_of_others():
    table = features(by_groups(0.04, stderr_rows=0.0), {})
    check(table, 4, [0.04, 0.02], [399.0, 399.0])


@pytest.mark.parametrize("features", [1, 5, 20, 300])
def test_rows_are_alike_where_chance_gives_so_many_features_in_fewer_than_one_of_a_hundred_windows(features):
    for count in range(1, min(features, 12) + 1):
        assert alike(count, features, 8) == (binom.sf(count - 1, features, 0.01) < 0.01)
        assert alike(count, features, 7)


def grouped(score: float, *members: str) -> pd.DataFrame:
    return pd.DataFrame({"cir": [score], "members": [list(members)]})


def test_errors_of_a_group_add_up_by_the_weights_of_its_members():
    table = features(
        {"cir": 0.8, "denominator": 3.0, "stderr": 0.04},
        {"cir": 0.4, "denominator": 1.0, "n_eff": 100.0},
        {"cir": 0.9, "denominator": 50.0},
    )
    found, degrees = group_errors(table, grouped(0.7, "f0", "f1"), 40)
    # weights are known to 1 / sqrt(n_eff), times what the error exceeds that of rows
    one = 0.04 + abs(0.8 - 0.7) * 2.0 / np.sqrt(400)
    other = 0.02 + abs(0.4 - 0.7) * 1.0 / np.sqrt(100)
    np.testing.assert_allclose(found, [0.75 * one + 0.25 * other])
    assert degrees.tolist() == [99.0]


def test_an_error_below_that_of_rows_does_not_make_weights_surer():
    table = features({"cir": 0.8, "stderr": 0.01, "n_eff": 400.0}, {"cir": 0.6, "stderr": 0.01, "stderr_rows": 0.0})
    found, _ = group_errors(table, grouped(0.7, "f0", "f1"), 40)
    np.testing.assert_allclose(found, [0.01 + 0.1 / np.sqrt(400)])


def test_members_that_do_not_move_add_nothing_to_a_group():
    table = features({"denominator": 0.0, "n_eff": 0.0}, {"cir": 0.7, "stderr": 0.03}, {"n_eff": 0.5, "stderr": 0.04})
    found, degrees = group_errors(table, pd.concat([grouped(0.7, "f0", "f1"), grouped(0.5, "f0")]), 40)
    np.testing.assert_allclose(found, [0.03, 0.0])
    assert degrees.tolist() == [399.0, 1.0]
    alone, fewest = group_errors(table, grouped(0.5, "f2"), 40)
    np.testing.assert_allclose(alone, [0.5 + 0.1 * 0.5 / 0.02])
    assert fewest.tolist() == [1.0]


def test_degrees_of_a_difference_are_welchs():
    found = difference_degrees([0.1, 0.0, 0.2, 0.0], [10.0, 3.0, 7.0, 1.0], [0.2, 0.1, 0.0, 0.0], [20.0, 9.0, 1.0, 1.0])
    welch = (0.01 + 0.04) ** 2 / (0.01**2 / 10 + 0.04**2 / 20)
    np.testing.assert_allclose(found, [welch, 9.0, 7.0, 1e9])


@pytest.mark.parametrize("comparisons", [1, 7, 1000])
def test_limits_are_two_sided_and_shared_by_all_comparisons(comparisons):
    degrees = np.array([1.0, 4.0, 30.0, 1e6])
    expected = student.isf(0.01 / 2 / comparisons, degrees)
    np.testing.assert_allclose(t_limit(degrees, 0.01, comparisons), expected, rtol=1e-6)
    np.testing.assert_allclose(reach(degrees + 1, 0.01, comparisons)[1:], expected[1:], rtol=1e-6)
    assert reach(2.0, 0.01, comparisons) == reach(5.0, 0.01, comparisons) < t_limit(3.0, 0.01, comparisons)
    assert t_limit(9.0, 0.01, 0) == t_limit(9.0, 0.01, 1)
