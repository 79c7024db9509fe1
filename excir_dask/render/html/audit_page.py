"""The report of an audit: the verdict, what changed, trends, checks of the data, and the explanation itself."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from excir_dask.audit.checks import CHECKS
from excir_dask.audit.history import days_of
from excir_dask.render.html import audit_content as content
from excir_dask.render.html import explanation_page
from excir_dask.render.html.blocks import (
    Block,
    Choice,
    Facts,
    Grid,
    Legend,
    Panels,
    Paragraphs,
    Points,
    Report,
    Section,
)
from excir_dask.render.html.page import require, write

if TYPE_CHECKING:
    from excir_dask.results.audit import AuditResult

SAID = 5
"""violations that are also described in words"""
SHOWN = 30
"""most violations on the page; violations.json has all of them"""
MOVED = 15
"""most names in a chart of changes"""
OUTPUTS = 12
"""most outputs with such a chart"""
SIGNS = (
    ("was", "baseline"),
    ("now", "this run, within limits"),
    ("warned", "this run, warned (!)"),
    ("failed", "this run, failed (✕)"),
    ("whisker", "95% intervals of both"),
)


def save(result: AuditResult, path: str | os.PathLike[str]) -> Path:
    """Write the report to a file."""
    require()
    return write(page(result), path)


def page(result: AuditResult) -> Report:
    """The report as sections."""
    from excir_dask.render.html.audit_charts import AUDIT_DARK

    scores = {section.key: section for section in explanation_page.sections(result.explanation)}
    ends = {key: scores.pop(key) for key in ("read", "quality", "limits", "provenance")}
    sections = [_violations(result), _changes(result), _trend(result), _data_checks(result, ends["read"])]
    sections += [*scores.values(), ends["quality"], *_end(result, ends)]
    notes = result.about["notes"]
    return Report(
        kicker="ExCIR audit report",
        title=content.title(result),
        summary=[content.verdict(result), *([Points([("Note:", f"{note}.") for note in notes])] if notes else [])],
        cards=content.cards(result),
        sections=[section for section in sections if section is not None],
        footer="This page holds scores and counts, and no rows of the lake. It needs no network and sends nothing.",
        dark=AUDIT_DARK,
    )


def _violations(result: AuditResult) -> Section | None:
    found = result.found["violations"]
    about = result.about
    if not found:
        return None
    several = result.explanation.outputs["output"].nunique() > 1
    rows = [
        [
            f"{content.SEVERITY[one['severity']]}: {_what(one, several)}",
            one["constraint_check_type"],
            _figure(one["baseline_value"], one),
            _figure(one["run_value"], one),
            _figure(one["value"], one),
            _figure(one["threshold"], one),
            _figure(one["uncertainty"], one),
        ]
        for one in found[:SHOWN]
    ]
    head = ["what", "check", "baseline", "this run", "value", "limit", "uncertainty"]
    said = [(f"{content.SEVERITY[one['severity']]}:", f"{one['description']}.") for one in found[:SAID]]
    blocks: list[Block] = [Points(said), Grid(head, rows, text_columns=2)]
    if len(found) > SHOWN:
        blocks.append(Paragraphs([f"The first {SHOWN} of {len(found):,}; violations.json has all of them."]))
    blocks.append(
        Facts(
            [
                ("This run", str(about["run"])),
                ("Baseline", str(about["baseline"]) if about["baseline"] else "none"),
                ("Uncertainty", _UNCERTAINTY),
            ]
        )
    )
    return Section("violations", "Beyond the limits", blocks, "Failures first.")


def _what(violation: Mapping[str, Any], several: bool) -> str:
    name = violation["feature_name"] if violation["feature_name"] != "*" else f"all {violation['kind']}"
    return f"{name} of {violation['output']}" if several and violation["output"] != "*" else str(name)


def _figure(value: float | None, of: Mapping[str, Any]) -> str:
    if value is None:
        return "–"
    if abs(value) >= 10 or of["metric"] == "rows":
        return f"{value:,.0f}"
    return f"{value:.3f}"


def _changes(result: AuditResult) -> Section | None:
    from excir_dask.render.html.audit_charts import before_and_now

    changes = result.changes
    if changes.empty:
        return None
    severity = _severities(result)
    levels = {"fail": 2, "warn": 1, "ok": 0}
    panels: list[tuple[str, list[Block]]] = []
    for output in list(changes["output"].unique())[:OUTPUTS]:
        blocks: list[Block] = []
        for kind in ("features", "groups"):
            some = changes[(changes["output"] == output) & (changes["kind"] == kind)]
            if some.empty:
                continue
            some = some.assign(severity=[severity.get((output, kind, name), "ok") for name in some["name"]])
            order = some.assign(level=some["severity"].map(levels), size=some["shift"].abs())
            order = order.sort_values(["level", "size"], ascending=False, kind="stable").head(MOVED)
            count = f"The {len(order)} of {len(some):,} {kind}" if len(order) < len(some) else f"All {len(some)} {kind}"
            blocks += [
                Paragraphs([f"{count}: first those beyond limits, then those that changed most."]),
                before_and_now(order),
            ]
        panels.append((str(output), blocks))
    lead = "Scores in the baseline and in this run; the number on the right is the change."
    return Section("changes", "Baseline and this run", [Legend(SIGNS), Choice("Output", panels)], lead)


def _severities(result: AuditResult) -> dict[tuple[str, str, str], str]:
    """The worst severity of every name with a violation."""
    found: dict[tuple[str, str, str], str] = {}
    for one in reversed(result.found["violations"]):  # failures come first, so they are written last
        found[one["output"], one["kind"], one["feature_name"]] = one["severity"]
    return found


def _trend(result: AuditResult) -> Section | None:
    from excir_dask.render.html.audit_charts import span, trend

    parts = [part for _, part in result.trend.groupby(["kind", "output", "name"], sort=False) if len(part) > 1]
    if not parts:
        return None
    panels, height = [], span(parts)
    several = result.explanation.outputs["output"].nunique() > 1
    for part in parts:
        row = part.iloc[0]
        name = f"{str(row['kind']).removesuffix('s')} {row['name']}" + (f" of {row['output']}" if several else "")
        panels.append(
            (name, content.slope(part), trend(part, days_of(part).tolist(), result.about["baseline"], height))
        )
    signs = [("with", "CIR"), ("band", "95% band"), ("ring", "the baseline"), ("cross", "the audit failed")]
    lead = (
        "Names beyond limits, and names that move steadily, more than noise explains. All charts span the same range "
        "of CIR, each around its own scores."
    )
    return Section("trend", "Trends over the runs", [Legend(signs), Panels(panels)], lead)


def _data_checks(result: AuditResult, read: Section) -> Section:
    rows = [
        [
            one["kind"] if one["kind"] != "settings" else "run",
            CHECKS[one["constraint_check_type"]].compares,
            content.SEVERITY[one["severity"]],
            f"{one['compared']:,}",
            content.figure(one["value"]),
            content.figure(one["threshold"]),
        ]
        for one in result.found["checks"]
        if CHECKS[one["constraint_check_type"]].about_data
    ]
    head = ["of", "check", "result", "compared", "value", "first limit"]
    return replace(
        read, title="Data read, and checks of the data", blocks=[Grid(head, rows, text_columns=3), *read.blocks]
    )


def _end(result: AuditResult, ends: Mapping[str, Section]) -> list[Section]:
    provenance, limits = ends["provenance"], ends["limits"]
    return [
        replace(provenance, blocks=[Facts(content.provenance(result)), *provenance.blocks]),
        Section(
            "terms",
            "Checks and their limits",
            [Grid(["check", "compares", "warns", "fails"], content.limits(result), 2)],
        ),
        Section("audit-limits", "What an audit means, and what it does not", [Points(content.LIMITS)]),
        limits,
    ]


_UNCERTAINTY = (
    "Standard error of the change, from both runs; for an order, the agreement that noise alone would leave. A change "
    "counts only if it is several times larger than this."
)
