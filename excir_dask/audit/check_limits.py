"""Limits of the checks: defaults, from a configuration, and for a manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from excir_dask.audit.checks import CHECKS, Check
from excir_dask.audit.limits import FAIL, OFF, SEVERITIES, WARN, CheckLimits, Limits
from excir_dask.errors import UsageError, nearest


def default_limits() -> dict[str, CheckLimits]:
    """The limits of every check where a configuration says nothing."""
    return {name: CheckLimits(name, check.default, check.least) for name, check in CHECKS.items()}


def read_limits(given: Any) -> dict[str, CheckLimits]:
    """Limits from the ``checks`` of a configuration; what it does not name has the defaults."""
    found = default_limits()
    if given is None:
        return found
    if not isinstance(given, dict):
        raise UsageError(f"checks is {given!r}; give a mapping such as  score_shift: {{warn: 0.05, fail: 0.15}}")
    for name, value in given.items():
        if name not in CHECKS:
            raise UsageError(f"there is no check '{name}'{nearest(str(name), CHECKS)} (checks: {', '.join(CHECKS)})")
        found[name] = _check_limits(CHECKS[name], value, found[name])
    return found


def to_manifest(limits: Mapping[str, CheckLimits]) -> dict[str, Any]:
    """Limits as plain values, which show later why a run passed.

    >>> to_manifest({"rows_min": CheckLimits("rows_min", Limits(fail=1000.0))})
    {'rows_min': {'warn': None, 'fail': 1000.0}}
    """
    found: dict[str, Any] = {}
    for name, check in limits.items():
        found[name] = _plain(check.limits)
        for kind, own in (("features", check.features), ("groups", check.groups)):
            if own:
                # a list, because the first pattern that fits counts
                found[name][kind] = [{"name": pattern, **_plain(one)} for pattern, one in own.items()]
    return found


def _plain(limits: Limits) -> dict[str, Any]:
    return {"warn": limits.warn, "fail": limits.fail}


def _check_limits(check: Check, value: Any, default: CheckLimits) -> CheckLimits:
    if not isinstance(value, dict):
        return replace(default, limits=_limits(f"checks.{check.name}", check, value))
    value = dict(value)
    parts: dict[str, Any] = {}
    for part in ("features", "groups"):
        own = value.pop(part, None)
        if own is None:
            continue
        if not check.named:
            raise UsageError(f"checks.{check.name} is about all {part} together; it has no {part} of its own")
        if not isinstance(own, dict):
            raise UsageError(f"checks.{check.name}.{part} is {own!r}; give a mapping from names or patterns to limits")
        parts[part] = {str(key): _limits(f"checks.{check.name}.{part}.{key}", check, one) for key, one in own.items()}
    if value:
        parts["limits"] = _limits(f"checks.{check.name}", check, value)
    return replace(default, **parts)


def _limits(where: str, check: Check, value: Any) -> Limits:
    """``off``, one number (fail), a severity for events, or a mapping of severities to numbers."""
    if value is None or value is False or value == "off":
        return OFF
    if check.event:
        if value not in SEVERITIES:
            raise UsageError(f"{where} is {value!r}; this check has no thresholds: give warn, fail or off")
        return WARN if value == "warn" else FAIL
    if isinstance(value, dict):
        for name in value:
            if name not in SEVERITIES:
                raise UsageError(f"{where} has '{name}'{nearest(str(name), SEVERITIES)}; give warn, fail or both")
        limits = Limits(*(_number(f"{where}.{name}", check, value.get(name)) for name in SEVERITIES))
    else:
        limits = Limits(fail=_number(where, check, value))
    both = limits.warn is not None and limits.fail is not None and limits.warn != limits.fail
    if both and (limits.warn < limits.fail) == check.least:  # type: ignore[operator]
        raise UsageError(
            f"{where} warns at {limits.warn} and fails at {limits.fail}, so it would fail before it warns; "
            "exchange the two"
        )
    return limits


def _number(where: str, check: Check, value: Any) -> float | None:
    if value is None or value is False or value == "off":
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= check.most:
        most = "" if check.most == float("inf") else f" and at most {check.most:g}"
        raise UsageError(f"{where} is {value!r}; it is a number ({check.compares}), at least 0{most}")
    return float(value)
