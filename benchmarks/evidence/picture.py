"""A strip plot of all methods: where each puts the features that mean |SHAP| ranks first."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from scipy.stats import rankdata

from evidence.comparison import OURS, REFERENCE, Compared
from evidence.methods import METHODS
from excir_dask.render.plots.canvas import GRID, INK, MUTED, padded

PICTURE = Path(__file__).parents[2] / "docs" / "methods.svg"


def save(found: Mapping[str, Compared], path: Path = PICTURE) -> None:
    """One panel per set, one line per method; a dot per feature, placed by its rank and coloured by that of SHAP."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    names = [REFERENCE, *(name for name in METHODS if name != REFERENCE), *reversed(OURS)]
    with mpl.rc_context({"svg.hashsalt": "excir", "svg.fonttype": "none"}):
        figure = Figure(figsize=(11, 6.6), layout=padded())
        panels = figure.subplots(2, 3, sharey=True)
        for axes, (name, one) in zip(panels.flat, found.items(), strict=True):
            count = len(one.features)
            truth = rankdata(-one.scores[REFERENCE], method="ordinal")
            for line, method in enumerate(names):
                place = rankdata(-one.scores[method], method="ordinal")
                order = np.argsort(-truth)  # what SHAP ranks first is drawn last, on top
                dots = axes.scatter(
                    place[order], np.full(count, line), c=truth[order], cmap="viridis", vmin=1, vmax=count, s=34
                )
            axes.set_title(f"{name}, {count} features", fontsize=10, color=INK, loc="left")
            axes.set_yticks(range(len(names)), names)
            for label in axes.get_yticklabels():
                label.set_fontweight("bold" if label.get_text() in OURS else "normal")
            axes.set_ylim(len(names) - 0.5, -0.5)
            axes.set_xlim(0.4, count + 0.6)
            axes.set_xticks([1, (count + 1) // 2, count])
            axes.tick_params(labelsize=8, colors=INK, length=0)
            axes.grid(axis="y", color=GRID)
            axes.set_axisbelow(True)
            axes.spines[:].set_visible(False)
        figure.supxlabel("rank by the method of the line", fontsize=9, color=MUTED)
        bar = figure.colorbar(dots, ax=panels, shrink=0.6, ticks=[1, count])
        bar.ax.set_yticklabels(["first", "last"])
        bar.ax.invert_yaxis()
        bar.set_label("rank by mean |SHAP|", fontsize=9, color=MUTED)
        bar.outline.set_visible(False)
        figure.savefig(path, metadata={"Date": None})
