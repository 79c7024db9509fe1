"""Checks of the data behind the scores, each field of what they find, and their limits to the row."""

from __future__ import annotations

from dataclasses import replace

import dask
import numpy as np
import pandas as pd
import pytest
from days import frame

from excir_dask import Explanation, explain
from excir_dask.audit.check_limits import default_limits, read_limits
from excir_dask.audit.checks import CHECKS, run_checks
from excir_dask.audit.comparison import PAIRED, Comparison, all_pairs, changed_members, common_outputs
from excir_dask.audit.findings import Checked

DTYPES = {name: pd.Series(dtype=kind).dtype for name, kind in PAIRED.items()}
ALARM = 0.001
GROUPS = {"engine": ["rpm", "torque"], "cooling": ["oil", "water"]}


def explained(table: pd.DataFrame, **more: object) -> Explanation:
    with dask.config.set(scheduler="synchronous"):
        return explain(table, **{"output": "pred", "groups": GROUPS, **more})


@pytest.fixture(scope="module")
def was() -> Explanation:
    return explained(frame(1, rows=200))


def with_rows(explanation: Explanation, **counts: int) -> Explanation:
    return replace(explanation, facts=replace(explanation.facts, rows=replace(explanation.facts.rows, **counts)))


def checked(
    now: Explanation, was: Explanation | None, check: str, given: object = None, **options: object
) -> list[Checked]:
    limits = default_limits() if given is None else read_limits({check: given})
    comparison = Comparison(now, was, all_pairs(now, was, ALARM), **options)
    return [one for one in run_checks(comparison, limits) if one.check == check]


def fields(one: Checked) -> tuple[object, ...]:
    return one.output, one.kind, one.compared, one.value, one.threshold, one.severity


@pytest.fixture(scope="module")
def broken() -> Explanation:
    """A window in which nothing is as it was."""
    table = frame(9, rows=20).assign(rpm=1.0, extra=2.0)
    table.loc[:9, "oil"] = np.nan
    return explained(table.drop(columns="noise"), centering="mean")


@pytest.mark.parametrize("check", CHECKS)
def test_a_check_that_is_off_finds_nothing_and_stops_nothing(was, broken, check):
    assert all(not one.findings for one in checked(broken, was, check, "off"))


def test_results_come_by_output_and_kind_behind_those_of_the_whole_run(was):
    found = run_checks(Comparison(was, was, all_pairs(was, was, ALARM)), default_limits())
    names = list(CHECKS)
    whole = [one for one in found if one.output == "*"]
    assert found[: len(whole)] == whole
    assert [one.check for one in whole] == sorted((one.check for one in whole), key=names.index)
    rest = found[len(whole) :]
    assert [one.kind for one in rest] == ["features"] * 7 + ["groups"] * 7
    assert [one.check for one in rest] == names[8:] * 2
    assert all(one.severity == "ok" for one in found)


def test_without_a_baseline_rows_alone_are_checked(was):
    found = run_checks(Comparison(was, None, all_pairs(was, None, ALARM)), default_limits())
    assert [one.check for one in found] == ["rows_min"]
    empty = all_pairs(was, None, ALARM)
    assert empty.dtypes.to_dict() == DTYPES
    assert len(empty) == 0


@pytest.mark.parametrize(
    ("limits", "severity", "threshold"),
    [
        ({"warn": 200, "fail": 100}, "ok", 200.0),
        ({"warn": 201, "fail": 200}, "warn", 201.0),
        ({"warn": 202, "fail": 201}, "fail", 201.0),
        (201, "fail", 201.0),
        (None, "ok", None),
    ],
)
def test_the_rows_of_a_window_are_at_least_the_threshold(was, limits, severity, threshold):
    (one,) = checked(was, None, "rows_min", limits)
    assert fields(one) == ("*", "rows", 1, 200.0, threshold, severity)
    if severity != "ok":
        (finding,) = one.findings
        assert (finding.of, finding.metric, finding.value) == (("*", "rows", "*"), "rows", 200.0)
        assert (finding.was, finding.now, finding.uncertainty) == (None, 200.0, None)
        assert finding.description == f"the window has 200 rows, fewer than {threshold:.0f}"


