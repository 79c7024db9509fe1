"""The result of auditing one window: its explanation, what was found, and what the report shows."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from excir_dask.common.atomic import new_folder
from excir_dask.errors import LakeError
from excir_dask.results import views
from excir_dask.results.explanation import Explanation, write_files
from excir_dask.results.explanation_files import write_manifest
from excir_dask.results.record import Record
from excir_dask.results.storage import MANIFEST, REPORT, read_json, write_json

if TYPE_CHECKING:
    import pandas as pd

STATUSES = ("ok", "warn", "fail")
"""verdicts of a run that has a result"""

VIOLATIONS, CHANGES, TREND = "violations.json", "changes.parquet", "trend.parquet"


@dataclass(frozen=True, kw_only=True)
class Levels(Record):
    """Limits of a check."""

    warn: float | None
    fail: float | None


@dataclass(frozen=True, kw_only=True)
class About(Record):
    """What the manifest of a run must say about the audit."""

    run: str
    audit: str
    model: str
    window: str | None
    date: str | None
    baseline: str | None
    baseline_window: str | None
    status: str
    finished: str
    rows: int
    checks: int
    notes: tuple[str, ...]
    k: int
    false_alarm: float
    limits: Mapping[str, Levels]


@dataclass(frozen=True)
class AuditResult:
    """One audited window."""

    explanation: Explanation
    about: Mapping[str, Any]
    """``run audit model window date baseline baseline_window status finished rows checks notes``, and the terms of the
    verdict: ``k false_alarm limits``"""
    found: Mapping[str, Any]
    """what violations.json holds"""
    changes: pd.DataFrame
    """a row per output and feature or group that both runs have; empty without a baseline"""
    trend: pd.DataFrame
    """a row per past run of some features and groups"""

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write a report: one HTML file that works offline (needs bokeh and jinja2)."""
        return views.report(self, path)

    def save(self, folder: Path, more: Mapping[str, bytes], report: bool | None = None) -> None:
        """Write the run to a new folder, which appears whole or not at all.

        Parameters
        ----------
        folder : Path
            Must be empty or absent: a run is never changed.
        more : mapping name -> content
            Further files; they count as the run's own.
        report : bool, optional
            Write ``report.html`` too; by default where bokeh is installed.
        """
        with new_folder(folder) as made:
            write_files(self.explanation, made)
            write_json(made / VIOLATIONS, self.found)
            self.changes.to_parquet(made / CHANGES, index=False)
            self.trend.to_parquet(made / TREND, index=False)
            for name, content in more.items():
                (made / name).write_bytes(content)
            write_manifest(replace(self.explanation.provenance, audit=dict(self.about)), made)
            views.add_report(self, made / REPORT, report)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> AuditResult:
        """Load a saved run; a file that changed since is an error."""
        import pandas as pd

        source = Path(folder)
        explanation = Explanation.load(source)
        about = explanation.provenance.audit
        if about is None:
            raise LakeError(f"{source} is not a saved run of an audit: its manifest.json has no field 'audit'")
        status = About.from_dict(about, str(source / MANIFEST), "audit").status
        if status not in STATUSES:
            raise LakeError(
                f"{source / MANIFEST}: the audit's status is '{status}', and not one of {', '.join(STATUSES)}; restore "
                "it, or audit the window again"
            )
        return cls(
            explanation=explanation,
            about=about,
            found=read_json(source, VIOLATIONS, "run of an audit"),
            changes=pd.read_parquet(source / CHANGES),
            trend=pd.read_parquet(source / TREND),
        )
