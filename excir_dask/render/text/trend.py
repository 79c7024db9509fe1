"""How scores move from run to run: as text, and as a plot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from excir_dask.audit.history import SERIES, days_of
from excir_dask.audit.messages import MARKS
from excir_dask.audit.slopes import slopes
from excir_dask.render.plots.canvas import GRID, INK, MUTED, axes, check_path, pyplot
from excir_dask.render.terminal import bar, fit

if TYPE_CHECKING:
    import pandas as pd

FALSE_ALARM = 0.001
"""probability that noise alone is called a trend"""
_LEVEL = 1.96
"""errors either way that are drawn: 95%"""
_DAYS = 30
"""dates that are named under a plot"""


def runs_text(runs: pd.DataFrame) -> str:
    """All runs, a line each."""
    rows = [
        f"{row['day']:<12}{MARKS[row['status']]:<8}{row['rows']:>12,}  {row['run']}"
        for row in runs.assign(day=days_of(runs)).to_dict("records")
    ]
    return "\n".join([f"{'date':<12}{'status':<8}{'rows':>12}  run", *rows])


def trend_text(table: pd.DataFrame) -> str:
    """Scores of one feature or group, a line a run, for each series of runs and output."""
    lines: list[str] = []
    table, several = table.assign(day=days_of(table)), _several(table)
    for (*series, output, kind, name), part in table.groupby([*SERIES, "output", "kind", "name"], sort=False):
        lines += [*([""] if lines else []), f"{_one(kind)} {name} of {output}{_series(series, several)}"]
        lines.append(f"{'date':<12}{'cir':>7} {'± std error':>12} {'rank':>5}  {fit('0      0.5      1', 18)}status")
        for row in part.to_dict("records"):
            score = f"{row['cir']:>7.3f} {row['error']:>12.3f} {row['rank']:>5}"
            lines.append(f"{row['day']:<12}{score}  {bar(row['cir'], 16)}  {MARKS[row['status']]}")
        lines += _told(part)
    return "\n".join(lines)


def _told(part: pd.DataFrame) -> list[str]:
    """Whether one score moves steadily or has jumped, if noise does not explain it."""
    (found,) = slopes(part, FALSE_ALARM).to_dict("records")
    if found["steady"]:
        return [f"steady: {found['slope']:+.4f} a run, standard error {found['slope_error']:.4f}"]
    jump = part[part["run"] == found["jumped"]]
    return [f"jumped: another score since {day}" for day in jump["day"]]


def plot_trend(table: pd.DataFrame, path: str | Path) -> Path:
    """Draw the scores with their 95% limits, a line for each series, output and kind; failed runs are marked."""
    check_path(path)
    ax = axes(None, 3.4)
    table, several = table.assign(day=days_of(table)), _several(table)
    days = sorted(set(table["day"]))
    place = {day: number for number, day in enumerate(days)}
    for (*series, output, kind), part in table.groupby([*SERIES, "output", "kind"], sort=False):
        x = np.array([place[day] for day in part["day"]])
        cir = part["cir"].to_numpy()
        ax.errorbar(
            x, cir, _LEVEL * part["error"], marker="o", ms=4, lw=1.4, capsize=2,
            label=f"{output} ({_one(kind)}){_series(series, several)}",
        )  # fmt: skip
        failed = (part["status"] == "fail").to_numpy()
        ax.scatter(x[failed], cir[failed], marker="x", color=INK, s=60, zorder=3)
    step = -(-len(days) // _DAYS)
    ax.set_xticks(range(0, len(days), step), days[::step])
    ax.axhline(0.5, color=MUTED, lw=0.8)
    ax.set_ylim(0, 1)
    ax.set_ylabel("CIR")
    ax.grid(axis="y", color=GRID, lw=0.6)
    ax.tick_params(axis="x", rotation=60, labelsize=7)
    title = f"{table['name'].iloc[0]}: CIR with 95% limits; x: the audit failed"
    ax.set_title(title, loc="left", fontsize=9, parse_math=False)
    for text in ax.legend(fontsize=8, frameon=False).get_texts():
        text.set_parse_math(False)
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.savefig(path, dpi=150)
    pyplot().close(figure)
    return Path(path)


def _several(table: pd.DataFrame) -> list[bool]:
    """Whether there are several models, and several audits: only then they are named."""
    return [table[column].nunique() > 1 for column in SERIES]


def _series(names: Sequence[Any], several: Sequence[bool]) -> str:
    """Which series of runs it is, where there are others."""
    words = ("model", "audit")
    return "".join(f", {word} {name}" for word, name, told in zip(words, names, several, strict=True) if told)


def _one(kind: object) -> str:
    return str(kind).removesuffix("s")