@pytest.mark.parametrize(
    ("check", "rows", "severity", "threshold"),
    [
        ("rows_ratio_min", 100, "ok", 0.5),
        ("rows_ratio_min", 99, "warn", 0.5),
        ("rows_ratio_min", 20, "warn", 0.5),
        ("rows_ratio_min", 19, "fail", 0.1),
        ("rows_ratio_max", 400, "ok", 2.0),
        ("rows_ratio_max", 401, "warn", 2.0),
        ("rows_ratio_max", 2000, "warn", 2.0),
        ("rows_ratio_max", 2001, "fail", 10.0),
    ],
)
def test_rows_stay_within_their_ratio_to_the_baseline(was, check, rows, severity, threshold):
    (one,) = checked(with_rows(was, lake=rows), was, check)
    assert fields(one) == ("*", "rows", 1, rows / 200, threshold, severity)
    if severity != "ok":
        (finding,) = one.findings
        assert (finding.of, finding.metric, finding.value) == (("*", "rows", "*"), "rows_ratio", rows / 200)
        assert (finding.was, finding.now, finding.threshold, finding.uncertainty) == (200.0, rows, threshold, None)
        side = "less" if check == "rows_ratio_min" else "more"
        assert (
            finding.description
            == f"the window has {rows:,} rows, {side} than {threshold:g} times the 200 of the baseline"
        )


def test_a_baseline_without_rows_has_no_ratio(was):
    assert checked(was, with_rows(was, lake=0), "rows_ratio_min") == []
    assert checked(was, with_rows(was, lake=0), "rows_min")[0].severity == "ok"


def test_new_and_gone_names_are_found_by_kind(was):
    table = frame(1, rows=200).drop(columns="noise").assign(extra=np.arange(200.0))
    now = explained(table, groups={"engine": GROUPS["engine"], "air": ["wind", "extra"]}, output={"risk": "pred"})
    new, gone = checked(now, was, "columns_new"), checked(now, was, "columns_gone")
    assert [fields(one) for one in new] == [
        ("*", "outputs", 1, 1.0, None, "warn"),
        ("*", "features", 8, 1.0, None, "warn"),
        ("*", "groups", 2, 1.0, None, "warn"),
    ]
    assert [fields(one) for one in gone] == [
        ("*", "outputs", 1, 1.0, None, "fail"),
        ("*", "features", 8, 1.0, None, "fail"),
        ("*", "groups", 2, 1.0, None, "fail"),
    ]
    assert [finding.name for one in new for finding in one.findings] == ["risk", "extra", "air"]
    assert [finding.name for one in gone for finding in one.findings] == ["pred", "noise", "cooling"]
    finding = new[1].findings[0]
    assert (finding.of, finding.metric, finding.was, finding.now) == (("*", "features", "extra"), "present", 0.0, 1.0)
    assert (finding.value, finding.threshold, finding.uncertainty) == (None, None, None)
    assert finding.description == "feature 'extra' is new; the baseline does not have it"
    assert (gone[2].findings[0].was, gone[2].findings[0].now) == (1.0, 0.0)
    assert gone[2].findings[0].description == "group 'cooling' is gone; the baseline has it"
    only = checked(now, was, "columns_new", {"features": {"extra": "fail"}})
    assert [one.severity for one in only] == ["warn", "fail", "warn"]


def test_settings_that_differ_are_named_and_counted(was):
    now = explained(frame(1, rows=200), centering="mean", rank_by="cir")
    (one,) = checked(now, was, "settings")
    assert fields(one) == ("*", "settings", 8, 2.0, None, "warn")
    assert [finding.name for finding in one.findings] == ["centering", "rank_by"]
    finding = one.findings[0]
    assert (finding.of, finding.metric) == (("*", "settings", "centering"), "differs")
    assert (finding.value, finding.was, finding.now) == (None, None, None)
    assert finding.description == (
        "centering was midhinge in the baseline and is mean; scores may differ for that reason alone"
    )
    (same,) = checked(was, was, "settings")
    assert fields(same) == ("*", "settings", 8, 0.0, None, "ok")


