"""What decides whether a difference counts: hand-made pairs of scores, and the limits that statistics give."""

from __future__ import annotations

import dask
import numpy as np
import pandas as pd
import pytest
from days import frame
from scipy.stats import norm
from scipy.stats import t as student

from excir_dask import Explanation, explain
from excir_dask.audit.check_limits import default_limits, read_limits
from excir_dask.audit.checks import run_checks
from excir_dask.audit.comparison import PAIRED, Comparison, all_pairs
from excir_dask.audit.findings import Checked, Finding
from excir_dask.audit.noise import Order, jaccard, kendall, ndcg, noise_floor
from excir_dask.audit.score_errors import feature_errors, group_errors

DTYPES = {name: pd.Series(dtype=kind).dtype for name, kind in PAIRED.items()}
ALARM = 0.001


def explained(table: pd.DataFrame, **more: object) -> Explanation:
    with dask.config.set(scheduler="synchronous"):
        return explain(table, **{"output": "pred", **more})


@pytest.fixture(scope="module")
def run() -> Explanation:
    """Any explanation: the checks of this page look at the pairs alone."""
    return explained(frame(1, rows=60))


def pairs(*rows: dict[str, float], kind: str = "features") -> pd.DataFrame:
    """A table as :func:`all_pairs` gives it. Ranks follow strength; errors are 0.01 and a limit is three of them."""
    table = pd.DataFrame([{"error_was": 0.01, "error_now": 0.01, **row} for row in rows])
    table = table.assign(
        output="pred",
        kind=kind,
        name=[f"f{i}" for i in range(len(table))],
        shift=table["cir_now"] - table["cir_was"],
        error=np.hypot(table["error_was"], table["error_now"]),
        **{f"strength_{run}": (2 * table[f"cir_{run}"] - 1).abs() for run in ("was", "now")},
        **dict.fromkeys(["degrees_was", "degrees_now"], 1e6),
        **dict.fromkeys(["null_was", "null_now"], 0.5),
        **{f"dependence{part}_{run}": 0.0 for part in ("", "_error") for run in ("was", "now")},
        **{name: 100 if name.startswith("n_") else 0 for name in ("n_was", "n_now", "missing_was", "missing_now")},
    )
    for run in ("was", "now"):
        table[f"rank_{run}"] = table[f"strength_{run}"].rank(ascending=False, method="first").astype(int)
    return table.assign(reach=3 * table["error"])[list(PAIRED)]


def found(run: Explanation, table: pd.DataFrame, check: str, k: int = 8) -> list[Finding]:
    checked = run_checks(Comparison(run, run, table, k), default_limits())
    return [finding for one in checked if one.check == check for finding in one.findings]


@pytest.mark.parametrize(
    ("was", "now", "flips"),
    [
        (0.6, 0.4, True),
        (0.4, 0.6, True),
        (0.6, 0.475, False),  # clear of 0.5 by three errors in the baseline alone
        (0.525, 0.4, False),  # and in this run alone
        (0.6, 0.7, False),
    ],
)
def test_a_flip_is_clear_of_one_half_in_both_runs(run, was, now, flips):
    assert bool(found(run, pairs({"cir_was": was, "cir_now": now}), "sign_flip")) is flips


@pytest.mark.parametrize(
    ("error_was", "error_now", "flips"), [(0.01, 0.01, True), (0.05, 0.01, False), (0.01, 0.05, False)]
)
def test_each_side_of_a_flip_is_judged_by_its_own_error(run, error_was, error_now, flips):
    row = {"cir_was": 0.6, "cir_now": 0.4, "error_was": error_was, "error_now": error_now}
    assert bool(found(run, pairs(row), "sign_flip")) is flips


def test_only_what_rose_itself_enters_the_top(run):
    """f1 is pushed up by the fall of f0, though it became weaker too; f3 rises past both f1 and f2."""
    fell = {"cir_was": 0.9, "cir_now": 0.5}
    weaker = {"cir_was": 0.8, "cir_now": 0.7}
    assert found(run, pairs(fell, weaker), "entered_top", k=1) == []
    assert [one.name for one in found(run, pairs(fell, weaker), "left_top", k=1)] == ["f0"]
    rose = {"cir_was": 0.5, "cir_now": 0.95}
    assert [one.name for one in found(run, pairs(weaker, fell, rose), "entered_top", k=1)] == ["f2"]


