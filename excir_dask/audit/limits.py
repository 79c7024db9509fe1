"""Thresholds: the values from which on a check warns or fails, for all names or for single ones."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass, field

SEVERITIES = ("warn", "fail")
"""warn: it is reported; fail: the audit fails too"""


@dataclass(frozen=True)
class Limits:
    """Two thresholds; None: this severity never happens."""

    warn: float | None = None
    fail: float | None = None

    @property
    def first(self) -> float | None:
        """The threshold that is reached first."""
        return self.fail if self.warn is None else self.warn

    def severity(self, value: float, least: bool) -> tuple[str, float | None]:
        """The severity of a value ("ok" for none) and the threshold that decided.

        >>> Limits(warn=0.9, fail=0.8).severity(0.85, least=True)
        ('warn', 0.9)
        """
        for name, limit in (("fail", self.fail), ("warn", self.warn)):
            if limit is not None and (value < limit if least else value > limit):
                return name, limit
        return "ok", self.first


OFF = Limits()
WARN, FAIL = Limits(warn=0.0), Limits(fail=0.0)
"""of a check that happens (1) or does not (0)"""


@dataclass(frozen=True)
class CheckLimits:
    """The limits of one check."""

    name: str
    """of the check"""
    limits: Limits
    least: bool = False
    """values must be at least the threshold; else at most"""
    features: Mapping[str, Limits] = field(default_factory=dict)
    """limits of features, by name or shell pattern; a name wins over patterns, and of those the first that fits"""
    groups: Mapping[str, Limits] = field(default_factory=dict)

    def of(self, kind: str, name: str) -> Limits:
        """The limits of one feature or group; ``kind`` is "features" or "groups"."""
        own = self.groups if kind == "groups" else self.features
        if name in own:
            return own[name]
        return next((found for pattern, found in own.items() if fnmatch.fnmatchcase(name, pattern)), self.limits)

    def judge(self, value: float) -> tuple[str, float | None]:
        """Severity and threshold of a value of all names together."""
        return self.limits.severity(value, self.least)

    def judge_name(self, kind: str, name: str, value: float) -> tuple[str, float | None]:
        """Severity and threshold of the value of one name."""
        return self.of(kind, name).severity(value, self.least)
