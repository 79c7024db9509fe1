"""Results of checks."""

from __future__ import annotations

from dataclasses import dataclass, field

EVERY = "*"
"""in place of a name: all features, groups or outputs together"""

KINDS = ("features", "groups")


@dataclass(frozen=True)
class Finding:
    """Something that is beyond a threshold."""

    check: str
    output: str
    """"*" for all outputs together"""
    kind: str
    """features, groups, outputs, rows or settings"""
    name: str
    """of the feature, group, output or setting; "*" for all together"""
    metric: str
    value: float | None
    threshold: float | None
    uncertainty: float | None
    """standard error of the difference of both runs; for an order, the agreement that noise alone leaves"""
    severity: str
    """warn or fail"""
    was: float | None
    """in the baseline"""
    now: float | None
    """in this run"""
    description: str

    @property
    def of(self) -> tuple[str, str, str]:
        """Output, kind and name."""
        return self.output, self.kind, self.name


@dataclass(frozen=True)
class Checked:
    """One check of one output and kind: its worst value, and everything beyond its limits."""

    check: str
    output: str
    kind: str
    compared: int
    """number of names; 1 if all are compared together"""
    value: float | None
    """the worst of them"""
    threshold: float | None
    findings: tuple[Finding, ...] = field(default=())

    @property
    def severity(self) -> str:
        found = {finding.severity for finding in self.findings}
        return "fail" if "fail" in found else "warn" if "warn" in found else "ok"
