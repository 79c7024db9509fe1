"""The verdict on a window that was explained. Nothing is read or written here."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from excir_dask.audit import messages
from excir_dask.audit.check_limits import to_manifest
from excir_dask.audit.checks import run_checks
from excir_dask.audit.comparison import Comparison, all_pairs, members
from excir_dask.audit.config import Config
from excir_dask.audit.exports import ordered, violations
from excir_dask.audit.findings import Checked
from excir_dask.audit.score_errors import FEW_ROW_GROUPS
from excir_dask.audit.target import Target
from excir_dask.audit.trends import trends
from excir_dask.results.audit import AuditResult
from excir_dask.results.explanation import Explanation
from excir_dask.results.group_files import Groups

if TYPE_CHECKING:
    import pandas as pd


def judge(
    config: Config,
    target: Target,
    now: Explanation,
    was: Explanation | None,
    baseline: str | None,
    past: pd.DataFrame | None,
    more_notes: Sequence[str] = (),
) -> tuple[dict[str, Any], AuditResult, list[Checked]]:
    """Compare a window with its baseline and run all checks.

    ``baseline`` is the name of the run ``was``, ``past`` are rows of the history.
    """
    pairs = all_pairs(now, was, config.false_alarm)
    comparison = Comparison(now, was, pairs, config.options.k, config.false_alarm, target.series)
    checked = run_checks(comparison, config.checks)
    run = {**_about(config, target, baseline, now, checked), "notes": [*more_notes, *notes(now, was)]}
    result = AuditResult(
        explanation=now,
        about={**run, **_terms(config, was)},
        found=violations(run, checked),
        changes=pairs,
        trend=trends(past, run, now, [one.of for one in ordered(checked)], config.false_alarm),
    )
    return run, result, checked


def with_groups(now: Explanation, groups: Groups) -> tuple[Explanation, Groups]:
    """The explanation with groups, and their missing members: a column that is gone is no reason to stop.

    A group that has no members left is omitted.
    """
    known = set(now.features["feature"])
    present = {name: [one for one in inside if one in known] for name, inside in groups.items()}
    missing = {name: [one for one in inside if one not in known] for name, inside in groups.items()}
    natural = {name: inside for name, inside in members(now).items() if name not in groups}
    found = now.regroup({**{name: inside for name, inside in present.items() if inside}, **natural})
    return found, {name: names for name, names in missing.items() if names}


def notes(now: Explanation, was: Explanation | None) -> list[str]:
    """What a reader must know, whatever the verdict."""
    runs = {"the window": now} if was is None else {"the window": now, "the baseline": was}
    counts = {name: run.facts.rows.row_groups for name, run in runs.items()}
    few = {name: count for name, count in counts.items() if count < FEW_ROW_GROUPS}
    return [*now.provenance.lake.remarks, *([messages.few_row_groups(few)] if few else [])]


def _about(
    config: Config, target: Target, baseline: str | None, now: Explanation, checked: list[Checked]
) -> dict[str, Any]:
    severities = {one.severity for one in checked}
    finished = datetime.now(UTC)
    return {
        "run": target.run_name(finished),
        "audit": target.series,
        "model": config.model_name,
        "window": target.window,
        "date": target.date,
        "baseline": baseline,
        "status": "fail" if "fail" in severities else "warn" if "warn" in severities else "ok",
        "finished": finished.isoformat("T", "milliseconds"),
        "rows": now.facts.rows.lake,
        "checks": len(checked),
    }


def _terms(config: Config, was: Explanation | None) -> dict[str, Any]:
    """The limits of a run, for its manifest."""
    return {
        "k": config.options.k,
        "false_alarm": config.false_alarm,
        "limits": to_manifest(config.checks),
        "baseline_window": None if was is None else (was.provenance.audit or {}).get("window"),
    }
