"""How scores move from run to run: as text, and as a plot."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from excir_dask.audit.slopes import slopes
from excir_dask.audit.words import MARKS
from excir_dask.cells import bar, fit
from excir_dask.report.canvas import GRID, INK, MUTED, axes, check_path, pyplot

if TYPE_CHECKING:
    import pandas as pd

FALSE_ALARM = 0.001
"""probability that noise alone is called a trend"""
_LEVEL = 1.96
"""errors either way that are drawn: 95%"""


def runs_text(runs: pd.DataFrame) -> str:
    """All runs, a line each."""
    rows = [
        f"{_when(row):<12}{MARKS[row['status']]:<8}{row['rows']:>12,}  {row['run']}" for row in runs.to_dict("records")
    ]
    return "\n".join([f"{'date':<12}{'status':<8}{'rows':>12}  run", *rows])


def trend_text(table: pd.DataFrame) -> str:
    """Scores of one feature or group, a line a run, for each output."""
    lines: list[str] = []
    for (output, kind, name), part in table.groupby(["output", "kind", "name"], sort=False):
        lines += [*([""] if lines else []), f"{_one(kind)} {name} of {output}"]
        lines.append(f"{'date':<12}{'cir':>7} {'±':>6} {'rank':>5}  {fit('0      0.5      1', 18)}status")
        for row in part.to_dict("records"):
            score = f"{row['cir']:>7.3f} {row['error']:>6.3f} {row['rank']:>5}"
            lines.append(f"{_when(row):<12}{score}  {bar(row['cir'], 16)}  {MARKS[row['status']]}")
        lines += _told(part)
    return "\n".join(lines)


def _told(part: pd.DataFrame) -> list[str]:
    """Whether one score moves steadily or has jumped, if noise does not explain it."""
    (found,) = slopes(part, FALSE_ALARM).to_dict("records")
    if found["steady"]:
        return [f"steady: {found['slope']:+.4f} a run, standard error {found['slope_error']:.4f}"]
    jump = part[part["run"] == found["jumped"]]
    return [f"jumped: another score since {_when(row)}" for row in jump.to_dict("records")]


def plot_trend(table: pd.DataFrame, path: str | Path) -> Path:
    """Draw the scores with their 95% limits, a line for each output and kind; failed runs are marked."""
    check_path(path)
    ax = axes(None, 3.4)
    for (output, kind), part in table.groupby(["output", "kind"], sort=False):
        when = [_when(row) for row in part.to_dict("records")]
        ax.errorbar(
            when, part["cir"], _LEVEL * part["error"], marker="o", ms=4, lw=1.4, capsize=2,
            label=f"{output} ({_one(kind)})",
        )  # fmt: skip
        failed = (part["status"] == "fail").to_numpy()
        ax.scatter(
            [one for one, bad in zip(when, failed, strict=True) if bad], part["cir"][failed],
            marker="x", color=INK, s=60, zorder=3,
        )  # fmt: skip
    ax.axhline(0.5, color=MUTED, lw=0.8)
    ax.set_ylim(0, 1)
    ax.set_ylabel("CIR")
    ax.grid(axis="y", color=GRID, lw=0.6)
    ax.tick_params(axis="x", rotation=60, labelsize=7)
    ax.set_title(f"{table['name'].iloc[0]}: CIR with 95% limits; x: the audit failed", loc="left", fontsize=9)
    ax.legend(fontsize=8, frameon=False)
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.savefig(path, dpi=150)
    pyplot().close(figure)
    return Path(path)


def _one(kind: object) -> str:
    return str(kind).removesuffix("s")


def _when(row: Mapping[Any, Any]) -> str:
    """Date of the window, or of the run where windows have none."""
    return str(row["date"] if isinstance(row["date"], str) else row["finished"])[:10]
