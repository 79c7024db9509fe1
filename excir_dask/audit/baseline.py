"""Baselines: named runs that others are compared with. A name points at one run until it is set again."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

from excir_dask.audit import history
from excir_dask.audit.config import PREVIOUS
from excir_dask.audit.store import RUNS, Store
from excir_dask.audit.window import join_path
from excir_dask.errors import LakeError, UsageError, nearest

FOLDER = "baselines"


class NoBaselineError(UsageError):
    """The baseline has not been set yet."""


def set_baseline(store: Store, name: str, run: str) -> dict[str, Any]:
    """Point a name at a run; the record keeps the runs that it pointed at before."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name) or name == PREVIOUS:
        raise UsageError(f"'{name}' is not a valid baseline name; use letters, digits, '.', '_', '-', not '{PREVIOUS}'")
    old = _read(store, name)
    past = [] if old is None else [*old["past"], {"run": old["run"], "set": old["set"]}]
    now = datetime.now(UTC).isoformat("T", "seconds")
    record = {"name": name, "run": store.check_run(run), "set": now, "past": past}
    store.put((json.dumps(record, indent=1) + "\n").encode(), FOLDER, f"{name}.json")
    return record


def baselines(store: Store) -> list[dict[str, Any]]:
    """All baselines, by name."""
    names = [info.base_name.removesuffix(".json") for info in store.entries(FOLDER)]
    return [record for name in names if (record := _read(store, name)) is not None]


def resolve(store: Store, name: str | None, audit: str, model: str, date: str | None) -> str | None:
    """The run that a configured baseline stands for; None if there is nothing to compare with."""
    if name is None:
        return None
    if name == PREVIOUS:
        return history.previous(store, audit, model, date)
    record = _read(store, name)
    if record is None:
        known = [one["name"] for one in baselines(store)]
        raise NoBaselineError(
            f"{store.name} has no baseline '{name}'{nearest(name, known)}; "
            f"run once with --no-baseline, then: excir audit baseline set {name} {join_path(store.name, RUNS, 'RUN')}"
        )
    return store.check_run(record["run"])


def _read(store: Store, name: str) -> dict[str, Any] | None:
    data = store.get(FOLDER, f"{name}.json")
    if data is None:
        return None
    try:
        record = dict(json.loads(data))
        return {"name": name, "run": str(record["run"]), "set": str(record["set"]), "past": list(record["past"])}
    except (ValueError, TypeError, KeyError) as error:
        raise LakeError(
            f"{join_path(store.name, FOLDER, name + '.json')} is not a baseline ({type(error).__name__}: {error}); "
            f"delete it, and set '{name}' again"
        ) from None
