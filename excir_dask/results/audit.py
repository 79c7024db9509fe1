"""A run as its folder keeps it: everything that was found, and all that its report shows."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from excir_dask.errors import LakeError
from excir_dask.results import views
from excir_dask.results.explanation import Explanation

if TYPE_CHECKING:
    import pandas as pd

VIOLATIONS, CHANGES, TREND, MANIFEST = "violations.json", "changes.parquet", "trend.parquet", "manifest.json"


@dataclass(frozen=True)
class AuditResult:
    """One audited window."""

    explanation: Explanation
    about: Mapping[str, Any]
    """``run audit model window date baseline baseline_window status finished rows checks notes``, and by what it was
    judged: ``k false_alarm limits``"""
    found: Mapping[str, Any]
    """what violations.json holds"""
    changes: pd.DataFrame
    """a row per output and feature or group that both runs have; empty without a baseline"""
    trend: pd.DataFrame
    """a row per past run of some features and groups"""

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write all of it as one HTML file that works offline (needs bokeh and jinja2)."""
        return views.report(self, path)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> AuditResult:
        """Read a run back; a file that was changed since it was saved is an error."""
        import pandas as pd

        source = Path(folder)
        explanation = Explanation.load(source)
        about = explanation.provenance.audit
        if about is None:
            raise LakeError(f"{source} is not the folder of an audit's run (its manifest.json does not speak of one)")
        return cls(
            explanation=explanation,
            about=about,
            found=json.loads((source / VIOLATIONS).read_text(encoding="utf-8")),
            changes=pd.read_parquet(source / CHANGES),
            trend=pd.read_parquet(source / TREND),
        )
