"""The configuration of an audit: a YAML file, checked as a whole before anything runs."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from excir_dask.audit.check_limits import read_limits
from excir_dask.audit.limits import CheckLimits
from excir_dask.audit.window import Window, fill
from excir_dask.common.textfile import brief, read_text_file
from excir_dask.errors import UsageError, nearest
from excir_dask.lake.store_errors import redact
from excir_dask.pipeline.options import OPTIONS, ExplainOptions, check_option

_SHAPE = "docs/AUDIT.md has an example to start from; quote values that start with {{"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

PREVIOUS = "previous"
"""as the name of a baseline: the previous run, by date"""

EVENTS = ("fail", "warn", "error", "ok")
KEYS = (
    "name", "lake", "window", "output", "model", "model_name", "groups", "fraction", "seed", "k", "false_alarm",
    "baseline", "require_baseline", "results", "results_options", "checks", "hooks", "explain", "scheduler", "cluster",
)  # fmt: skip

_NOT_ALLOWED = ("group_prefix", "group_correlated", "group_rows", "checkpoint", "progress", "out", "overwrite", "force")
"""options of explain that an audit sets itself, or that would make its runs incomparable"""


@dataclass(frozen=True)
class Hooks:
    """Who is notified of a run."""

    when: tuple[str, ...] = ("fail", "error")
    """some of fail, warn, error (the run could not finish) and ok"""
    command: tuple[str, ...] = ()
    """program and arguments; reads the JSON from standard input"""
    webhook: str = ""
    """address that the JSON is posted to; $NAME is an environment variable"""
    timeout: float = 30.0
    """seconds per hook"""


@dataclass(frozen=True)
class Config:
    """The configuration of an audit; paths are absolute."""

    name: str
    lake: str
    results: str
    window: Window | None = None
    options: ExplainOptions = field(default_factory=ExplainOptions)
    """of every run"""
    model_name: str = ""
    """partition of the history"""
    groups: str | None = None
    """a file, so that all runs have the same groups"""
    scheduler: str | None = None
    cluster: str | None = None
    """a file that says how to start or reach a cluster"""
    false_alarm: float = 0.001
    """probability that noise alone makes any name of a check exceed its error; small, because a baseline stays: at 0.01
    the unluckiest of 90 baselines failed 11% of the days without drift, at 0.001 only 2%"""
    baseline: str | None = None
    """its name, which may hold fields of the window"""
    require_baseline: bool = False
    """no baseline is an error"""
    checks: Mapping[str, CheckLimits] = field(default_factory=dict)
    hooks: Hooks = Hooks()
    results_options: Mapping[str, Any] | None = None
    """for the fsspec filesystem of the results"""


def read_config(path: str | os.PathLike[str]) -> Config:
    """Read and check a configuration; relative paths start at its own folder."""
    source = Path(path)
    content = read_text_file(source, "an audit", _SHAPE)
    if not isinstance(content, dict):
        raise UsageError(f"{source} is not a mapping; {_SHAPE}")
    try:
        return _parse(content, source.absolute())
    except UsageError as error:
        raise UsageError(f"{source}: {error}") from None


def with_options(config: Config, storage_options: Mapping[str, Any] | None, table_version: int | None) -> Config:
    """The configuration with options of the command line, which win over those of the file."""
    options = config.options
    if table_version is not None:
        options = replace(options, table_version=table_version)
    if storage_options is None:
        return replace(config, options=options)
    options = replace(options, storage_options={**(options.storage_options or {}), **storage_options})
    same_store = _scheme(config.lake) == _scheme(config.results)
    results = {**(config.results_options or {}), **storage_options} if same_store else config.results_options
    return replace(config, options=options, results_options=results)


def _scheme(place: str) -> str:
    return place.partition("://")[0] if "://" in place else ""


def _parse(given: dict[str, Any], source: Path) -> Config:
    _check_keys("", given, KEYS)
    base = source.parent
    for key in ("lake", "results"):
        if not isinstance(given.get(key), str) or not given[key]:
            raise UsageError(f"{key} is {brief(given.get(key))}; give a path or URL")
    if (given.get("output") is None) == (given.get("model") is None):
        raise UsageError("give one of output (columns of the lake) and model (a file)")
    model, groups, scheduler, cluster, window = (
        _text(given, key) for key in ("model", "groups", "scheduler", "cluster", "window")
    )
    if scheduler is not None and cluster is not None:
        raise UsageError(f"both scheduler ({redact(scheduler)}) and cluster ({cluster}) are given; give one")
    if groups == "correlation":
        raise UsageError("groups is 'correlation', which may find other groups in each run; save them to a file "
                         "(excir explain --group-correlated 0.9 --out DIR writes groups.yaml)")  # fmt: skip
    return Config(
        name=_name("name", given.get("name", source.stem)),
        lake=_absolute(given["lake"], base),
        results=_absolute(given["results"], base),
        window=None if window is None else Window(window.strip("/")),
        options=_options(given, None if model is None else _absolute(model, base)),
        model_name=_name("model_name", given.get("model_name") or given.get("name", source.stem)),
        groups=None if groups is None else _absolute(groups, base),
        scheduler=scheduler,
        cluster=None if cluster is None else _absolute(cluster, base),
        false_alarm=_number("false_alarm", given.get("false_alarm", 0.001), 1e-9, 0.5),
        baseline=_baseline(given, None if window is None else Window(window.strip("/"))),
        require_baseline=_required(given),
        checks=read_limits(given.get("checks")),
        hooks=_hooks(given.get("hooks"), base),
        results_options=_results_options(given),
    )


def _baseline(given: Mapping[str, Any], window: Window | None) -> str | None:
    """A name, which may hold fields of the window."""
    name = given.get("baseline")
    if name is None:
        return None
    fields = Window(name).fields if isinstance(name, str) else ()
    known = () if window is None else window.fields
    for field_ in fields:
        if field_ not in known:
            raise UsageError(f"baseline has the field '{field_}', which the window lacks{nearest(field_, known)}")
    _name("baseline", fill(name, dict.fromkeys(fields, "x")) if fields else name)
    return str(name)


def _required(given: Mapping[str, Any]) -> bool:
    value = given.get("require_baseline", False)
    if not isinstance(value, bool):
        raise UsageError(f"require_baseline is {brief(value)}; give true or false")
    if value and given.get("baseline") is None:
        raise UsageError("require_baseline is true, but no baseline is named; add  baseline: previous, or a name")
    return value


def _results_options(given: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Those given, or the lake's if both are on the same kind of filesystem."""
    options = given.get("results_options")
    if options is not None and not isinstance(options, dict):  # not repeated: it may hold a secret
        raise UsageError("results_options is not a mapping; give one such as {anon: true}")
    if options is None and _scheme(given["lake"]) == _scheme(given["results"]) != "":
        return (given.get("explain") or {}).get("storage_options")
    return options