def test_only_what_fell_itself_leaves_the_top(run):
    rose, stronger = {"cir_was": 0.5, "cir_now": 0.95}, {"cir_was": 0.7, "cir_now": 0.8}
    assert found(run, pairs(stronger, rose), "left_top", k=1) == []
    assert [one.name for one in found(run, pairs(stronger, rose), "entered_top", k=1)] == ["f1"]


def test_a_change_of_place_within_errors_is_none(run):
    near = pairs({"cir_was": 0.61, "cir_now": 0.6}, {"cir_was": 0.6, "cir_now": 0.61})
    assert found(run, near, "entered_top", k=1) == found(run, near, "left_top", k=1) == []


def two_outputs(missing: int) -> pd.DataFrame:
    table = frame(1, rows=1000).assign(other=frame(2, rows=1000)["pred"])
    table.loc[: missing - 1, "oil"] = np.nan
    return table


def test_missing_values_of_a_feature_are_judged_once_whatever_the_outputs():
    was, now = (explained(two_outputs(missing), output=["pred", "other"]) for missing in (0, 300))
    checked = run_checks(Comparison(now, was, all_pairs(now, was, ALARM)), default_limits())
    (judged,) = [one for one in checked if (one.check, one.kind) == ("missing_rate", "features")]
    assert (judged.output, judged.compared) == ("*", 8)
    assert [(finding.output, finding.name, finding.value) for finding in judged.findings] == [("*", "oil", 0.3)]


def test_the_level_of_missing_values_is_shared_by_all_features():
    """A rise of 2.5% that one feature alone would show by chance in fewer than one case of a thousand."""
    rows = 4000
    names = [f"f{i}" for i in range(40)]
    was = pd.DataFrame(np.random.default_rng(0).standard_normal((rows, 41)), columns=[*names, "pred"])
    now, base = was.copy(), was.copy()
    base.loc[: 0.06 * rows - 1, "f0"] = np.nan
    now.loc[: 0.081 * rows - 1, "f0"] = np.nan
    sigmas = 0.021 / np.sqrt(0.0705 * (1 - 0.0705) * 2 / rows)
    assert norm.isf(ALARM / 2) < sigmas < norm.isf(ALARM / 2 / 40)
    one, other = explained(now), explained(base)
    assert not found_missing(one, other)
    few = [f"f{i}" for i in range(2)]
    assert found_missing(*(explained(table, features=few) for table in (now, base))) == ["f0"]


def found_missing(now: Explanation, was: Explanation) -> list[str]:
    checked = run_checks(Comparison(now, was, all_pairs(now, was, ALARM), false_alarm=ALARM), default_limits())
    return [finding.name for one in checked if one.check == "missing_rate" for finding in one.findings]


def test_a_shift_must_exceed_what_noise_gives_in_any_of_all_comparisons():
    """Bonferroni: the level is divided by the names of a kind over all outputs."""
    table = two_outputs(0)
    groups = {"engine": ["rpm", "torque"], "cooling": ["oil", "water"], "air": ["wind", "humidity"]}
    was, now = (explained(part, output=["pred", "other"], groups=groups) for part in (table[:500], table[500:]))
    both = all_pairs(now, was, ALARM)
    for kind, comparisons in (("features", 16), ("groups", 6)):
        some = both[both["kind"] == kind]
        assert len(some) == comparisons
        spread_was, spread_now = some["error_was"] ** 2, some["error_now"] ** 2
        degrees = (spread_was + spread_now) ** 2 / (
            spread_was**2 / some["degrees_was"] + spread_now**2 / some["degrees_now"]
        )
        np.testing.assert_allclose(some["error"], np.sqrt(spread_was + spread_now))
        limits = student.isf(ALARM / 2 / comparisons, degrees)
        np.testing.assert_allclose(some["reach"], limits * some["error"], rtol=1e-9)


