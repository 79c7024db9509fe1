"""What shows a result: by its class, as text, as HTML for a notebook, and as a report."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from excir_dask.results.agreement import Agreement
from excir_dask.results.audit import AuditResult
from excir_dask.results.explanation import Explanation
from excir_dask.results.profile import Profile
from excir_dask.results.sweep import Sweep
from excir_dask.training.result import Training

Shows = dict[type, Callable[..., Any]]
"""class of a result -> what shows it"""


def text(result: Any) -> str:
    """A result as text for a terminal."""
    from excir_dask.render.text import agreement, explanation, profile, sweep, training

    kinds: Shows = {
        Agreement: agreement.text, Explanation: explanation.text, Profile: profile.text, Sweep: sweep.text,
        Training: training.text,
    }  # fmt: skip
    return str(_of(result, kinds)(result))


def html(result: Any) -> str:
    """A result as a fragment of HTML for a notebook."""
    from excir_dask.render.html.notebook import agreement, explanation, profile, sweep

    kinds: Shows = {Agreement: agreement, Explanation: explanation, Profile: profile, Sweep: sweep}
    return str(_of(result, kinds)(result))


def report(result: Any, path: str | os.PathLike[str]) -> Path:
    """Write a result as one HTML file."""
    from excir_dask.render.html import audit_page, explanation_page, sweep_page

    pages: Shows = {AuditResult: audit_page.save, Explanation: explanation_page.save, Sweep: sweep_page.save}
    return Path(_of(result, pages)(result, path))


def _of(result: object, kinds: Shows) -> Callable[..., Any]:
    return next(show for kind, show in kinds.items() if isinstance(result, kind))
