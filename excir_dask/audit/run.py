"""One audit, in order: window, lock, baseline, explanation, checks, results, history, hooks."""

from __future__ import annotations

import json
import logging
import re
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from excir_dask.audit import history
from excir_dask.audit import messages as words
from excir_dask.audit.baseline import resolve
from excir_dask.audit.check_limits import to_manifest
from excir_dask.audit.checks import run_checks
from excir_dask.audit.comparison import Comparison, all_pairs, members
from excir_dask.audit.config import Config
from excir_dask.audit.exports import JUNIT, junit, ordered, violations
from excir_dask.audit.findings import Checked
from excir_dask.audit.hooks import call_hooks
from excir_dask.audit.lock import LockedError, locked
from excir_dask.audit.score_errors import FEW_ROW_GROUPS
from excir_dask.audit.store import RUNS, Store, open_store
from excir_dask.audit.trends import RUNS as PAST
from excir_dask.audit.trends import trends
from excir_dask.audit.window import check_exists, fill, join_path, values
from excir_dask.errors import ExcirError, UsageError, exit_code_of
from excir_dask.explain import explain_with
from excir_dask.results.audit import AuditResult
from excir_dask.results.explanation import Explanation
from excir_dask.results.group_files import Groups, read_groups

if TYPE_CHECKING:
    import pandas as pd
    from distributed import Client

_log = logging.getLogger("excir_dask")


@dataclass(frozen=True)
class AuditRun:
    """What became of one window."""

    about: dict[str, Any]
    """``run audit model window date baseline status finished rows checks notes folder``"""
    violations: list[dict[str, Any]]
    """as in violations.json"""
    hooks: list[dict[str, Any]]
    """``hook ok seconds detail`` of each that was called"""

    @property
    def status(self) -> str:
        return str(self.about["status"])

    def to_dict(self) -> dict[str, Any]:
        return {**self.about, "violations": self.violations, "hooks": self.hooks}


@dataclass(frozen=True)
class Target:
    """What one run reads, and under which names it is kept."""

    lake: str
    window: str | None
    date: str | None
    series: str
    """the audit's name with the keys that were given: runs of one series are compared with each other"""
    baseline: str | None = None
    """its name, with the window's keys filled in"""


def target_of(config: Config, day: date | None, keys: Mapping[str, str]) -> Target:
    """Fill in the window of a configuration."""
    if config.window is None:
        return Target(config.lake, None, None if day is None else day.isoformat(), config.name, config.baseline)
    window = config.window.fill(day, keys)
    series = ",".join([config.name, *(f"{name}={keys[name]}" for name in sorted(keys))])
    lake = join_path(config.lake, window)
    baseline = None if config.baseline is None else _slug(fill(config.baseline, values(day, keys)))
    return Target(lake, window, day.isoformat() if day and config.window.dated else None, _slug(series), baseline)


def audit(
    config: Config,
    day: date | None = None,
    keys: Mapping[str, str] | None = None,
    *,
    baseline: bool = True,
    scheduler: str | Client | None = None,
    cluster: str | None = None,
    progress: bool | None = None,
) -> AuditRun:
    """Audit one window of a lake.

    Parameters
    ----------
    config : Config
        From :func:`~excir_dask.audit.config.read_config`.
    day : date, optional
        For the window's template.
    keys : mapping, optional
        Other fields of the template.
    baseline : bool
        Compare with the configured baseline.
    scheduler, cluster : str, optional
        Where it runs, in place of what is configured.
    progress : bool, optional
        As :func:`~excir_dask.explain` has it.
    """
    target = target_of(config, day, keys or {})
    store = open_store(config.results, config.results_options)
    if scheduler is None and cluster is None:
        scheduler, cluster = config.scheduler, config.cluster
    try:
        store.check_writable()
        with locked(store, target.series):
            store.remove_leftovers()
            history.repair(store, config.model_name, target.series)
            against = _against(config, store, target) if baseline else None
            where = {"scheduler": scheduler, "cluster": cluster, "progress": progress}
            run, checked = _made(config, target, store, against, where)
    except LockedError:  # the other run will tell
        raise
    except Exception as error:
        failed = {"audit": target.series, "window": target.window, "date": target.date, "status": "error"}
        name = _run_name(target, datetime.now(UTC))
        _tell(config, store, f"{name}-error", {**failed, "error": told(error), "exit_code": exit_code_of(error)})
        raise
    found = violations(run, checked)["violations"]
    hooks = _tell(config, store, run["run"], {**run, "violations": found})
    return AuditRun(run, found, hooks)


def _against(config: Config, store: Store, target: Target) -> str | None:
    """The run that is compared with."""
    found = resolve(store, target.baseline, target.series, config.model_name, target.date)
    if found is None and config.require_baseline:
        raise UsageError(
            f"require_baseline is true, but {store.name} has no run of {target.series} (model_name {config.model_name})"
            f"{f' before {target.date}' if target.date else ''}; make one with --no-baseline"
        )
    return found


def told(error: Exception) -> str:
    """An error as hooks and the JSON have it: with its type where nobody foresaw it."""
    return str(error) if isinstance(error, ExcirError | OSError) else f"{type(error).__name__}: {error}"