@pytest.mark.parametrize("outputs", [["pred"], ["pred", "other"]])
def test_an_order_must_be_below_what_noise_gives_in_any_check_of_any_output(outputs):
    """The level is divided by three orders, two kinds and the outputs; the floor is said with the finding."""
    weights = np.array([2.0, 1.5, 1.0, 0.5, 0.0, 0.0, 0.0, 0.0])
    tables = [frame(seed, w, rows=300) for seed, w in ((1, weights), (2, weights[::-1]))]
    tables = [table.assign(other=table["pred"]) for table in tables]
    was, now = (explained(table, output=outputs, features=list(table.columns[:8])) for table in tables)
    both = all_pairs(now, was, ALARM)
    checked = run_checks(Comparison(now, was, both, k=4, false_alarm=ALARM), default_limits())
    some = both[(both["kind"] == "features") & (both["output"] == "pred")]
    null_was, null_now = (some[f"null_{run}"].to_numpy(float) for run in ("was", "now"))
    order = Order("strength", null_was, null_now)
    columns = [
        some[f"{column}_{run}"].to_numpy(float) for column in ("cir", "error", "degrees") for run in ("was", "now")
    ]
    for name, measure in (("ndcg_min", ndcg), ("jaccard_min", jaccard), ("kendall_min", kendall)):
        (finding,) = [
            finding
            for one in checked
            if (one.check, one.output, one.kind) == (name, "pred", "features")
            for finding in one.findings
        ]
        level = ALARM / (3 * 2 * len(outputs))
        null = (null_was + null_now) / 2
        floor = noise_floor(*columns, level, lambda a, b, measure=measure: measure(a, b, 4, order), null=null)
        assert finding.uncertainty == pytest.approx(floor, rel=1e-12)
        assert finding.value < floor


def checked(run: Explanation, table: pd.DataFrame, check: str, given: object = None, k: int = 8) -> Checked:
    limits = default_limits() if given is None else read_limits({check: given})
    (one,) = [one for one in run_checks(Comparison(run, run, table, k), limits) if one.check == check]
    return one


def test_shifts_beyond_their_reach_are_found_the_largest_first(run):
    table = pairs(
        {"cir_was": 0.6, "cir_now": 0.66},
        {"cir_was": 0.6, "cir_now": 0.4},
        {"cir_was": 0.6, "cir_now": 0.7},
        {"cir_was": 0.6, "cir_now": 0.64, "error_now": 0.001},
        {"cir_was": 0.6, "cir_now": 0.9, "error_now": 0.2},
    )
    one = checked(run, table, "score_shift")
    assert (one.output, one.kind, one.compared, one.value, one.threshold) == ("pred", "features", 5, 0.3, 0.05)
    assert [(finding.name, finding.severity) for finding in one.findings] == [
        ("f1", "fail"),
        ("f2", "warn"),
        ("f0", "warn"),
    ]
    finding = one.findings[0]
    assert (finding.output, finding.kind, finding.metric) == ("pred", "features", "cir")
    assert (finding.value, finding.threshold, finding.was, finding.now) == (pytest.approx(-0.2), 0.15, 0.6, 0.4)
    assert finding.uncertainty == pytest.approx(np.hypot(0.01, 0.01))
    assert finding.description == (
        "feature 'f1' of pred shifted by more than 0.15: CIR 0.600 -> 0.400, -0.200 with standard error 0.014"
    )


def test_a_shift_that_only_rounding_makes_larger_is_none(run):
    table = pairs({"cir_was": 0.5, "cir_now": 0.65 + 1e-14}, {"cir_was": 0.5, "cir_now": 0.65 + 1e-10})
    one = checked(run, table, "score_shift")
    assert [(finding.name, finding.severity) for finding in one.findings] == [("f1", "fail"), ("f0", "warn")]
    exact = pairs({"cir_was": 0.5, "cir_now": 0.75}).assign(reach=0.25)
    assert checked(run, exact, "score_shift").findings == ()


def test_groups_have_limits_of_their_own(run):
    table = pairs({"cir_was": 0.6, "cir_now": 0.4}, {"cir_was": 0.6, "cir_now": 0.4}, kind="groups")
    one = checked(run, table, "score_shift", {"groups": {"f0": "off"}, "features": {"f1": "off"}})
    assert [finding.of for finding in one.findings] == [("pred", "groups", "f1")]
    assert one.findings[0].description.startswith("group 'f1' of pred shifted")
    flips = checked(run, table, "sign_flip", {"groups": {"f0": "off"}})
    assert [finding.name for finding in flips.findings] == ["f1"]


