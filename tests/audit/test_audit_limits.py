"""Thresholds and what a configuration may say of them."""

from __future__ import annotations

import pytest

from excir_dask.audit.check_limits import default_limits, read_limits, to_manifest
from excir_dask.audit.checks import CHECKS
from excir_dask.audit.findings import Checked, Finding
from excir_dask.audit.limits import FAIL, OFF, WARN, CheckLimits, Limits
from excir_dask.errors import UsageError


@pytest.mark.parametrize(
    ("value", "least", "expected"),
    [
        (0.2, False, ("ok", 0.2)),
        (0.21, False, ("warn", 0.2)),
        (0.5, False, ("warn", 0.2)),
        (0.51, False, ("fail", 0.5)),
        (0.5, True, ("warn", 0.9)),
        (0.49, True, ("fail", 0.5)),
        (0.9, True, ("ok", 0.9)),
        (0.89, True, ("warn", 0.9)),
    ],
)
def test_a_value_on_its_threshold_is_not_beyond_it(value, least, expected):
    limits = Limits(warn=0.9 if least else 0.2, fail=0.5)
    assert limits.severity(value, least) == expected
    check = CheckLimits("any", limits, least)
    assert check.judge(value) == check.judge_name("features", "rpm", value) == expected


def test_a_threshold_that_is_not_given_never_decides():
    assert Limits(fail=0.5).severity(0.4, least=False) == ("ok", 0.5)
    assert Limits(warn=0.5).severity(9.0, least=False) == ("warn", 0.5)
    assert OFF.severity(9.0, least=False) == OFF.severity(-9.0, least=True) == ("ok", None)
    assert (Limits(0.1, 0.2).first, Limits(fail=0.2).first, Limits(warn=0.0, fail=1.0).first) == (0.1, 0.2, 0.0)
    assert (WARN.severity(1.0, least=False), FAIL.severity(1.0, least=False)) == (("warn", 0.0), ("fail", 0.0))


def test_names_win_over_patterns_and_the_first_pattern_that_fits_over_others():
    own = {"a*": Limits(fail=0.1), "ab*": Limits(fail=0.2), "abc": Limits(fail=0.3)}
    check = CheckLimits("any", OFF, features=own, groups={"G*": Limits(fail=0.4)})
    assert [check.of("features", name).fail for name in ("abc", "abd", "xyz", "Abc", "G1")] == [
        0.3,
        0.1,
        None,
        None,
        None,
    ]
    assert [check.of("groups", name).fail for name in ("G1", "g1", "abc")] == [0.4, None, None]
    assert check.of("outputs", "abd").fail == 0.1
    assert check.judge_name("groups", "G1", 0.5) == ("fail", 0.4)
    assert check.judge(0.5) == ("ok", None)


def test_defaults_are_those_of_the_registry():
    for name, limits in default_limits().items():
        assert (limits.name, limits.limits, limits.least) == (name, CHECKS[name].default, CHECKS[name].least)
        assert (limits.features, limits.groups) == ({}, {})
    assert read_limits(None) == default_limits()


