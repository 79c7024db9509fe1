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
from excir_dask.audit.check_limits import default_limits
from excir_dask.audit.checks import run_checks
from excir_dask.audit.comparison import PAIRED, Comparison, all_pairs
from excir_dask.audit.findings import Finding
from excir_dask.audit.noise import jaccard, kendall, ndcg, noise_floor

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
        floor = noise_floor(
            *columns, ALARM / (3 * 2 * len(outputs)), lambda a, b, measure=measure: measure(a, b, 4, "strength")
        )
        assert finding.uncertainty == pytest.approx(floor, rel=1e-12)
        assert finding.value < floor
