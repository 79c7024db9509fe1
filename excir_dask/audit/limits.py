"""What an audit checks, and from which value on it warns or fails."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from excir_dask.errors import UsageError, nearest

SEVERITIES = ("warn", "fail")
"""from which on somebody is told, and from which on the audit fails"""


@dataclass(frozen=True)
class Limits:
    """Two thresholds of one check; None: this severity never happens."""

    warn: float | None = None
    fail: float | None = None

    def severity(self, value: float, least: bool) -> tuple[str, float | None]:
        """The severity of a value ("ok" for none) and the threshold that decided.

        >>> Limits(warn=0.9, fail=0.8).severity(0.85, least=True)
        ('warn', 0.9)
        """
        for name, limit in (("fail", self.fail), ("warn", self.warn)):
            if limit is not None and (value < limit if least else value > limit):
                return name, limit
        return "ok", self.fail if self.warn is None else self.warn


OFF = Limits()


@dataclass(frozen=True)
class Kind:
    """What is known of a check beforehand."""

    about: str
    default: Limits
    least: bool = False
    """the value must be at least the threshold; else at most"""
    event: bool = False
    """it happens or does not: the configuration names a severity in place of thresholds"""
    named: bool = True
    """it is about single features and groups, which may have limits of their own"""
    most: float = 1.0
    """largest threshold that makes sense"""


WARN, FAIL = Limits(warn=0.0), Limits(fail=0.0)

# fmt: off
CHECKS = {
    "ndcg_min": Kind("nDCG@k of the order, gain |2 CIR - 1|", Limits(0.9, 0.8), least=True, named=False),
    "jaccard_min": Kind("Jaccard of the two tops", Limits(0.5, 0.25), least=True, named=False),
    "kendall_min": Kind("Kendall's tau-b of what ranks follow", Limits(0.5, 0.2), least=True, named=False),
    "score_shift": Kind("change of CIR", Limits(0.05, 0.15)),
    "sign_flip": Kind("distance of both scores from 0.5, on opposite sides", Limits(fail=0.02), most=0.5),
    "entered_top": Kind("in the top k, was not", WARN, event=True),
    "left_top": Kind("was in the top k, is not", WARN, event=True),
    "became_constant": Kind("does not vary any more; 2: an output, or a feature of the baseline's top k",
                            Limits(warn=0.0, fail=1.0), event=True),
    "missing_rate": Kind("rise of the share of missing values", Limits(0.02, 0.1)),
    "rows_min": Kind("rows of the window", Limits(), least=True, named=False, most=float("inf")),
    "rows_ratio_min": Kind("rows over those of the baseline", Limits(0.5, 0.1), least=True, named=False),
    "rows_ratio_max": Kind("rows over those of the baseline", Limits(2.0, 10.0), named=False, most=float("inf")),
    "columns_new": Kind("an output, feature or group that the baseline lacks", WARN, event=True),
    "columns_gone": Kind("an output, feature or group that only the baseline has", FAIL, event=True),
    "settings": Kind("a setting or the model is not the baseline's", WARN, event=True, named=False),
}
# fmt: on


@dataclass(frozen=True)
class Check:
    """A check with its limits."""

    name: str
    limits: Limits
    features: Mapping[str, Limits] = field(default_factory=dict)
    """limits of features, by name or shell pattern; a name goes before patterns, and those in their order"""
    groups: Mapping[str, Limits] = field(default_factory=dict)

    @property
    def least(self) -> bool:
        return CHECKS[self.name].least

    @property
    def shown(self) -> float | None:
        """the threshold that is reported where nothing is beyond it"""
        return self.limits.fail if self.limits.warn is None else self.limits.warn

    def of(self, kind: str, name: str) -> Limits:
        """The limits for one feature or group; ``kind`` is "features" or "groups"."""
        own = self.groups if kind == "groups" else self.features
        if name in own:
            return own[name]
        return next((found for pattern, found in own.items() if fnmatch.fnmatchcase(name, pattern)), self.limits)


def default_checks() -> dict[str, Check]:
    return {name: Check(name, kind.default) for name, kind in CHECKS.items()}


def described(checks: Mapping[str, Check]) -> dict[str, Any]:
    """Limits as a manifest keeps them: with them it can be told later why a run passed.

    >>> described({"rows_min": Check("rows_min", Limits(fail=1000.0))})
    {'rows_min': {'warn': None, 'fail': 1000.0}}
    """
    found: dict[str, Any] = {}
    for name, check in checks.items():
        found[name] = _plain(check.limits)
        for kind, own in (("features", check.features), ("groups", check.groups)):
            if own:
                # a list, because of patterns the first one that fits counts
                found[name][kind] = [{"name": pattern, **_plain(limits)} for pattern, limits in own.items()]
    return found


def _plain(limits: Limits) -> dict[str, Any]:
    return {"warn": limits.warn, "fail": limits.fail}


def read_checks(given: Any) -> dict[str, Check]:
    """Checks from their part of a configuration, beginning from the defaults."""
    found = default_checks()
    if given is None:
        return found
    if not isinstance(given, dict):
        raise UsageError(f"checks is {given!r}; give a mapping such as  score_shift: {{warn: 0.05, fail: 0.15}}")
    for name, value in given.items():
        if name not in CHECKS:
            raise UsageError(f"there is no check '{name}'{nearest(str(name), CHECKS)} (checks: {', '.join(CHECKS)})")
        found[name] = _check(name, value, found[name])
    return found


def _check(name: str, value: Any, default: Check) -> Check:
    if not isinstance(value, dict):
        return replace(default, limits=_limits(f"checks.{name}", CHECKS[name], value))
    value = dict(value)
    parts: dict[str, Any] = {}
    for part in ("features", "groups"):
        own = value.pop(part, None)
        if own is None:
            continue
        if not CHECKS[name].named:
            raise UsageError(f"checks.{name} is about all {part} together; it has no {part} of its own")
        if not isinstance(own, dict):
            raise UsageError(f"checks.{name}.{part} is {own!r}; give a mapping from names or patterns to limits")
        parts[part] = {str(key): _limits(f"checks.{name}.{part}.{key}", CHECKS[name], one) for key, one in own.items()}
    if value:
        parts["limits"] = _limits(f"checks.{name}", CHECKS[name], value)
    return replace(default, **parts)


def _limits(where: str, kind: Kind, value: Any) -> Limits:
    """``off``, one number (fail), a severity for events, or a mapping of severities to numbers."""
    if value is None or value is False or value == "off":
        return OFF
    if kind.event:
        if value not in SEVERITIES:
            raise UsageError(f"{where} is {value!r}; this check happens or does not: say warn, fail or off")
        return WARN if value == "warn" else FAIL
    if isinstance(value, dict):
        for name in value:
            if name not in SEVERITIES:
                raise UsageError(f"{where} has '{name}'{nearest(str(name), SEVERITIES)}; give warn, fail or both")
        limits = Limits(*(_number(f"{where}.{name}", kind, value.get(name)) for name in SEVERITIES))
    else:
        limits = Limits(fail=_number(where, kind, value))
    both = limits.warn is not None and limits.fail is not None and limits.warn != limits.fail
    if both and (limits.warn < limits.fail) == kind.least:  # type: ignore[operator]
        raise UsageError(
            f"{where} warns at {limits.warn} and fails at {limits.fail}, so it would fail before it warns; "
            "exchange the two"
        )
    return limits


def _number(where: str, kind: Kind, value: Any) -> float | None:
    if value is None or value is False or value == "off":
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= kind.most:
        most = "" if kind.most == float("inf") else f" and at most {kind.most:g}"
        raise UsageError(f"{where} is {value!r}; it is a number ({kind.about}), at least 0{most}")
    return float(value)
