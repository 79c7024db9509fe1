"""The result of a sweep: tables of runs and fractions, and the chosen fraction."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from excir_dask.common.atomic import new_folder
from excir_dask.errors import LakeError
from excir_dask.results import views
from excir_dask.results.metadata import LakeSource
from excir_dask.results.record import Record
from excir_dask.results.storage import (
    FILES,
    REPORT,
    check_digests,
    check_format,
    check_target,
    digests,
    read_json,
    write_json,
)
from excir_dask.results.tables import records

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

FORMAT = "excir-sweep"
VERSION = 1
MAIN = "sweep.json"


@dataclass(frozen=True, kw_only=True)
class SweepFile(Record):
    """What the main file of a sweep must say, beside its tables."""

    chosen: float | None
    front: tuple[float, ...]
    knee: float | None
    settings: SweepSettings


@dataclass(frozen=True, kw_only=True)
class ExplainSettings(Record):
    """What all its runs were asked for."""

    sampling: str
    centering: str
    rank_by: str


@dataclass(frozen=True, kw_only=True)
class SweepSettings(Record):
    """Its settings."""

    rows: int
    seeds: tuple[int, ...]
    target_jaccard: float
    retrain: Mapping[str, Any] | None
    lake: LakeSource
    explain: ExplainSettings
    versions: Mapping[str, str]
    target_residual: float | None = None


@dataclass(frozen=True, repr=False)
class Sweep(views.Displayed):
    """How well growing shares of the rows reproduce the ranking of all of them."""

    runs: pd.DataFrame
    """a row per fraction, seed, output and kind (features, groups): rows and compressed bytes read, seconds, and every
    measure of agreement with the run over all rows"""
    summary: pd.DataFrame
    """a row per kind and fraction: median costs, and per measure of agreement the mean over seeds (``_mean``) and the
    worst seed (``_worst``); a seed counts with its worst output"""
    chosen: float | None
    """the smallest fraction below 1 that meets the targets for every seed and output"""
    front: tuple[float, ...]
    """Pareto front of seconds and mean Jaccard index, fastest fraction first"""
    knee: float | None
    """the fraction of the front that is farthest above the chord between its ends"""
    settings: dict[str, Any]
    """options, lake and versions"""

    @property
    def verdict(self) -> str:
        """The choice in a plain sentence."""
        return views.verdict(self)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Plot runtime against agreement, agreement against fraction, and all measures (needs matplotlib).

        Parameters
        ----------
        path : path, optional
            Where to save the picture: .png, .svg or .pdf.

        Returns
        -------
        Figure
            Notebooks show it. It is not registered with ``pyplot``.
        """
        return views.sweep_picture(self, path)

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write a report: one HTML file that works offline (needs bokeh and jinja2).

        Parameters
        ----------
        path : path
            A file, such as ``report.html``. An older report is replaced.
        """
        return views.report(self, path)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values that JSON can hold."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "chosen": self.chosen,
            "verdict": self.verdict,
            "front": list(self.front),
            "knee": self.knee,
            "settings": self.settings,
            "summary": records(self.summary),
            "runs": records(self.runs),
        }

    def save(self, folder: str | os.PathLike[str], overwrite: bool = False, report: bool | None = None) -> Path:
        """Write the sweep to a folder, which appears whole or not at all.

        ``runs.parquet`` and ``summary.parquet`` hold the tables, ``sweep.json`` everything, ``sweep.png`` the plots
        (where matplotlib is installed), and ``report.html`` the report: by default where bokeh is installed.
        """
        target = check_target(folder, overwrite, "sweep")
        with new_folder(target, FILES["sweep"]) as made:
            self.runs.to_parquet(made / "runs.parquet", index=False)
            self.summary.to_parquet(made / "summary.parquet", index=False)
            if importlib.util.find_spec("matplotlib") is not None:
                self.plot(made / "sweep.png")
            write_json(made / MAIN, {**self.to_dict(), "files": digests(made)})
            views.add_report(self, made / REPORT, report)
        return target

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Sweep:
        """Load a saved sweep; a file that changed since is an error."""
        import pandas as pd

        source = Path(folder)
        content = read_json(source, MAIN, "sweep")
        check_format(source, content, FORMAT, VERSION)
        check_digests(source, content.get("files"), "sweep")
        main = SweepFile.from_dict(content, str(source / MAIN))
        summary = pd.read_parquet(source / "summary.parquet")
        for fraction in (main.chosen, *main.front, main.knee):
            if fraction is not None and fraction not in set(summary["fraction"]):
                raise LakeError(f"{source / MAIN} names the fraction {fraction}, which was not run; compute it again")
        return cls(
            runs=pd.read_parquet(source / "runs.parquet"),
            summary=summary,
            chosen=main.chosen,
            front=main.front,
            knee=main.knee,
            settings=content["settings"],
        )
