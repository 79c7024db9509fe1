"""One audit, in order: window, lock, baseline, explanation, checks, results, history, hooks."""

from __future__ import annotations

import json
import logging
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from excir_dask.audit import history, messages
from excir_dask.audit.baseline import resolve
from excir_dask.audit.config import Config
from excir_dask.audit.exports import JUNIT, junit, violations
from excir_dask.audit.findings import Checked
from excir_dask.audit.hooks import call_hooks
from excir_dask.audit.lock import LockedError, locked
from excir_dask.audit.store import RUNS, Store, open_store
from excir_dask.audit.target import Target, check_window, resolve_target
from excir_dask.audit.trends import PAST_RUNS
from excir_dask.audit.verdict import judge, with_groups
from excir_dask.audit.window import join_path
from excir_dask.errors import ExcirError, UsageError, exit_code_of
from excir_dask.explain import explain_with
from excir_dask.results.group_files import read_groups

if TYPE_CHECKING:
    from distributed import Client

_log = logging.getLogger("excir_dask")


@dataclass(frozen=True)
class AuditRun:
    """The result of one window."""

    about: dict[str, Any]
    """``run audit model window date baseline status finished rows checks notes folder``"""
    violations: list[dict[str, Any]]
    """as in violations.json"""
    hooks: list[dict[str, Any]]
    """``hook ok seconds detail`` of each hook that was called"""

    @property
    def status(self) -> str:
        return str(self.about["status"])

    def to_dict(self) -> dict[str, Any]:
        return {**self.about, "violations": self.violations, "hooks": self.hooks}


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
        Fills in the date of the window.
    keys : mapping, optional
        Fill in other fields of the window.
    baseline : bool
        Compare with the configured baseline.
    scheduler, cluster : str, optional
        Where it runs, instead of where the configuration says.
    progress : bool, optional
        As in :func:`~excir_dask.explain`.
    """
    target = resolve_target(config, day, keys or {})
    store = open_store(config.results, config.results_options)
    if scheduler is None and cluster is None:
        scheduler, cluster = config.scheduler, config.cluster
    try:
        store.check_writable()
        with locked(store, target.series):
            store.remove_leftovers()
            history.repair(store, config.model_name, target.series)
            compared = _baseline_run(config, store, target) if baseline else None
            where = {"scheduler": scheduler, "cluster": cluster, "progress": progress}
            run, checked = _run_window(config, target, store, compared, where)
    except LockedError:  # the other run calls the hooks
        raise
    except Exception as error:
        failed: dict[str, Any] = {
            "audit": target.series,
            "window": target.window,
            "date": target.date,
            "status": "error",
        }
        failed |= {"error": error_text(error), "exit_code": exit_code_of(error)}
        _notify(config, store, f"{target.run_name(datetime.now(UTC))}-error", failed)
        raise
    found = violations(run, checked)["violations"]
    hooks = _notify(config, store, run["run"], {**run, "violations": found})
    return AuditRun(run, found, hooks)


def _baseline_run(config: Config, store: Store, target: Target) -> str | None:
    """The run to compare with."""
    found = resolve(store, target.baseline, target.series, config.model_name, target.date)
    if found is None and config.require_baseline:
        raise UsageError(
            f"require_baseline is true, but {store.name} has no run of {target.series} (model_name {config.model_name})"
            f"{f' before {target.date}' if target.date else ''}; run once with --no-baseline"
        )
    return found


def error_text(error: Exception) -> str:
    """An error for hooks and the JSON, with its type if it is unexpected."""
    return str(error) if isinstance(error, ExcirError | OSError) else f"{type(error).__name__}: {error}"


def _run_window(
    config: Config, target: Target, store: Store, baseline: str | None, where: Mapping[str, Any]
) -> tuple[dict[str, Any], list[Checked]]:
    """Explain, judge and save one window."""
    was = None if baseline is None else store.load(baseline)
    check_window(config, target)
    groups = {} if config.groups is None else read_groups(config.groups)
    now = explain_with(target.lake, replace(config.options, **where))
    now, missing = with_groups(now, groups)
    past = history.recent(store, config.model_name, target.series, target.date, PAST_RUNS)
    run, result, checked = judge(config, target, now, was, baseline, past, messages.missing_members(missing))
    with tempfile.TemporaryDirectory(prefix="excir-audit-") as made:
        folder = Path(made, "run")
        result.save(folder, {JUNIT: junit(result.about, checked)})
        store.add_run(folder, run["run"])
    history.append(store, run, now)
    return {**run, "folder": join_path(store.name, RUNS, run["run"])}, checked


def _notify(config: Config, store: Store, name: str, payload: dict[str, Any]) -> list[dict[str, Any]]:
    """Call the hooks, and save their outcome beside the runs, whose folders never change."""
    called = call_hooks(config.hooks, payload)
    for one in called:
        if not one["ok"]:
            _log.warning("the %s hook failed: %s", one["hook"], one["detail"])
    if called:
        try:
            store.put((json.dumps(called, indent=1) + "\n").encode(), "hooks", f"{name}.json")
        except (ExcirError, OSError) as error:
            _log.warning("the outcome of the hooks could not be saved: %s", error)
    return called
