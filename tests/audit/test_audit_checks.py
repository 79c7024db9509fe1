"""Checks find changes, and nothing where there is only noise."""

from pathlib import Path

import dask
import numpy as np
import pandas as pd
import pytest
from days import NAMES, WEIGHTS, frame

from excir_dask import explain
from excir_dask.audit.check_limits import default_limits, read_limits
from excir_dask.audit.checks import run_checks
from excir_dask.audit.comparison import Comparison, all_pairs
from excir_dask.audit.noise import noise_floor
from excir_dask.audit.score_errors import group_errors

GROUPS = {"engine": ["rpm", "torque"], "cooling": ["oil", "water"], "mixed": ["rpm", "noise"]}


def explained(table: pd.DataFrame, **more: object):
    with dask.config.set(scheduler="synchronous"):
        return explain(table, **{"output": "pred", "groups": GROUPS, **more})


def found(now, was, checks=None):
    limits = default_limits() if checks is None else read_limits(checks)
    checked = run_checks(Comparison(now, was, all_pairs(now, was, 0.001)), limits)
    return {(one.check, finding.kind, finding.name): finding for one in checked for finding in one.findings}


def changed(**weights: float) -> np.ndarray:
    return np.array([weights.get(name, old) for name, old in zip(NAMES, WEIGHTS, strict=True)])


@pytest.fixture(scope="module")
def was():
    return explained(frame(1))


def test_a_run_agrees_with_itself(was):
    assert found(was, was) == {}


def test_a_flip_is_named_with_values_threshold_and_error(was):
    findings = found(explained(frame(2, changed(speed=-1.2))), was)
    flip = findings["sign_flip", "features", "speed"]
    assert (flip.severity, flip.threshold) == ("fail", 0.02)
    assert flip.was > 0.7
    assert flip.now < 0.3
    assert 0 < flip.uncertainty < 0.05
    assert findings["score_shift", "features", "speed"].severity == "fail"
    assert {name for check, _, name in findings if check == "sign_flip"} == {"speed"}


def test_a_shift_that_errors_explain_does_not_count(was):
    few = explained(frame(3, changed(wind=0.9), rows=60))
    many = explained(frame(3, changed(wind=0.9), rows=6000))
    assert ("score_shift", "features", "wind") not in found(few, was)
    assert found(many, was)["score_shift", "features", "wind"].severity in ("warn", "fail")


def test_a_feature_may_have_limits_of_its_own(was):
    now = explained(frame(2, changed(speed=-1.2)))
    off = {name: {"features": {"speed": "off"}} for name in ("sign_flip", "score_shift", "entered_top", "left_top")}
    assert not [key for key in found(now, was, off) if key[2] == "speed"]


def test_groups_are_checked_too(was):
    findings = found(explained(frame(2, changed(oil=0.0, water=0.0))), was)
    assert findings["score_shift", "groups", "cooling"].severity == "fail"
    assert ("score_shift", "groups", "engine") not in findings


def test_features_that_enter_and_leave_the_top_are_named(was):
    findings = found(explained(frame(2, changed(torque=0.0, noise=2.0))), was)
    assert ("entered_top", "features", "noise") in findings
    assert ("left_top", "features", "torque") in findings
    assert ("left_top", "features", "noise") not in findings


def test_a_new_order_is_found(was):
    upside_down = changed(rpm=0.0, torque=0.0, oil=0.1, water=0.2, speed=0.0, wind=1.0, humidity=1.2, noise=1.5)
    findings = found(explained(frame(2, upside_down)), was)
    for check in ("ndcg_min", "jaccard_min", "kendall_min"):
        assert findings[check, "features", "*"].value < findings[check, "features", "*"].uncertainty


def test_an_order_of_noise_is_no_order():
    nothing = np.zeros(8)
    runs = [explained(frame(seed, nothing, 400)) for seed in (1, 2, 3)]
    for now in runs[1:]:
        assert not [key for key in found(now, runs[0]) if key[0].endswith("_min")]


def test_missing_values_rows_and_columns_are_checked(was):
    table = frame(2, rows=120)
    table.loc[:30, "oil"] = np.nan
    table.loc[:30, "pred"] = np.nan
    findings = found(explained(table.drop(columns="humidity").assign(extra=1.0)), was)
    assert findings["missing_rate", "outputs", "*"].severity == "fail"
    assert findings["rows_ratio_min", "rows", "*"].severity == "fail"
    assert findings["columns_gone", "features", "humidity"].severity == "fail"
    assert findings["columns_new", "features", "extra"].severity == "warn"
    table = frame(3)
    table.loc[:300, "oil"] = np.nan
    assert found(explained(table), was)["missing_rate", "features", "oil"].severity == "fail"


def test_settings_that_differ_are_found(was):
    assert ("settings", "settings", "centering") in found(explained(frame(1), centering="mean"), was)


def test_a_group_with_other_members_is_found_and_not_compared(was):
    now = was.regroup({**GROUPS, "cooling": ["oil", "speed"]})
    assert found(now, was)["settings", "settings", "group cooling"].severity == "warn"
    assert "cooling" not in set(all_pairs(now, was, 0.001).query("kind == 'groups'")["name"])
    assert "cooling" in set(all_pairs(was, was, 0.001).query("kind == 'groups'")["name"])