def _made(
    config: Config, target: Target, store: Store, against: str | None, where: Mapping[str, Any]
) -> tuple[dict[str, Any], list[Checked]]:
    was = None if against is None else store.load(against)
    check_window(config, target)
    given = {} if config.groups is None else read_groups(config.groups)
    now = explain_with(target.lake, replace(config.options, **where))
    now, lacking = grouped(now, given)
    past = history.recent(store, config.model_name, target.series, target.date, PAST)
    run, result, checked = judge(config, target, now, was, against, past, words.without_members(lacking))
    with tempfile.TemporaryDirectory(prefix="excir-audit-") as made:
        folder = Path(made, "run")
        result.save(folder, {JUNIT: junit(result.about, checked)})
        store.add_run(folder, run["run"])
    history.append(store, run, now)
    return {**run, "folder": join_path(store.name, RUNS, run["run"])}, checked


def judge(
    config: Config,
    target: Target,
    now: Explanation,
    was: Explanation | None,
    against: str | None,
    past: pd.DataFrame | None,
    more_notes: Sequence[str] = (),
) -> tuple[dict[str, Any], AuditResult, list[Checked]]:
    """What is to be said of a window, when it is explained: nothing is read or written here.

    ``against`` is the name of the run ``was``, ``past`` are rows of the history.
    """
    pairs = all_pairs(now, was, config.false_alarm)
    comparison = Comparison(now, was, pairs, config.options.k, config.false_alarm, target.series)
    checked = run_checks(comparison, config.checks)
    run = {**_about(config, target, against, now, checked), "notes": [*more_notes, *notes(now, was)]}
    result = AuditResult(
        explanation=now,
        about={**run, **_terms(config, was)},
        found=violations(run, checked),
        changes=pairs,
        trend=trends(past, run, now, [one.of for one in ordered(checked)], config.false_alarm),
    )
    return run, result, checked


def grouped(now: Explanation, given: Groups) -> tuple[Explanation, Groups]:
    """The explanation with groups, and members that it has not: a column that is gone is no reason to stop.

    A group without any member is left out.
    """
    known = set(now.features["feature"])
    lacking = {name: [one for one in inside if one not in known] for name, inside in given.items()}
    there = {name: [one for one in inside if one in known] for name, inside in given.items()}
    natural = {name: inside for name, inside in members(now).items() if name not in given}
    found = now.regroup({**{name: inside for name, inside in there.items() if inside}, **natural})
    return found, {name: names for name, names in lacking.items() if names}


def notes(now: Explanation, was: Explanation | None) -> list[str]:
    """What a reader of the result must know, whatever was found."""
    runs = {"the window": now} if was is None else {"the window": now, "the baseline": was}
    counts = {name: run.facts.rows.row_groups for name, run in runs.items()}
    few = {name: count for name, count in counts.items() if count < FEW_ROW_GROUPS}
    return [*now.provenance.lake.remarks, *([words.few_row_groups(few)] if few else [])]


def check_window(config: Config, target: Target) -> None:
    """Refuse a window that the lake has not; that the lake cannot be reached is for its reader to say."""
    if target.window is not None:
        with suppress(OSError):
            check_exists(config.lake, target.window, config.options.storage_options)


def _terms(config: Config, was: Explanation | None) -> dict[str, Any]:
    """By what a run was judged, for its manifest."""
    return {
        "k": config.options.k,
        "false_alarm": config.false_alarm,
        "limits": to_manifest(config.checks),
        "baseline_window": None if was is None else (was.provenance.audit or {}).get("window"),
    }


def _about(
    config: Config, target: Target, against: str | None, now: Explanation, checked: list[Checked]
) -> dict[str, Any]:
    severities = {one.severity for one in checked}
    finished = datetime.now(UTC)
    return {
        "run": _run_name(target, finished),
        "audit": target.series,
        "model": config.model_name,
        "window": target.window,
        "date": target.date,
        "baseline": against,
        "status": "fail" if "fail" in severities else "warn" if "warn" in severities else "ok",
        "finished": finished.isoformat("T", "milliseconds"),
        "rows": now.facts.rows.lake,
        "checks": len(checked),
    }


def _run_name(target: Target, finished: datetime) -> str:
    parts = [target.series, target.date, f"{finished:%Y%m%dT%H%M%SZ}", uuid.uuid4().hex[:6]]
    return "-".join(part for part in parts if part)


def _tell(config: Config, store: Store, name: str, payload: dict[str, Any]) -> list[dict[str, Any]]:
    """Call the hooks, and keep what became of them under a name: a run's folder is not changed any more."""
    called = call_hooks(config.hooks, payload)
    for one in called:
        if not one["ok"]:
            _log.warning("the %s hook failed: %s", one["hook"], one["detail"])
    if called:
        try:
            store.put((json.dumps(called, indent=1) + "\n").encode(), "hooks", f"{name}.json")
        except (ExcirError, OSError) as error:
            _log.warning("what became of the hooks could not be kept: %s", error)
    return called


def _slug(text: str) -> str:
    """A name that any filesystem takes.

    >>> _slug("credit,region=eu west")
    'credit,region=eu_west'
    """
    return re.sub(r"[^A-Za-z0-9.,=_-]+", "_", text)
