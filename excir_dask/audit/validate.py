"""Checks a configuration without running it: files, columns, names, the store of results, hooks."""

from __future__ import annotations

import fnmatch
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from typing import Any

from excir_dask.audit.baseline import resolve
from excir_dask.audit.config import PREVIOUS, Config
from excir_dask.audit.store import Store, open_store
from excir_dask.audit.target import Target, check_window, resolve_target
from excir_dask.errors import ExcirError, LakeError, UsageError, nearest
from excir_dask.pipeline.inputs import resolve_inputs
from excir_dask.results.group_files import Groups


def validate(config: Config, day: date | None, keys: Mapping[str, str]) -> list[ExcirError]:
    """All problems with an audit of one window; only the footers of the lake are read."""
    problems: list[ExcirError] = []

    def collect(step: Callable[[], Any]) -> Any:
        try:
            return step()
        except ExcirError as error:
            problems.append(error)
        except OSError as error:
            problems.append(LakeError(f"{error}; check the path and its permissions"))
        return None

    target = collect(lambda: resolve_target(config, day, keys))
    if target is not None:
        found = collect(lambda: _inputs(config, target))
        if found is not None:
            problems += _overrides(config, *found)
    store = collect(lambda: _results(config))
    if store is not None and target is not None and config.baseline != PREVIOUS:
        collect(lambda: _baseline(config, store, target))
    collect(lambda: _cluster(config))
    collect(lambda: _hooks(config))
    return problems


def _inputs(config: Config, target: Target) -> tuple[list[str], Groups]:
    """Names of features and groups, if lake, output or model, and groups fit each other."""
    check_window(config, target)
    inputs = resolve_inputs(target.lake, replace(config.options, groups=config.groups))
    selection = inputs.plan.selection
    return [*selection.features, *selection.categoricals], inputs.groups.given


def _overrides(config: Config, features: list[str], groups: Groups) -> list[UsageError]:
    """Limits for features or groups that do not exist."""
    wrong = []
    for check in config.checks.values():
        for kind, own, names in (("features", check.features, features), ("groups", check.groups, list(groups))):
            for pattern in own:
                category = kind == "features" and pattern.partition("=")[0] in names
                if not category and not fnmatch.filter(names, pattern) and pattern not in names:
                    wrong.append(
                        UsageError(
                            f"checks.{check.name}.{kind} names '{pattern}', which is not among the {len(names)} {kind}"
                            f"{nearest(pattern, names)}"
                        )
                    )
    return wrong


def _results(config: Config) -> Store:
    store = open_store(config.results, config.results_options)
    store.check_writable()
    return store


def _baseline(config: Config, store: Store, target: Target) -> None:
    run = resolve(store, target.baseline, target.series, config.model_name, target.date)
    if run is not None:
        store.load(run)


def _cluster(config: Config) -> None:
    """Read the cluster file; no cluster is started."""
    if config.cluster is not None:
        from excir_dask.clusters.config import read_cluster_file

        read_cluster_file(config.cluster)


def _hooks(config: Config) -> None:
    command, webhook = config.hooks.command, config.hooks.webhook
    if command and shutil.which(command[0]) is None:
        raise UsageError(f"hooks.command is '{command[0]}', which is not a program on this machine; give its full path")
    if webhook and not os.path.expandvars(webhook).startswith(("http://", "https://")):
        raise UsageError(f"hooks.webhook is {webhook}, which is not set in this environment; set it to an address")