def test_an_output_of_the_same_name_from_another_column_is_found():
    table = frame(1).assign(other=frame(1)["pred"])
    one, other = (explained(table, output={"score": column}, features=NAMES) for column in ("pred", "other"))
    assert set(found(other, one)) == {("settings", "settings", "output score")}


def test_without_a_baseline_only_checks_run_that_need_none(was):
    limits = read_limits({"rows_min": {"fail": 10_000}})
    checked = run_checks(Comparison(was, None, all_pairs(was, None, 0.001)), limits)
    assert [(one.check, one.severity) for one in checked] == [("rows_min", "fail")]


def test_errors_of_groups_are_not_too_small():
    """The spread of a group's score over many days is at most what its limit says."""
    runs = [explained(frame(seed, rows=300)) for seed in range(50)]
    for place, group in enumerate(runs[0].groups["group"]):
        scores = [float(run.groups.set_index("group")["cir"][group]) for run in runs]
        errors = [group_errors(run.features, run.groups[run.groups["group"] == group], 0)[0][0] for run in runs]
        assert np.std(scores) < 1.25 * np.mean(errors), (place, group)


def test_the_noise_floor_falls_with_the_errors():
    truth = np.linspace(0.5, 0.9, 10)

    def agree(a: np.ndarray, b: np.ndarray) -> float:
        return float(np.corrcoef(a, b)[0, 1])

    floors = [
        noise_floor(truth, truth, *[np.full(10, e)] * 2, *[np.full(10, 99.0)] * 2, 0.01, agree)
        for e in (0.001, 0.05, 0.2)
    ]
    assert floors[0] > floors[1] > floors[2]


def test_a_centre_that_jumps_is_no_drift():
    """A quarter of a 0/1 column is ones, so that its upper quartile is 0 on some days and 1 on others."""
    runs = []
    for seed in range(12):
        table = frame(seed, rows=10_000)
        ones = np.random.default_rng(1000 + seed).random(10_000) < 0.25
        runs.append(explained(table.assign(switch=ones.astype(float), pred=table["pred"] + 2.0 * ones)))
    centres = {float(run.features.set_index("feature")["center"]["switch"]) for run in runs}
    assert centres >= {0.0, 0.5}
    for now in runs[1:]:
        assert not [key for key in found(now, runs[0]) if key[2] == "switch"]


def test_a_feature_that_becomes_constant_is_found(was):
    findings = found(explained(frame(2).assign(speed=1.0, humidity=0.0)), was)
    assert findings["score_shift", "features", "speed"].severity == "fail"
    assert findings["became_constant", "features", "speed"].severity == "fail"  # it was one of the top
    assert findings["became_constant", "features", "humidity"].severity == "warn"
    assert [name for check, _, name in findings if check == "became_constant"] == ["speed", "humidity"]
    limited = found(explained(frame(2).assign(speed=1.0)), was, {"became_constant": {"features": {"speed": "warn"}}})
    assert limited["became_constant", "features", "speed"].severity == "warn"


def test_an_output_that_becomes_constant_is_named_first(was):
    first = next(iter(found(explained(frame(2).assign(pred=1.0)), was).values()))
    assert (first.check, first.kind, first.name, first.severity) == ("became_constant", "outputs", "pred", "fail")


def test_a_rare_event_that_does_not_happen_is_not_a_constant_feature():
    table = frame(1)
    once = explained(table.assign(alarm=(np.arange(1500) < 3) * 1.0, pred=table["pred"] + 5 * (np.arange(1500) < 3)))
    assert not [key for key in found(explained(frame(2).assign(alarm=0.0)), once) if key[2] == "alarm"]


def alike_days(folder: Path, days: int, files: int) -> list:
    """Explanations of days on which rows of a file are alike."""
    rng = np.random.default_rng(files)
    runs = []
    for day in range(days):
        for number in range(files):
            table = frame(1000 * day + number, rows=60)
            near = table[NAMES] * 0.7 + rng.standard_normal(len(NAMES)) * 0.7
            path = folder / str(day) / f"{number}.parquet"
            path.parent.mkdir(exist_ok=True)
            near.assign(pred=near.to_numpy() @ WEIGHTS + 0.3 * rng.standard_normal(60)).to_parquet(path)
        runs.append(explained(folder / str(day)))
    return runs


def failures(runs: list, baseline: int) -> int:
    others = [run for place, run in enumerate(runs) if place != baseline]
    return sum(any(one.severity == "fail" for one in found(now, runs[baseline]).values()) for now in others)


def test_rows_that_are_alike_within_a_few_files_are_no_drift(tmp_path):
    assert failures(alike_days(tmp_path, 4, 4), 0) == 0


@pytest.mark.slow
def test_of_days_whose_rows_are_alike_at_most_two_percent_fail(tmp_path):
    failed = 0
    for files in (8, 20):
        (tmp_path / str(files)).mkdir()
        failed += failures(alike_days(tmp_path / str(files), 26, files), 0)
    assert failed <= 1


@pytest.mark.slow
def test_of_200_days_without_drift_at_most_two_percent_fail():
    runs = [explained(frame(seed, rows=300)) for seed in range(201)]
    for baseline in (runs[0], runs[77]):
        others = [run for run in runs if run is not baseline]
        failed = sum(any(one.severity == "fail" for one in found(now, baseline).values()) for now in others)
        assert failed <= 4
