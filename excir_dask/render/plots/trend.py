"""A plot of how scores move from run to run of an audit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from excir_dask.audit.history import SERIES, days_of
from excir_dask.render.plots.canvas import GRID, INK, MUTED, axes, check_path, pyplot
from excir_dask.render.plots.ranking import Z95
from excir_dask.render.text.audit import series_label

if TYPE_CHECKING:
    import pandas as pd

_DAYS = 30
"""most dates that are named under the plot"""


def plot_trend(table: pd.DataFrame, path: str | Path) -> Path:
    """Draw scores with their 95% limits: a line per series, output and kind. Failed runs are crossed."""
    check_path(path)
    ax = axes(None, 3.4)
    table = table.assign(day=days_of(table))
    days = sorted(set(table["day"]))
    place = {day: number for number, day in enumerate(days)}
    for (*series, output, kind), part in table.groupby([*SERIES, "output", "kind"], sort=False):
        x = np.array([place[day] for day in part["day"]])
        cir = part["cir"].to_numpy()
        ax.errorbar(
            x, cir, Z95 * part["error"], marker="o", ms=4, lw=1.4, capsize=2,
            label=f"{output} ({str(kind).removesuffix('s')}){series_label(table, series)}",
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
