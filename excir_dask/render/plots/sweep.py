"""Plots of a sweep: runtime against agreement, agreement against the share of rows, and all measures."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from excir_dask.common.wording import percent
from excir_dask.errors import UsageError, nearest
from excir_dask.render.plots.canvas import GRID, INK, MUTED, axes, check_path, padded, pyplot
from excir_dask.render.plots.ranking import COLOURS
from excir_dask.sweep.summary import HIGH, LOW, front_of, of_kind

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from excir_dask.results.sweep import Sweep

LINE, CHOSEN = COLOURS[1], COLOURS[-1]
SHADES = ("#f4f7fa", "#9dc3e0", LINE, "#10406b")
"""from no agreement to full agreement"""
NAMES = {
    "jaccard": "Jaccard", "spearman": "Spearman", "kendall": "Kendall", "ndcg": "NDCG", "procrustes": "Procrustes",
    "affine": "affine residual", "kl": "symmetric KL", "score_shift": "largest score shift",
    "rank_shift": "largest rank shift",
}  # fmt: skip


def picture(sweep: Sweep, path: str | os.PathLike[str] | None = None) -> Figure:
    """All three plots in one figure; see :meth:`Sweep.plot`."""
    check_path(path)
    plt = pyplot()
    figure: Figure = plt.figure(figsize=(11.5, 8.2), layout=padded())
    # Closed in pyplot: a notebook shows the returned figure, and would show an open one a second time.
    plt.close(figure)
    grid = figure.add_gridspec(2, 2, height_ratios=(1.0, 0.85))
    runtime(sweep, ax=figure.add_subplot(grid[0, 0]))
    agreement(sweep, ax=figure.add_subplot(grid[0, 1]))
    metrics(sweep, ax=figure.add_subplot(grid[1, :]))
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def runtime(sweep: Sweep, metric: str = "jaccard", ax: Axes | None = None) -> Axes:
    """Seconds against agreement, a point per fraction, with the Pareto front and its knee.

    Parameters
    ----------
    sweep : Sweep
    metric : str
        A measure of agreement: jaccard, spearman, kendall, ndcg, procrustes, affine, kl, score_shift or rank_shift.
    ax : Axes, optional
        Default: a new figure.

    Returns
    -------
    Axes
    """
    table = _table(sweep, metric)
    front, knee = front_of(sweep.summary, metric)
    ax = axes(ax, 4.6)
    mean, worst, seconds = table[f"{metric}_mean"], table[f"{metric}_worst"], table["seconds"]
    ax.vlines(seconds, worst, mean, color=GRID, linewidth=3, zorder=1)
    on = table.set_index("fraction").loc[list(front)]
    ax.plot(on["seconds"], on[f"{metric}_mean"], color=LINE, linewidth=1.4, zorder=2, label="Pareto front")
    colours = [CHOSEN if fraction == sweep.chosen else LINE for fraction in table["fraction"]]
    inside = [colour if f in front else "white" for colour, f in zip(colours, table["fraction"], strict=True)]
    ax.scatter(seconds, mean, s=46, c=inside, edgecolors=colours, linewidths=1.5, zorder=4)
    if knee is not None:
        bend = on.loc[knee]
        ax.scatter(
            [bend["seconds"]], [bend[f"{metric}_mean"]], s=190, facecolors="none", edgecolors=INK,
            linewidths=1.1, zorder=3, label="knee",
        )  # fmt: skip
    _levels(ax, sweep, table, metric)
    _dress(ax, "Agreement against runtime", "a point per fraction: mean over seeds; the bar reaches to the worst seed")
    ax.margins(x=0.08, y=0.2)
    ax.set_xlim(left=0.0)
    ax.set_xlabel("seconds (median)", fontsize=9, color=MUTED)
    _name_y(ax, metric, table)
    _legend(ax, "lower right")
    _name_points(ax, table["fraction"].tolist(), seconds.tolist(), mean.tolist(), sweep.chosen)
    return ax


def agreement(sweep: Sweep, metric: str = "jaccard", ax: Axes | None = None) -> Axes:
    """Fraction against agreement: the mean over seeds, and the band from the worst seed to the best.

    Parameters are those of :func:`runtime`.
    """
    table = _table(sweep, metric)
    ax = axes(ax, 4.6)
    runs = sweep.runs[sweep.runs["kind"] == "features"].groupby(["fraction", "seed"])[metric]
    seeds = (runs.max() if metric in LOW else runs.min()).groupby("fraction")
    ax.fill_between(
        table["fraction"], seeds.min(), seeds.max(), color=LINE, alpha=0.18, linewidth=0, label="worst to best seed"
    )
    ax.plot(table["fraction"], table[f"{metric}_mean"], "o-", color=LINE, linewidth=1.6, markersize=5, label="mean")
    if sweep.chosen is not None:
        ax.axvline(sweep.chosen, color=CHOSEN, linewidth=1.2, label=f"chosen: {percent(sweep.chosen)}", zorder=1)
    _levels(ax, sweep, table, metric)
    outputs = sweep.runs["output"].nunique()
    worst = f", each by its worst of {outputs} outputs" if outputs > 1 else ""
    _dress(ax, "Agreement against the share of rows", f"{len(sweep.settings['seeds'])} seeds per fraction{worst}")
    least = table["fraction"].min()
    ax.set_xlim(0.0, 1.03)
    if least < 0.1:  # on a linear scale the labels of small fractions would overlap
        ax.set_xscale("log")
        ax.minorticks_off()
        ax.set_xlim(least / 2, 1.2)
    ax.set_xticks(table["fraction"], [percent(fraction) for fraction in table["fraction"]])
    ax.set_xlabel("share of the rows", fontsize=9, color=MUTED)
    _name_y(ax, metric, table)
    _legend(ax, "upper right" if metric in LOW else "lower right")
    return ax


def metrics(sweep: Sweep, ax: Axes | None = None) -> Axes:
    """All measures at every fraction, the darker the better; colours of measures whose best value is 0 are relative
    to the largest value of their row."""
    table = of_kind(sweep.summary)
    ax = axes(ax, 3.9)
    from matplotlib.colors import LinearSegmentedColormap

    names = [*HIGH, *LOW]
    values = np.array([table[f"{name}_mean"].to_numpy(dtype=np.float64) for name in names])
    shades = np.clip(values, 0.0, 1.0)
    low = values[len(HIGH) :]
    most = np.maximum(np.nanmax(low, axis=1, keepdims=True, initial=0.0), np.finfo(float).tiny)
    shades[len(HIGH) :] = 1.0 - low / most
    colours = LinearSegmentedColormap.from_list("agreement", SHADES).with_extremes(bad="#dedede")
    ax.imshow(shades, cmap=colours, vmin=0.0, vmax=1.0, aspect="auto", interpolation="nearest")
    for (row, column), value in np.ndenumerate(values):
        word = "–" if np.isnan(value) else f"{value:.3g}" if names[row] == "rank_shift" else f"{value:.3f}"
        colour = "white" if _is_dark(colours(shades[row, column])) else INK
        ax.text(column, row, word, ha="center", va="center", fontsize=9, color=colour)
    ax.set_xticks(range(len(table)), [percent(fraction) for fraction in table["fraction"]])
    ax.set_yticks(range(len(names)), [NAMES[name] for name in names])
    ax.axhline(len(HIGH) - 0.5, color="white", linewidth=5)
    _dress(ax, "All measures of agreement", "means over seeds; full agreement is 1 above the gap, and 0 below it")
    ax.grid(visible=False)
    ax.set_xlabel("share of the rows", fontsize=9, color=MUTED)
    return ax


def _table(sweep: Sweep, metric: str) -> pd.DataFrame:
    if metric not in NAMES:
        raise UsageError(f"metric is '{metric}'{nearest(metric, NAMES)} (one of {', '.join(NAMES)})")
    return of_kind(sweep.summary)


def _is_dark(colour: Sequence[float]) -> bool:
    """Whether white text has more contrast on a colour than ink, by the relative luminance of WCAG."""
    red, green, blue = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in colour[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.21


def _levels(ax: Axes, sweep: Sweep, table: pd.DataFrame, metric: str) -> None:
    """The target, and what chance gives; known for the Jaccard index only."""
    if metric != "jaccard":
        return
    from matplotlib.patheffects import withStroke

    halo = withStroke(linewidth=3, foreground="white")  # readable on lines and points
    # the target at the right end, below its line: small fractions are at the left, and all rows agree with themselves
    for level, name, style, end, beside, side in (
        (sweep.settings["target_jaccard"], "target", "--", 1.0, (-4, -10), "right"),
        (table["jaccard_chance"].iloc[0], "chance", ":", 0.0, (4, 2), "left"),
    ):
        ax.axhline(level, color=MUTED, linewidth=1.0, linestyle=style, zorder=1)
        ax.annotate(
            f"{name} {level:.3g}", (end, level), xycoords=ax.get_yaxis_transform(), xytext=beside, ha=side,
            textcoords="offset points", fontsize=8, color=MUTED, zorder=5, path_effects=[halo],
        )  # fmt: skip


def _name_points(ax: Axes, fractions: list[float], x: list[float], y: list[float], chosen: float | None) -> None:
    """Fractions beside their points: above or below, farther off if a label or point is in the way."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    pixels = ax.transData.transform(np.column_stack([x, y])) * 72.0 / figure.dpi
    taken = [(across, up) for across, up in pixels]
    for place in np.argsort(x, kind="stable"):
        across, up = pixels[place]
        free = (
            points
            for points in (13, -13, 25, -25, 37, -37, 49, -49)
            if all(abs(across - left) > 26 or abs(up + points - height) > 11 for left, height in taken)
        )
        points = next(free, 13)
        taken += [(across, up + points)]
        ax.annotate(
            percent(fractions[place]), (x[place], y[place]), xytext=(0, points), textcoords="offset points",
            ha="center", va="center", fontsize=9, color=CHOSEN if fractions[place] == chosen else INK, zorder=5,
        )  # fmt: skip


def _legend(ax: Axes, where: Any) -> None:
    ax.legend(loc=where, fontsize=8, labelcolor=MUTED, edgecolor="none", facecolor=ax.get_facecolor(), framealpha=0.9)


def _dress(ax: Axes, title: str, line: str) -> None:
    ax.set_title(title, loc="left", pad=22, fontsize=12, fontweight="bold", color=INK)
    ax.annotate(
        line, (0.0, 1.0), xycoords="axes fraction", xytext=(0, 7), textcoords="offset points",
        va="bottom", fontsize=9, color=MUTED,
    )  # fmt: skip
    ax.tick_params(length=0, labelcolor=INK, labelsize=9)
    ax.grid(color=GRID, linewidth=0.8)
    ax.set_axisbelow(True)
    for spine in ax.spines.values():
        spine.set_visible(False)


def _name_y(ax: Axes, metric: str, table: pd.DataFrame) -> None:
    ax.set_ylabel(f"Jaccard@{table['k'].iloc[0]}" if metric == "jaccard" else NAMES[metric], fontsize=9, color=MUTED)
    if metric == "jaccard":
        ax.set_ylim(0.0, 1.12)
        ax.set_yticks([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