@pytest.mark.parametrize(
    ("series", "of_baseline", "differs"),
    [
        ("credit,region=eu", "credit,region=us", True),
        ("credit,region=eu", "loans,region=eu", False),
        ("credit", "credit,region=us", True),
        ("credit", None, False),
        (None, "credit,region=us", False),
    ],
)
def test_a_baseline_of_another_series_is_named(was, series, of_baseline, differs):
    about = None if of_baseline is None else {"audit": of_baseline}
    base = replace(was, provenance=replace(was.provenance, audit=about))
    (one,) = checked(was, base, "settings", series=series)
    assert [finding.name for finding in one.findings] == (["window"] if differs else [])


def test_groups_have_changed_members_unless_they_are_the_categories_of_a_column(was):
    table = frame(1, rows=200).assign(site=np.tile(["a", "b"], 100))
    more = table.assign(site=np.tile(["a", "b", "c", "d"], 50))
    one, other = (explained(t, categoricals="indicators", groups=None) for t in (table, more))
    assert "site" in set(one.groups["group"])
    assert changed_members(other, one) == {}
    now = was.regroup({"engine": ["torque", "rpm"], "cooling": ["oil", "speed"], "air": ["wind", "noise"]})
    assert changed_members(now, was) == {"cooling": (["oil", "water"], ["oil", "speed"])}
    (check,) = checked(now, was, "settings")
    assert [finding.name for finding in check.findings] == ["group cooling"]
    assert "gone: water; new: speed" in check.findings[0].description


def test_common_outputs_are_in_the_order_of_the_baseline():
    table = frame(1, rows=60).assign(a=1.0, b=2.0).assign(a=lambda t: t["rpm"], b=lambda t: t["oil"])
    one = explained(table, output=["a", "b", "pred"], groups=None, features=["wind", "speed"])
    other = explained(table, output=["pred", "a"], groups=None, features=["wind", "speed"])
    assert common_outputs(one, other) == ["pred", "a"]
    assert common_outputs(other, one) == ["a", "pred"]
    assert common_outputs(one, None) == []
    found = run_checks(Comparison(one, other, all_pairs(one, other, ALARM)), default_limits())
    assert list(dict.fromkeys(check.output for check in found)) == ["*", "pred", "a"]
    nothing = all_pairs(explained(table, output="a", groups=None), explained(table, output="b", groups=None), ALARM)
    assert len(nothing) == 0


def missing(now: Explanation, was: Explanation, given: object = None, alarm: float = ALARM) -> dict[str, Checked]:
    limits = default_limits() if given is None else read_limits({"missing_rate": given})
    found = run_checks(Comparison(now, was, all_pairs(now, was, alarm), false_alarm=alarm), limits)
    return {one.kind: one for one in found if one.check == "missing_rate"}


def with_missing(explanation: Explanation, **counts: int) -> Explanation:
    """The same with so many of 1,000 rows missing."""
    lost = explanation.features["feature"].map(lambda name: counts.get(name, 0))
    return replace(explanation, features=explanation.features.assign(missing=lost, n=1000 - lost))


def test_a_rise_of_missing_values_is_found_beyond_threshold_and_error(was):
    base, now = with_missing(was, oil=100, wind=300), with_missing(was, oil=250, wind=300, rpm=15)
    one = missing(now, base)["features"]
    assert fields(one) == ("*", "features", 8, pytest.approx(0.15), 0.02, "fail")
    (finding,) = one.findings
    assert (finding.of, finding.metric, finding.severity) == (("*", "features", "oil"), "missing", "fail")
    assert (finding.value, finding.threshold) == (pytest.approx(0.15), 0.1)
    assert (finding.was, finding.now) == (0.1, 0.25)
    assert finding.uncertainty == pytest.approx(np.sqrt(0.175 * 0.825 * 2 / 1000))
    assert finding.description.startswith("missing values of 'oil': 10.00% -> 25.00%, a rise of more than 10%")
    assert missing(base, now)["features"].findings == ()
    assert missing(base, now)["features"].value == 0.0
    own = missing(now, base, {"features": {"oil": 0.2}})["features"]
    assert own.findings == ()


def test_rises_must_exceed_the_limit_of_their_error(was):
    """At 8 features and one alarm in a thousand, 3.84 errors of the pooled share of both windows."""
    base, now = with_missing(was, oil=20), with_missing(was, oil=51)
    assert missing(now, base, alarm=ALARM)["features"].findings == ()
    assert len(missing(with_missing(was, oil=53), base, alarm=ALARM)["features"].findings) == 1
    assert len(missing(now, base, alarm=0.01)["features"].findings) == 1


