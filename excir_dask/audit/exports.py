"""Findings as files for other programs: violations.json and JUnit XML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from excir_dask.audit.findings import Checked, Finding

VERSION = 1
"""of violations.json"""
JUNIT = "junit.xml"


def violations(run: Mapping[str, Any], checked: Sequence[Checked]) -> dict[str, Any]:
    """The content of violations.json; docs/FIELDS.md describes every field."""
    return {
        "version": VERSION,
        "audit": run["audit"],
        "run": run["run"],
        "baseline": run["baseline"],
        "status": run["status"],
        "checks": [
            {
                "constraint_check_type": one.check,
                "output": one.output,
                "kind": one.kind,
                "compared": one.compared,
                "value": one.value,
                "threshold": one.threshold,
                "severity": one.severity,
            }
            for one in checked
        ],
        "violations": [_violation(finding, run) for finding in ordered(checked)],
    }


def ordered(checked: Sequence[Checked]) -> list[Finding]:
    """All findings, failures first."""
    found = [finding for one in checked for finding in one.findings]
    return sorted(found, key=lambda finding: finding.severity != "fail")


def _violation(finding: Finding, run: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "feature_name": finding.name,
        "constraint_check_type": finding.check,
        "description": finding.description,
        "metric": finding.metric,
        "value": finding.value,
        "threshold": finding.threshold,
        "severity": finding.severity,
        "baseline": run["baseline"],
        "run": run["run"],
        "output": finding.output,
        "kind": finding.kind,
        "uncertainty": finding.uncertainty,
        "baseline_value": finding.was,
        "run_value": finding.now,
    }


def junit(run: Mapping[str, Any], checked: Sequence[Checked]) -> bytes:
    """A test case per check, output and kind; a warning is the output of a case that passes."""
    failed = sum(one.severity == "fail" for one in checked)
    attributes = {"name": str(run["audit"]), "tests": str(len(checked)), "failures": str(failed), "errors": "0"}
    suite = ElementTree.Element("testsuite", {**attributes, "timestamp": str(run["finished"])})
    for one in checked:
        name = f"{one.check} {one.kind}" + ("" if one.output == "*" else f" of {one.output}")
        case = ElementTree.SubElement(suite, "testcase", {"classname": str(run["audit"]), "name": _plain(name)})
        for severity in ("fail", "warn"):
            texts = [_plain(finding.description) for finding in one.findings if finding.severity == severity]
            if texts and severity == "fail":
                failure = ElementTree.SubElement(case, "failure", {"message": texts[0], "type": one.check})
                failure.text = "\n".join(texts)
            elif texts:
                ElementTree.SubElement(case, "system-out").text = "\n".join(texts)
    return bytes(ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True))


def _plain(text: str) -> str:
    """The text without characters that XML cannot hold: column names may hold anything."""
    return "".join(mark if mark.isprintable() or mark in "\n\t" else "�" for mark in text)
