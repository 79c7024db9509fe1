"""A configuration is checked as a whole, and every wrong value is named."""

from datetime import date

import pytest

from excir_dask.audit.check_limits import default_limits, read_limits
from excir_dask.audit.checks import CHECKS
from excir_dask.audit.config import read_config, with_options
from excir_dask.audit.limits import Limits
from excir_dask.audit.validate import validate
from excir_dask.audit.window import Window, days, read_date
from excir_dask.errors import UsageError

DAY = date(2026, 9, 1)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("lakes: x", "no setting 'lakes'; did you mean 'lake'"),
        ("model: m.ubj", "one of output"),
        ("groups: correlation", "save them to a file"),
        ("groups: other.yaml", "'groups' is given twice"),
        ("name: a/b", "letters, digits"),
        ("fraction: 2", "number above 0 and at most 1, or 'auto'"),
        ("k: 0", "whole number of at least 1"),
        ("checks: {score_shfit: 1}", "did you mean 'score_shift'"),
        ("checks: {score_shift: {warn: 0.2, fail: 0.1}}", "fail before it warns"),
        ("checks: {ndcg_min: {warn: 0.5, fail: 0.9}}", "fail before it warns"),
        ("checks: {score_shift: 7}", "at most 1"),
        ("checks: {left_top: 3}", "give warn, fail or off"),
        ("checks: {ndcg_min: {features: {rpm: 0.5}}}", "about all features together"),
        ("explain: {centring: mean}", "did you mean 'explain.centering'"),
        ("explain: {group_correlated: 0.9}", "no setting 'explain.group_correlated'"),
        ("hooks: {command: notify}", "list of words"),
        ("hooks: {when: [never]}", "give some of"),
        ("hooks: {webhook: 'ftp://x'}", "http://"),
        ("scheduler: tcp://h:1\ncluster: slurm.yaml", "give one"),
        ("explain: {storage_options: hush-hush}", "storage_options is not a mapping"),
        ("results_options: hush-hush", "results_options is not a mapping"),
        ("explain: {features: 5}", "explain.features is 5"),
        ("explain: {features: [1]}", "explain.features is [1]"),
        ("explain: {weights: 5}", "explain.weights is 5"),
        ("explain: {max_categories: x}", "explain.max_categories is 'x'"),
        ("explain: {target_jaccard: x}", "explain.target_jaccard is 'x'"),
        ("explain: {centering: midhing}", "explain.centering is 'midhing'; did you mean 'midhinge'"),
        ("explain: {predict_type: foo}", "explain.predict_type is 'foo'"),
        ("explain: {allow_pickle: 1}", "explain.allow_pickle is 1"),
        ("explain: {budget: [1]}", "explain.budget is [1]"),
        ("baseline: 'prod-{{ region }}'", "the field 'region', which the window lacks"),
        ("require_baseline: true", "no baseline is named"),
        ("require_baseline: 1", "give true or false"),
        ("explain: {out: result}", "no setting 'explain.out'"),
        ("explain: {checkpoint: states}", "no setting 'explain.checkpoint'"),
    ],
)
def test_a_wrong_setting_is_named(plant, line, message):
    path = plant / "audit.yaml"
    base = path.read_text().replace("groups: groups.yaml\n", "") if line == "groups: correlation" else path.read_text()
    base = base.replace("name: plant\n", "") if line.startswith("name:") else base
    path.write_text(base + line + "\n")
    with pytest.raises(UsageError) as caught:
        read_config(path)
    assert message.replace("'explain.centering'", "'centering'") in str(caught.value)
    assert str(path) in str(caught.value)
    assert "hush" not in str(caught.value)  # what may be a secret is not repeated


def test_paths_are_relative_to_the_configuration(plant):
    found = read_config(plant / "audit.yaml")
    assert (found.lake, found.results) == (str(plant / "lake"), str(plant / "audits"))
    assert found.model_name == "plant"


def test_limits_of_a_name_win_over_patterns_and_those_over_the_default():
    check = read_limits({"score_shift": {"fail": 0.3, "features": {"sensor_*": {"fail": 0.5}, "sensor_1": "off"}}})[
        "score_shift"
    ]
    assert check.of("features", "sensor_1") == Limits()
    assert check.of("features", "sensor_2").fail == 0.5
    assert check.of("features", "rpm").fail == 0.3
    assert check.of("groups", "sensor_2").fail == 0.3


def test_every_check_has_a_default():
    assert list(default_limits()) == list(CHECKS)


@pytest.mark.parametrize(
    ("template", "keys", "message"),
    [
        ("date={{ date }}", {"region": "eu"}, "is not a field of the window"),
        ("region={{ region }}", {}, "add --key region=VALUE"),
        ("region={{ region }}", {"region": "../x"}, "without '/'"),
    ],
)
def test_a_window_says_what_it_lacks(template, keys, message):
    with pytest.raises(UsageError, match=message):
        Window(template).fill(DAY, keys)


def test_windows_know_parts_of_dates():
    assert Window("y={{year}}/m={{ month }}/d={{ day }}").fill(DAY, {}) == "y=2026/m=09/d=01"


def test_backfills_run_forwards():
    assert [str(day) for day in days(DAY, date(2026, 9, 3))] == ["2026-09-01", "2026-09-02", "2026-09-03"]
    with pytest.raises(UsageError, match="the earlier day first"):
        days(date(2026, 9, 3), DAY)
    with pytest.raises(UsageError, match="not a date"):
        read_date("last week")


def test_options_of_a_store_may_come_from_the_command_line(plant):
    path = plant / "audit.yaml"
    path.write_text(path.read_text() + "explain: {storage_options: {anon: true, key: a}}\n")
    found = with_options(read_config(path), {"key": "b"}, 3)
    assert found.options.storage_options == {"anon": True, "key": "b"}
    assert found.options.table_version == 3
    path.write_text(path.read_text().replace("lake: lake", "lake: s3://b/lake"))
    assert with_options(read_config(path), {"key": "b"}, None).results_options is None
    path.write_text(path.read_text().replace("results: audits", "results: s3://b/audits"))
    assert with_options(read_config(path), {"key": "b"}, None).results_options == {"anon": True, "key": "b"}


def problems(plant, extra="", day=DAY):
    path = plant / "audit.yaml"
    path.write_text(path.read_text() + extra)
    return [str(problem) for problem in validate(read_config(path), day, {})]


def test_a_correct_configuration_has_no_problems(plant):
    assert problems(plant) == []


def test_validation_finds_all_problems_at_once(plant):
    (plant / "audits").write_text("a file")
    found = problems(
        plant,
        "checks: {score_shift: {features: {rmp: 0.1}, groups: {coolin: 0.1}}}\nhooks: {command: [no-such-program]}\n",
    )
    for part in ("did you mean 'rpm'", "did you mean 'cooling'", "no-such-program", "results cannot"):
        assert any(part in problem for problem in found), (part, found)
    assert len(found) == 4


@pytest.mark.parametrize(
    ("extra", "day", "part"),
    [
        ("", date(2027, 1, 1), "has no date=2027-01-01: the last one is date=2026-09-02"),
        ("baseline: production\n", DAY, "has no baseline 'production'"),
        ("explain: {features: [rmp]}\n", DAY, "rpm"),
        ("hooks: {webhook: $EXCIR_NOT_SET}\n", DAY, "not set"),
    ],
)
def test_validation_looks_at_what_is_named(plant, extra, day, part):
    (problem,) = problems(plant, extra, day)
    assert part in problem
