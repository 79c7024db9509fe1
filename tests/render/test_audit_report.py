"""The report of an audit: the verdict first, changes, trends, and at most 2 MB."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import makers
import pytest

from excir_dask.render.html.audit_page import page
from excir_dask.render.html.blocks import Facts, Grid, Panels, Points, Report, Verdict
from excir_dask.results.audit import AuditResult


@pytest.fixture(scope="module")
def failed() -> AuditResult:
    return makers.audited()


@pytest.fixture(scope="module")
def passed() -> AuditResult:
    return makers.audited(2, flipped=False)


def section(report: Report, key: str) -> list:
    return list(next(one for one in report.sections if one.key == key).blocks)


def of(blocks: list, kind: type) -> list:
    return [block for block in blocks if isinstance(block, kind)]


def test_the_verdict_comes_first_in_words_and_in_colour(failed, passed, tmp_path: Path) -> None:
    verdict, notes = page(failed).summary
    assert isinstance(verdict, Verdict)
    assert "row group" in notes.points[0][1]  # too few to tell whether rows are alike
    assert (verdict.word, verdict.tone) == ("✕ Failed.", "bad")
    assert "speed" in verdict.text
    text = failed.report(tmp_path / "r.html").read_text()
    assert text.index('<p class="verdict bad"><strong>✕ Failed.</strong>') < text.index("<section")
    verdict = page(passed).summary[0]
    assert (verdict.word, verdict.tone) == ("✔ Passed.", "good")
    assert "violations" not in [one.key for one in page(passed).sections]


def test_a_warning_is_neither_a_pass_nor_a_failure() -> None:
    result = makers.audited()
    for one in result.found["violations"]:
        one["severity"] = "warn"
    result.about["status"] = "warn"
    verdict = page(result).summary[0]
    assert (verdict.word, verdict.tone) == ("! Warning.", "warn")


def test_every_violation_has_its_values_and_both_runs(failed) -> None:
    blocks = section(page(failed), "violations")
    (grid,) = of(blocks, Grid)
    assert grid.head[2:] == ["baseline", "this run", "value", "limit", "uncertainty"]
    flip = next(row for row in grid.rows if row[:2] == ["✕ fail: speed of y", "sign_flip"])
    figures = dict(zip(grid.head, flip, strict=True))
    assert float(figures["baseline"]) > 0.7
    assert float(figures["this run"]) < 0.3
    assert 0 < float(figures["uncertainty"]) < 0.05
    runs = dict(of(blocks, Facts)[0].facts)
    assert (runs["This run"], runs["Baseline"]) == (failed.about["run"], failed.about["baseline"])
    assert of(blocks, Points)[0].points[0][0] == "✕ fail:"


def test_the_group_that_fades_slowly_is_shown_with_its_trend(failed) -> None:
    (panels,) = of(section(page(failed), "trend"), Panels)
    remarks = {name: remark for name, remark, _ in panels.panels}
    assert remarks["group cooling of y"].startswith("fades steadily")
    assert "since 2026-09-08" in remarks["feature speed of y"]


def test_all_charts_of_trends_span_the_same_range_of_scores(failed) -> None:
    (panels,) = of(section(page(failed), "trend"), Panels)
    ranges = [chart.item["doc"]["roots"][0]["attributes"]["y_range"]["attributes"] for _, _, chart in panels.panels]
    spans = {round(one["end"] - one["start"], 6) for one in ranges}
    assert len(ranges) > 2
    assert len(spans) == 1
    assert spans.pop() > 0.6  # that of speed, which flipped
    assert min(one["start"] for one in ranges) >= -0.051
    assert max(one["end"] for one in ranges) <= 1.051


def test_changes_have_a_chart_for_features_and_groups(failed) -> None:
    (_, choice) = section(page(failed), "changes")
    assert [name for name, _ in choice.panels] == ["y", "z"]
    labels = [block.label for _, blocks in choice.panels for block in blocks if hasattr(block, "label")]
    assert any("speed from 0." in label and "(failed)" in label for label in labels)
    assert any("cooling from 0." in label for label in labels)


def test_the_scores_provenance_and_limits_are_there_too(failed) -> None:
    keys = [one.key for one in page(failed).sections]
    assert keys == [
        "violations", "changes", "trend", "read", "ranking", "outputs", "spread", "groups", "features", "quality",
        "provenance", "terms", "audit-limits", "limits",
    ]  # fmt: skip
    (grid,) = of(section(page(failed), "terms"), Grid)
    assert ["score_shift", "change of CIR", "> 0.05", "> 0.15"] in grid.rows
    assert [f"score_shift: {makers.NASTY}", "the same, for these features only", "–", "–"] in grid.rows


def test_counts_are_written_in_full(passed) -> None:
    found = deepcopy(passed.found)
    (rows,) = [one for one in found["checks"] if one["constraint_check_type"] == "rows_min"]
    rows |= {"value": 29910.0, "threshold": 1_000_000.0}
    limits = {**passed.about["limits"], "rows_min": {"warn": None, "fail": 1_000_000.0}}
    report = page(replace(passed, found=found, about={**passed.about, "limits": limits}))
    (checks,) = of(section(report, "read"), Grid)
    assert ["29,910", "1,000,000"] in [list(row[-2:]) for row in checks.rows]
    (terms,) = of(section(report, "terms"), Grid)
    assert "< 1,000,000" in [row[-1] for row in terms.rows]


def test_without_a_baseline_there_is_nothing_to_compare() -> None:
    report = page(makers.audited(1))
    assert "without a baseline" in report.summary[0].text
    assert not {"changes", "trend", "violations"} & {one.key for one in report.sections}


def test_10_000_changed_features_take_less_than_2_mb(tmp_path: Path) -> None:
    result = makers.large_audit()
    assert len(result.found["violations"]) > 5000
    file = result.report(tmp_path / "r.html")
    assert file.stat().st_size < 2_000_000
    assert "The first 30 of" in file.read_text()