@pytest.mark.parametrize(("lost", "severity"), [(20, "ok"), (60, "warn"), (150, "fail")])
def test_rows_without_an_output_are_counted_among_the_sampled(was, lost, severity):
    base, now = (with_rows(was, without_output=n, sampled=1000) for n in (10, lost))
    one = missing(now, base)["outputs"]
    assert fields(one) == ("*", "outputs", 1, pytest.approx((lost - 10) / 1000), 0.02, severity)
    if severity != "ok":
        assert one.findings[0].of == ("*", "outputs", "*")
        assert one.findings[0].description.startswith("rows without an output: 1.00%")
        pooled = (10 + lost) / 2000
        assert one.findings[0].uncertainty == pytest.approx(np.sqrt(pooled * (1 - pooled) / 500))


def test_windows_without_rows_have_no_missing_values(was):
    nothing = with_rows(was, without_output=0, sampled=0)
    assert missing(nothing, nothing)["outputs"].value == 0.0


def with_flags(explanation: Explanation, *names: str, **columns: object) -> Explanation:
    """The same with some features constant."""
    flag = np.where(explanation.features["feature"].isin(names), "constant", "")
    return replace(explanation, features=explanation.features.assign(flag=flag, **columns))


def constants(now: Explanation, was: Explanation, k: int = 8, alarm: float = ALARM) -> dict[str, Checked]:
    comparison = Comparison(now, was, all_pairs(now, was, alarm), k=k, false_alarm=alarm)
    found = run_checks(comparison, default_limits())
    return {one.kind: one for one in found if one.check == "became_constant"}


def test_features_that_become_constant_are_found_by_rank_and_fail_in_the_top(was):
    order = list(was.features.sort_values("rank")["feature"])
    now = with_flags(was, order[5], order[3], order[4])
    one = constants(now, with_flags(was))["features"]
    assert fields(one) == ("*", "features", 8, 3.0, None, "fail")
    assert [finding.name for finding in one.findings] == [order[3], order[4], order[5]]
    assert [finding.severity for finding in one.findings] == ["fail", "warn", "warn"]  # half of eight are the top
    finding = one.findings[0]
    assert (finding.metric, finding.was, finding.now, finding.value) == ("varies", 1.0, 0.0, None)
    assert (
        finding.description == f"feature '{order[3]}' of the baseline's top no longer varies; in the baseline it does"
    )
    assert "of the baseline's top" not in one.findings[1].description
    assert constants(now, with_flags(was), k=2)["features"].severity == "warn"


@pytest.mark.parametrize(("n_eff", "n_now", "found"), [(9.1, 200, 1), (8.9, 200, 0), (100.0, 17, 0), (100.0, 19, 1)])
def test_a_feature_is_dead_where_its_rows_would_have_shown_it(was, n_eff, n_now, found):
    """Of 8 features and one alarm in a thousand: log(8000) = 8.99 effective rows are expected today."""
    base = with_flags(was, n_eff=n_eff, n=200)
    now = with_flags(was, "oil", n=n_now)
    assert len(constants(now, base)["features"].findings) == found


def test_the_best_rank_and_the_most_rows_of_any_output_count():
    table = frame(1, rows=200).assign(other=frame(2, rows=200)["pred"])
    was = explained(table, output=["pred", "other"])
    ranks = np.where(was.features["output"] == "pred", was.features["rank"], 9 - was.features["rank"])
    base = with_flags(was, rank=ranks, n_eff=np.where(was.features["output"] == "pred", 0.0, 100.0), n=200)
    worst = base.features[base.features["output"] == "pred"].sort_values("rank")["feature"].iloc[-1]
    now = with_flags(was, worst, n=200)
    found = constants(now, base)["features"].findings
    assert [finding.name for finding in found] == [worst]


def test_an_output_that_becomes_constant_fails(was):
    now = replace(was, outputs=was.outputs.assign(flag="constant"))
    found = constants(now, was)["outputs"]
    assert fields(found) == ("*", "outputs", 1, 1.0, None, "fail")
    assert found.findings[0].description.startswith("output 'pred' no longer varies")
    assert constants(now, now)["outputs"].findings == ()
    assert constants(now, now)["outputs"].compared == 0
