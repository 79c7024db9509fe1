"""Plots of an explanation, each on one axes, so that it can be part of a larger figure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from excir_dask.errors import UsageError
from excir_dask.render.plots.canvas import GRID, INK, MUTED, axes

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from excir_dask.results.explanation import Explanation

COLOURS = {1: "#2b7bba", -1: "#d1603d", 0: "#8a8a8a"}
"""direction -> colour, also in notebooks and reports; colour-blind readers can tell them apart"""
Z95 = 1.96
LONGEST = 40
"""most characters of a name"""


def ranking(explanation: Explanation, k: int = 15, output: str | None = None, ax: Axes | None = None) -> Axes:
    """Bars from 0.5 to the score of the ``k`` highest ranked features, the highest on top.

    Parameters
    ----------
    explanation : Explanation
    k : int
        Features to show.
    output : str, optional
        Default: the first one.
    ax : Axes, optional
        Default: a new figure.

    Returns
    -------
    Axes
    """
    if k < 1:
        raise UsageError(f"k is {k}; a ranking shows at least 1 feature")
    table = explanation.of(output)
    shown = table.head(k)
    name = str(table["output"].iloc[0])
    ax = axes(ax, 0.3 * len(shown) + 1.5)
    cir, places = shown["cir"].to_numpy(), np.arange(len(shown))
    error = Z95 * np.nan_to_num(shown["stderr"].to_numpy())
    ax.barh(places, cir - 0.5, left=0.5, height=0.68, color=_colours(shown), zorder=2)
    ax.errorbar(cir, places, xerr=error, fmt="none", ecolor=INK, elinewidth=1.1, capsize=2.5, capthick=1.1, zorder=3)
    _frame(ax, shown["feature"], cir, np.abs(cir - 0.5) + error)
    count = f"{len(shown)} of {len(table):,} features" if len(shown) < len(table) else f"{len(table):,} features"
    _title(ax, name, f"{count}, {explanation.facts.rows.used:,} rows, whiskers: 95% interval")
    return ax


def groups(explanation: Explanation, output: str | None = None, ax: Axes | None = None) -> Axes:
    """Bars from 0.5 to the score of each group, and a dot per member.

    Parameters
    ----------
    explanation : Explanation
        With groups; :meth:`Explanation.regroup` gives it some.
    output : str, optional
        Default: the first one.
    ax : Axes, optional
        Default: a new figure.

    Returns
    -------
    Axes
    """
    members = explanation.of(output).set_index("feature")
    name = str(members["output"].iloc[0])
    table = explanation.groups[explanation.groups["output"] == name]
    if table.empty:
        raise UsageError("the explanation has no groups to plot; give it some with regroup({'name': ['feature', ...]})")
    ax = axes(ax, 0.68 * len(table) + 1.4)
    cir, places = table["cir"].to_numpy(), np.arange(len(table))
    insides = [members.loc[list(names)] for names in table["members"]]
    _frame(ax, table["group"], cir, np.abs(np.concatenate([cir, *(inside["cir"] for inside in insides)]) - 0.5))
    ax.barh(places, cir - 0.5, left=0.5, height=0.3, color=_colours(table), alpha=0.4, linewidth=0, zorder=2)
    for place, inside in enumerate(insides):
        ax.scatter(
            inside["cir"], np.full(len(inside), place), s=38, c=_colours(inside),
            edgecolors="white", linewidths=0.8, zorder=7,
        )  # fmt: skip
        _name_extremes(ax, inside, place)
    _title(ax, name, f"{len(table)} groups, a dot per member, {explanation.facts.rows.used:,} rows")
    return ax


def _frame(ax: Axes, names: Iterable[str], cir: Any, far: Any) -> None:
    """Names on the left, scores on the right, the same scale on both sides of 0.5."""
    labels = [short(name) for name in names]
    half = next((width for width in (0.05, 0.1, 0.2, 0.3, 0.4) if np.max(far) <= width), 0.5)
    ax.set_xlim(0.5 - half, 0.5 + half)
    ax.set_ylim(len(labels) - 0.4, -0.6)
    ticks = 0.5 + half * np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
    ax.set_xticks(ticks, [f"{tick:.3g}" for tick in ticks])
    ax.set_xlabel("no co-movement either way", fontsize=9, color=MUTED, labelpad=2)  # 0.5 is the middle of the axes
    ax.set_yticks(range(len(labels)), labels)
    for label in ax.get_yticklabels():
        label.set_parse_math(False)  # a name with two dollar signs is not a formula
    ax.tick_params(axis="x", length=0, labelcolor=MUTED, labelsize=9)
    ax.tick_params(axis="y", length=0, labelcolor=INK, labelsize=10)
    ax.grid(axis="x", color=GRID, linewidth=0.8, zorder=0)
    ax.set_axisbelow(True)
    ax.axvline(0.5, color=INK, linewidth=1.0, zorder=5)
    for spine in ax.spines.values():
        spine.set_visible(False)
    for place, value in enumerate(cir):
        ax.annotate(
            f"{value:.3f}", (1.02, place), xycoords=ax.get_yaxis_transform(),
            va="center_baseline", fontsize=9, color=MUTED,
        )  # fmt: skip
    _above(ax, 1.02, (0, 6), "CIR", "left", MUTED)
    _above(ax, 0.5, (-6, 6), "◀ against the output", "right", COLOURS[-1])
    _above(ax, 0.5, (6, 6), "with the output ▶", "left", COLOURS[1])


def _title(ax: Axes, output: str, line: str) -> None:
    """What is explained, and below it how much is shown."""
    title = f"Co-movement with {short(output)}"
    ax.set_title(title, loc="left", pad=40, fontsize=13, fontweight="bold", color=INK, parse_math=False)
    _above(ax, 0.0, (0, 25), line, "left", MUTED)


def _above(ax: Axes, share: float, points: tuple[int, int], words: str, side: str, colour: str) -> None:
    """Text above the axes, at a share of their width and so many points from there."""
    ax.annotate(
        words, (share, 1.0), xycoords="axes fraction", xytext=points, textcoords="offset points",
        ha=side, va="bottom", fontsize=9, color=colour,
    )  # fmt: skip


def _name_extremes(ax: Axes, inside: pd.DataFrame, place: int) -> None:
    """The name of a group's highest member above its dot, and of its lowest below it, so that the two never collide."""
    low, high = ax.get_xlim()
    scores = dict(zip(map(str, inside.index), inside["cir"], strict=True))
    for name, points in {min(scores, key=scores.__getitem__): -13, max(scores, key=scores.__getitem__): 13}.items():
        cir = scores[name]
        share = (cir - low) / (high - low)
        ax.annotate(
            short(name), (cir, place), xytext=(0, points), textcoords="offset points", va="center",
            ha="left" if share < 0.15 else "right" if share > 0.85 else "center", fontsize=8, color=MUTED,
            parse_math=False, zorder=6, bbox={"facecolor": ax.get_facecolor(), "edgecolor": "none", "pad": 0.5},
        )  # fmt: skip


def _colours(table: pd.DataFrame) -> list[str]:
    return [COLOURS[direction] for direction in table["direction"]]


def short(name: str) -> str:
    """A name as a plot shows it."""
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"