@pytest.mark.parametrize(
    ("check", "given", "expected"),
    [
        ("score_shift", "off", OFF),
        ("score_shift", None, OFF),
        ("score_shift", False, OFF),
        ("score_shift", 0.3, Limits(fail=0.3)),
        ("score_shift", 1, Limits(fail=1.0)),
        ("score_shift", 0, Limits(fail=0.0)),
        ("score_shift", {"warn": 0.1}, Limits(warn=0.1)),
        ("score_shift", {"warn": 0.1, "fail": 0.1}, Limits(0.1, 0.1)),
        ("score_shift", {"warn": 0.1, "fail": "off"}, Limits(warn=0.1)),
        ("score_shift", {"warn": None, "fail": 0.2}, Limits(fail=0.2)),
        ("score_shift", {"warn": False, "fail": 0.2}, Limits(fail=0.2)),
        ("ndcg_min", {"warn": 0.9, "fail": 0.5}, Limits(0.9, 0.5)),
        ("rows_min", 10**9, Limits(fail=1e9)),
        ("sign_flip", 0.5, Limits(fail=0.5)),
        ("left_top", "warn", WARN),
        ("left_top", "fail", FAIL),
        ("left_top", "off", OFF),
    ],
)
def test_limits_are_read_as_they_are_written(check, given, expected):
    found = read_limits({check: given})
    assert found[check].limits == expected
    assert all(isinstance(v, float | None) for v in (found[check].limits.warn, found[check].limits.fail))
    rest = {name: limits for name, limits in default_limits().items() if name != check}
    assert {name: limits for name, limits in found.items() if name != check} == rest


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1], r"checks is \[1\]; give a mapping such as  score_shift"),
        ({"score_shfit": 1}, r"there is no check 'score_shfit'; did you mean 'score_shift'\?? \(checks: became"),
        ({7: 1}, "there is no check '7'"),
        (
            {"score_shift": True},
            r"checks.score_shift is True; it is a number \(change of CIR\), at least 0 and at most 1",
        ),
        ({"score_shift": "x"}, "checks.score_shift is 'x'"),
        ({"score_shift": -0.1}, "checks.score_shift is -0.1"),
        ({"sign_flip": 0.51}, "at least 0 and at most 0.5$"),
        ({"rows_min": -1}, "at least 0$"),
        ({"score_shift": {"wrn": 1}}, r"checks.score_shift has 'wrn'; did you mean 'warn'\??; give warn, fail or both"),
        ({"score_shift": {"warn": 2}}, "checks.score_shift.warn is 2"),
        (
            {"score_shift": {"warn": 0.2, "fail": 0.1}},
            "warns at 0.2 and fails at 0.1, so it would fail before it warns",
        ),
        ({"ndcg_min": {"warn": 0.1, "fail": 0.2}}, "checks.ndcg_min warns at 0.1 and fails at 0.2"),
        ({"left_top": {"warn": 1}}, "checks.left_top is .*: give warn, fail or off"),
        ({"ndcg_min": {"groups": {}}}, "checks.ndcg_min is about all groups together; it has no groups of its own"),
        ({"score_shift": {"features": [1]}}, r"checks.score_shift.features is \[1\]; give a mapping from names"),
        ({"score_shift": {"groups": {"g": 3}}}, "checks.score_shift.groups.g is 3"),
    ],
)
def test_limits_that_cannot_be_are_named(given, message):
    with pytest.raises(UsageError, match=message):
        read_limits(given)


def test_limits_of_single_names_leave_the_others_alone():
    found = read_limits({"score_shift": {"features": {"rpm": 0.3, 7: "off"}, "groups": {"g": {"warn": 0.2}}}})
    check = found["score_shift"]
    assert check.limits == CHECKS["score_shift"].default
    assert (check.features, check.groups) == ({"rpm": Limits(fail=0.3), "7": OFF}, {"g": Limits(warn=0.2)})
    both = read_limits({"score_shift": {"fail": 0.9, "features": {"rpm": 0.3}}})["score_shift"]
    assert (both.limits, both.features) == (Limits(fail=0.9), {"rpm": Limits(fail=0.3)})
    events = read_limits({"left_top": {"features": {"rpm": "fail"}}})["left_top"]
    assert (events.limits, events.features) == (WARN, {"rpm": FAIL})


def test_a_manifest_keeps_every_limit_and_the_order_of_patterns():
    given = {"score_shift": {"warn": 0.1, "features": {"b*": 0.3, "a*": "off"}, "groups": {"g": {"warn": 0.2}}}}
    kept = to_manifest(read_limits(given))
    assert list(kept) == list(CHECKS)
    assert kept["score_shift"] == {
        "warn": 0.1,
        "fail": None,
        "features": [{"name": "b*", "warn": None, "fail": 0.3}, {"name": "a*", "warn": None, "fail": None}],
        "groups": [{"name": "g", "warn": 0.2, "fail": None}],
    }
    assert kept["rows_min"] == {"warn": None, "fail": None}


def test_the_worst_finding_is_the_severity_of_a_check():
    def of(*severities: str) -> str:
        rest = ("*", "rows", "*", "rows", None, None, None)
        findings = tuple(Finding("c", *rest, severity, None, None, "") for severity in severities)
        return Checked("c", "*", "rows", 1, None, None, findings).severity

    assert (of(), of("warn"), of("warn", "fail"), of("fail", "warn")) == ("ok", "warn", "fail", "fail")