def test_a_flip_is_as_large_as_the_smaller_distance_from_one_half(run):
    table = pairs(
        {"cir_was": 0.55, "cir_now": 0.3}, {"cir_was": 0.2, "cir_now": 0.54}, {"cir_was": 0.9, "cir_now": 0.7}
    )
    one = checked(run, table, "sign_flip")
    assert (one.output, one.kind, one.compared, one.threshold) == ("pred", "features", 3, 0.02)
    assert one.value == pytest.approx(0.05)
    assert [finding.value for finding in one.findings] == [pytest.approx(0.05), pytest.approx(0.04)]
    finding = one.findings[0]
    assert (finding.metric, finding.severity, finding.was, finding.now) == ("cir", "fail", 0.55, 0.3)
    assert finding.description == (
        "feature 'f0' of pred changed sides of what chance gives: CIR 0.550 -> 0.300, -0.250 with standard error 0.014"
    )
    assert [f.name for f in checked(run, table, "sign_flip", 0.045).findings] == ["f0"]


def test_a_flip_without_errors_is_clear_and_to_one_half_is_none(run):
    sure = {"error_was": 0.0, "error_now": 0.0}
    table = pairs({"cir_was": 0.55, "cir_now": 0.45, **sure}, {"cir_was": 0.6, "cir_now": 0.5, **sure})
    assert [finding.name for finding in checked(run, table, "sign_flip").findings] == ["f0"]


def test_what_enters_and_leaves_the_top_is_named_with_its_size(run):
    table = pairs(
        {"cir_was": 0.9, "cir_now": 0.55}, {"cir_was": 0.6, "cir_now": 0.95}, {"cir_was": 0.55, "cir_now": 0.5}
    )
    entered, left = (checked(run, table, check, k=1) for check in ("entered_top", "left_top"))
    for one, name, shift in ((entered, "f1", 0.35), (left, "f0", -0.35)):
        assert (one.output, one.kind, one.compared, one.value, one.threshold) == ("pred", "features", 3, 1.0, None)
        (finding,) = one.findings
        assert (finding.name, finding.value, finding.threshold) == (name, pytest.approx(shift), None)
        assert (finding.metric, finding.severity) == ("cir", "warn")
    assert entered.findings[0].description.startswith("feature 'f1' of pred entered the top 1: CIR 0.600 -> 0.950")
    assert left.findings[0].description.startswith("feature 'f0' of pred left the top 1: CIR 0.900 -> 0.550")
    assert checked(run, table, "entered_top", {"features": {"f1": "fail"}}, k=1).severity == "fail"


def test_the_top_is_at_most_half_of_the_names(run):
    """Of three names the first alone, whatever size is asked for."""
    table = pairs(
        {"cir_was": 0.9, "cir_now": 0.6}, {"cir_was": 0.8, "cir_now": 0.95}, {"cir_was": 0.55, "cir_now": 0.5}
    )
    assert [finding.name for finding in checked(run, table, "entered_top", k=8).findings] == ["f1"]
    assert checked(run, table, "left_top", k=2).findings == ()


def test_ranks_of_names_that_are_gone_leave_no_gap(run):
    """Ranks are those among the names of both runs."""
    table = pairs(
        {"cir_was": 0.9, "cir_now": 0.6}, {"cir_was": 0.8, "cir_now": 0.95}, {"cir_was": 0.55, "cir_now": 0.5}
    )
    gaps = table.assign(rank_was=table["rank_was"] * 10, rank_now=table["rank_now"] * 7 + 3)
    assert [finding.name for finding in checked(run, gaps, "entered_top", k=1).findings] == ["f1"]


@pytest.mark.parametrize("rank_by", ["strength", "cir"])
def test_rising_is_by_what_ranks_follow(rank_by):
    run = explained(frame(1, rows=60), rank_by=rank_by)
    table = pairs({"cir_was": 0.7, "cir_now": 0.65}, {"cir_was": 0.4, "cir_now": 0.1}, {"cir_was": 0.5, "cir_now": 0.5})
    found = [finding.name for finding in checked(run, table, "entered_top", k=1).findings]
    assert found == (["f1"] if rank_by == "strength" else [])


