"""A plot of an output along one feature, above how the rows spread over it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from excir_dask.common.wording import percent
from excir_dask.render.plots.canvas import GRID, INK, MUTED, axes
from excir_dask.render.plots.ranking import COLOURS, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from excir_dask.results.profile import Profile

SHARES = 0.22
"""height of the bars of shares, as a part of the plot"""
NAMES = 16
"""most cells that are named under the plot"""


def plot_profile(profile: Profile, ax: Axes | None = None) -> Axes:
    """The output's median and quartiles per cell of a feature, and bars of how many rows each has.

    Parameters
    ----------
    profile : Profile
    ax : Axes, optional
        Default: a new figure.

    Returns
    -------
    Axes
    """
    table = profile.table
    ax = axes(ax, 4.4)
    places, colour = np.arange(len(table)), COLOURS[profile.scores.get("direction", 0)]
    two, joined = "upper" in table, not profile.categories and len(table) > 1
    ax.plot(places, table["upper" if two else "q50"], "o-" if joined else "o", color=colour, ms=5, lw=1.8, zorder=3)
    if joined and not two:
        ax.fill_between(places, table["q25"], table["q75"], color=colour, alpha=0.2, lw=0, zorder=2)
    elif not two:
        ax.vlines(places, table["q25"], table["q75"], color=colour, alpha=0.4, lw=6, zorder=2)
    _shares(ax, profile)
    step = -(-len(table) // NAMES) or 1
    ax.set_xticks(places[::step], [short(name) for name in table["cell"][::step]], rotation=40, ha="right")
    for label in ax.get_xticklabels():
        label.set_parse_math(False)
    ax.set_xlim(-0.7, max(len(table), 1) - 0.3)
    ax.set_xlabel(short(profile.feature), color=INK, parse_math=False)
    name = short(profile.output)
    ax.set_ylabel(f"share of the larger value of {name}" if two else f"{name}: median, quartiles", parse_math=False)
    ax.grid(axis="y", color=GRID, linewidth=0.8, zorder=0)
    ax.set_axisbelow(True)
    ax.tick_params(length=0, labelcolor=MUTED, labelsize=8.5)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.set_title(_title(profile), loc="left", fontsize=11, fontweight="bold", color=INK, parse_math=False)
    return ax


def _shares(ax: Axes, profile: Profile) -> None:
    """Bars at the bottom, on a scale of their own, below what is drawn above them."""
    low, high = ax.get_ylim()
    ax.set_ylim(low - (high - low) * SHARES / (1 - SHARES), high)
    most = float(profile.table["share"].max()) if len(profile.table) else 1.0
    for place, share in enumerate(profile.table["share"]):
        ax.bar(
            place, SHARES * 0.8 * share / most, width=0.8, color=GRID, transform=ax.get_xaxis_transform(), zorder=1
        )  # fmt: skip
        ax.annotate(
            percent(round(share, 3)), (place, SHARES * 0.8 * share / most), xycoords=ax.get_xaxis_transform(),
            ha="center", va="bottom", fontsize=7, color=MUTED,
        )  # fmt: skip


def _title(profile: Profile) -> str:
    scores = profile.scores
    said = f"{short(profile.output)} along {short(profile.feature)}"
    said += f", CIR {scores['cir']:.3f}" if scores else ""
    return said + (f", {percent(round(profile.missing, 4))} missing" if profile.missing else "")
