"""What checks find."""

from __future__ import annotations

from dataclasses import dataclass, field

EVERY = "*"
"""stands for a name where all features, groups or outputs are meant together"""

KINDS = ("features", "groups")


@dataclass(frozen=True)
class Finding:
    """Something that is beyond a threshold."""

    check: str
    output: str
    """"*" where all outputs are meant"""
    kind: str
    """features, groups, outputs, rows or settings"""
    name: str
    """of the feature, group, output or setting; "*" where all are meant together"""
    metric: str
    value: float | None
    threshold: float | None
    uncertainty: float | None
    """what noise alone gives: standard error of the difference of both runs, or the noise floor of an order"""
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
    """One check of one output and kind: what was found, and the worst value either way."""

    check: str
    output: str
    kind: str
    compared: int
    """names, or 1 where all are compared together"""
    value: float | None
    """the worst of them"""
    threshold: float | None
    findings: tuple[Finding, ...] = field(default=())

    @property
    def severity(self) -> str:
        found = {finding.severity for finding in self.findings}
        return "fail" if "fail" in found else "warn" if "warn" in found else "ok"