def _options(given: Mapping[str, Any], model: str | None) -> ExplainOptions:
    """Options of explain: those that are settings of the audit, and those below ``explain``."""
    others = given.get("explain") or {}
    allowed = [name for name in OPTIONS if name not in KEYS and name not in _NOT_ALLOWED]
    if not isinstance(others, dict):
        raise UsageError(f"explain is not a mapping; give one of further options ({', '.join(allowed)})")
    _check_keys("explain.", others, allowed)
    for name, value in others.items():
        check_option(name, value, f"explain.{name}")
    own = {key: given[key] for key in ("output", "fraction", "seed", "k") if key in given}
    return ExplainOptions(**others, **own, model=model)


def _hooks(given: Any, base: Path) -> Hooks:
    if given is None:
        return Hooks()
    if not isinstance(given, dict):
        raise UsageError("hooks is not a mapping; give one with command or webhook")
    _check_keys("hooks.", given, ("when", "command", "webhook", "timeout"))
    when, command = given.get("when", list(Hooks.when)), given.get("command", [])
    when = [when] if isinstance(when, str) else when
    if not isinstance(when, list) or any(event not in EVENTS for event in when):
        raise UsageError(f"hooks.when is {brief(when)}; give some of {', '.join(EVENTS)}")
    if not isinstance(command, list) or not all(isinstance(word, str) for word in command):
        raise UsageError(f"hooks.command is {brief(command)}; give a list of words such as [notify, --channel, audits]")
    if command and os.sep in command[0]:
        command = [_absolute(command[0], base), *command[1:]]
    webhook = given.get("webhook") or ""
    if not isinstance(webhook, str) or not (webhook == "" or webhook.startswith(("http://", "https://", "$"))):
        raise UsageError("hooks.webhook is neither an http:// or https:// address nor an environment variable, $NAME")
    return Hooks(tuple(when), tuple(command), webhook, _number("hooks.timeout", given.get("timeout", 30), 0.01, 3600))


def _check_keys(where: str, given: Mapping[str, Any], allowed: Sequence[str]) -> None:
    for key in given:
        if key not in allowed:
            raise UsageError(
                f"there is no setting '{where}{key}'{nearest(str(key), allowed)} (settings: {', '.join(allowed)})"
            )


def _text(given: Mapping[str, Any], key: str) -> str | None:
    value = given.get(key)
    if value is not None and (not isinstance(value, str) or not value):
        raise UsageError(f"{key} is {brief(value)}; give a string that is not empty")
    return value


def _name(key: str, value: Any) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise UsageError(f"{key} is {brief(value)}; use letters, digits, '.', '_' and '-', because it names files")
    return value


def _number(key: str, value: Any, least: float, most: float, whole: bool = False) -> Any:
    wanted = int if whole else int | float
    if isinstance(value, bool) or not isinstance(value, wanted) or not least <= value <= most:
        raise UsageError(
            f"{key} is {brief(value)}; give a {'whole ' if whole else ''}number from {least:g} to {most:g}"
        )
    return value


def _absolute(name: str, base: Path) -> str:
    """The path from a folder, without ``..`` unless a link would make that another place."""
    if "://" in name:
        return name
    path = os.path.join(base, os.path.expanduser(name))
    plain = os.path.normpath(path)
    return plain if os.path.realpath(plain) == os.path.realpath(path) else path
