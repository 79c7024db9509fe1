"""Everything about a configuration that can be checked without running it: files, columns, names, places, hooks."""

from __future__ import annotations

import fnmatch
import os
import shutil
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

from excir_dask.audit.baseline import resolve
from excir_dask.audit.config import PREVIOUS, Config
from excir_dask.audit.run import Target, target_of
from excir_dask.audit.store import Store, open_store
from excir_dask.errors import ExcirError, LakeError, UsageError, nearest
from excir_dask.grouping import Groups


def validate(config: Config, day: date | None, keys: Mapping[str, str]) -> list[ExcirError]:
    """All problems of an audit of one window; the lake's footers are read, its rows are not."""
    problems: list[ExcirError] = []

    def attempt(step: Callable[[], Any]) -> Any:
        try:
            return step()
        except ExcirError as error:
            problems.append(error)
        except OSError as error:
            problems.append(LakeError(f"{error}; check the path and who may use it"))
        return None

    target = attempt(lambda: target_of(config, day, keys))
    if target is not None:
        found = attempt(lambda: _inputs(config, target))
        if found is not None:
            problems += _overrides(config, *found)
    store = attempt(lambda: _results(config))
    if store is not None and target is not None and config.baseline != PREVIOUS:
        attempt(lambda: _baseline(config, store, target))
    attempt(lambda: _settings(config))
    attempt(lambda: _hooks(config))
    return problems


def _inputs(config: Config, target: Target) -> tuple[list[str], Groups]:
    """Names of features and groups, when lake, output or model and groups fit each other."""
    from excir_dask.group_choice import understand_groups
    from excir_dask.inputs import parse_bytes, prepare, understand_outputs
    from excir_dask.lake.plan import DEFAULT_BUDGET
    from excir_dask.lake.sample import Sample

    given = config.arguments
    outputs = understand_outputs(
        config.output, config.model, given.get("predict_type", "margin"), given.get("model_columns"),
        given.get("allow_pickle", False),
    )  # fmt: skip
    fraction = 1.0 if given["fraction"] == "auto" else given["fraction"]
    inputs = prepare(
        target.lake, outputs,
        features=given.get("features"), weights=given.get("weights"),
        indicators=given.get("categoricals") == "indicators",
        sample=Sample(fraction, given["seed"], given.get("sampling") or "rows"),
        budget=parse_bytes(given.get("budget", DEFAULT_BUDGET)), storage_options=given.get("storage_options"),
    )  # fmt: skip
    selection = inputs.plan.selection
    wanted = understand_groups(config.groups, None, None, 5000, selection)
    return [*selection.features, *selection.categoricals], wanted.given


def _overrides(config: Config, features: list[str], groups: Groups) -> list[UsageError]:
    """Limits of features or groups that do not exist would never be used."""
    wrong = []
    for check in config.checks.values():
        for kind, own, names in (("features", check.features, features), ("groups", check.groups, list(groups))):
            for pattern in own:
                category = kind == "features" and pattern.partition("=")[0] in names
                if not category and not fnmatch.filter(names, pattern) and pattern not in names:
                    wrong.append(
                        UsageError(
                            f"checks.{check.name}.{kind} names '{pattern}', which is none of the {len(names)} {kind}"
                            f"{nearest(pattern, names)}"
                        )
                    )
    return wrong


def _results(config: Config) -> Store:
    store = open_store(config.results, config.results_options)
    if store.local:
        root = Path(store.root)
        parent = next(path for path in [root, *root.parents] if path.exists())
        if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
            raise UsageError(f"results cannot be kept in {root}, because {parent} is not a folder to write to")
    else:
        store.inside("runs")
    return store


def _baseline(config: Config, store: Store, target: Target) -> None:
    run = resolve(store, config.baseline, target.series, config.model_name, target.date)
    if run is not None:
        store.load(run)


def _settings(config: Config) -> None:
    from excir_dask.explain import CATEGORICALS
    from excir_dask.kernels.centers import LEVELS
    from excir_dask.tables import RANK_BY

    for name, choices in (("centering", LEVELS), ("rank_by", RANK_BY), ("categoricals", CATEGORICALS)):
        value = config.arguments.get(name)
        if value is not None and value not in choices:
            raise UsageError(f"explain.{name} is {value!r} (one of {', '.join(choices)})")


def _hooks(config: Config) -> None:
    command, webhook = config.hooks.command, config.hooks.webhook
    if command and shutil.which(command[0]) is None:
        raise UsageError(f"hooks.command is '{command[0]}', which is no program of this machine; give its whole path")
    if webhook and not os.path.expandvars(webhook).startswith(("http://", "https://")):
        raise UsageError(f"hooks.webhook is {webhook}, which is not set in this environment; export it as an address")