def test_an_order_that_noise_explains_is_reported_without_a_finding(run):
    table = pairs(
        *({"cir_was": 0.5 + d, "cir_now": 0.5 - d, "error_was": 0.3, "error_now": 0.3} for d in (0.1, 0.2, 0.3))
    )
    one = checked(run, table, "kendall_min", {"warn": 1.0, "fail": 1.0})
    assert (one.compared, one.value, one.threshold, one.findings) == (1, pytest.approx(1.0), 1.0, ())
    rows = [{"cir_was": 0.5 + d, "cir_now": 0.8 - d, "error_was": 0.2, "error_now": 0.2} for d in (0.0, 0.1, 0.2, 0.3)]
    one = checked(run, pairs(*rows), "kendall_min")
    assert one.value == pytest.approx(-1.0)
    assert (one.threshold, one.findings) == (0.2, ())


def test_an_order_turned_round_is_found_with_its_floor(run):
    steps = np.linspace(0.0, 0.4, 9)
    rows = [{"cir_was": 0.55 + d, "cir_now": 0.9 - d / 2, "error_was": 0.001, "error_now": 0.001} for d in steps]
    one = checked(run, pairs(*rows), "kendall_min")
    assert (one.output, one.kind, one.compared, one.value, one.threshold) == ("pred", "features", 1, -1.0, 0.2)
    (finding,) = one.findings
    assert (finding.of, finding.metric, finding.severity) == (("pred", "features", "*"), "kendall", "fail")
    assert (finding.value, finding.threshold, finding.was, finding.now) == (-1.0, 0.2, 1.0, -1.0)
    assert 0.9 < finding.uncertainty <= 1.0
    assert finding.description == (
        "Kendall's tau of the features of pred is -1.000, below 0.2; "
        f"noise alone would leave it at {finding.uncertainty:.3f} or more"
    )
    titles = {
        check: checked(run, pairs(*rows), check, k=3).findings[0].description for check in ("ndcg_min", "jaccard_min")
    }
    assert titles["ndcg_min"].startswith("nDCG of the features of pred is")
    assert titles["jaccard_min"].startswith("Jaccard index of the top of the features of pred is")


def test_a_single_name_has_no_order(run):
    table = pairs({"cir_was": 0.9, "cir_now": 0.1})
    found = run_checks(Comparison(run, run, table), default_limits())
    assert not [one for one in found if one.check in ("ndcg_min", "jaccard_min", "kendall_min")]


def test_pairs_are_the_names_of_both_runs_with_the_errors_of_each():
    was, now = explained(frame(1, rows=80)), explained(frame(2, rows=60).drop(columns="noise"))
    table = all_pairs(now, was, ALARM)
    assert table.dtypes.to_dict() == DTYPES
    assert table["name"].tolist() == [name for name in was.features["feature"] if name != "noise"]
    assert set(table["kind"]) == {"features"}
    before, after = (run.features.set_index("feature") for run in (was, now))
    for column in ("cir", "strength", "rank", "n", "missing"):
        assert table[f"{column}_was"].tolist() == [before[column][name] for name in table["name"]]
        assert table[f"{column}_now"].tolist() == [after[column][name] for name in table["name"]]
    for run, row_groups in ((was, "was"), (now, "now")):
        errors, degrees = feature_errors(run.features, run.facts.rows.row_groups)
        known = dict(zip(run.features["feature"], zip(errors, degrees, strict=True), strict=True))
        assert table[f"error_{row_groups}"].tolist() == [known[name][0] for name in table["name"]]
        assert table[f"degrees_{row_groups}"].tolist() == [known[name][1] for name in table["name"]]
    np.testing.assert_allclose(table["shift"].astype(float), table["cir_now"] - table["cir_was"])


def test_groups_are_paired_with_their_own_errors_and_no_rows():
    groups = {"engine": ["rpm", "torque"], "cooling": ["oil", "water"]}
    run = explained(frame(1, rows=80), groups=groups)
    table = all_pairs(run, run, ALARM)
    inside = table[table["kind"] == "groups"]
    assert inside["name"].tolist() == run.groups["group"].tolist()
    assert (inside[["n_was", "n_now", "missing_was", "missing_now"]] == 0).all(axis=None)
    errors, degrees = group_errors(run.features, run.groups, run.facts.rows.row_groups)
    np.testing.assert_allclose(inside["error_was"].astype(float), errors)
    np.testing.assert_allclose(inside["degrees_now"].astype(float), degrees)
    assert inside["rank_was"].tolist() == run.groups["rank"].tolist()
