"""Heatmaps of features that form a grid, such as pixels: a panel per output, all on one scale."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from excir_dask.errors import UsageError, nearest
from excir_dask.render.plots.canvas import INK, MUTED, check_path, pyplot
from excir_dask.render.plots.ranking import COLOURS, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from excir_dask.results.explanation import Explanation

PANELS = 5
"""panels in a row"""
CONSTANT = "#dedede"
"""colour of constant features, which have no score"""
SHADES = ("#7a2a10", COLOURS[-1], "#f7f7f7", COLOURS[1], "#10406b")
"""from against the output to with it; darker towards both ends, so that a grey copy still shows strength"""


def heatmap(
    explanation: Explanation,
    shape: tuple[int, int] = (8, 8),
    outputs: str | Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """Scores of features that form a grid, a panel per output; see :meth:`Explanation.heatmap`."""
    check_path(path)
    chosen = _outputs(explanation, outputs)
    names = _features(explanation, shape, features)
    plt = pyplot()
    from matplotlib.colors import LinearSegmentedColormap

    scores = {output: _scores(explanation, output, names).reshape(shape) for output in chosen}
    far = max((float(np.nanmax(np.abs(grid - 0.5), initial=0.0)) for grid in scores.values()), default=0.0) or 0.5
    colours = LinearSegmentedColormap.from_list("excir", SHADES).with_extremes(bad=CONSTANT)
    across = min(len(chosen), PANELS)
    down = -(-len(chosen) // across)
    side = 1.75 if len(chosen) > 1 else 3.6
    # the grid's proportions decide a panel's height, within reason
    height = side * min(max(shape[0] / shape[1], 0.25), 3.0)
    size = max(side * across, 3.2) + 0.9, (height + 0.25) * down + 0.4
    flat = size[1] < 2.7  # too low for the label beside a colour bar
    if flat:
        size = size[0], size[1] + 0.6
    figure: Figure
    figure, axes = plt.subplots(down, across, figsize=size, squeeze=False, layout="compressed")
    # Closed in pyplot: a notebook shows the returned figure, and would show an open one a second time.
    plt.close(figure)
    for panel in axes.flat[len(chosen) :]:
        panel.set_visible(False)
    for panel, output in zip(axes.flat, chosen, strict=False):
        image = panel.imshow(scores[output], cmap=colours, vmin=0.5 - far, vmax=0.5 + far, interpolation="nearest")
        _dress(panel, output, scores[output])
        _dot(panel, _flagged(explanation, output, names, "low support").reshape(shape))
    bar = figure.colorbar(image, ax=axes, location="bottom" if flat else "right", aspect=30, pad=0.02)
    bar.set_label("cir (0.5: no aligned co-movement)", fontsize=9, color=MUTED)
    bar.ax.tick_params(labelsize=8, labelcolor=MUTED, length=0)
    bar.outline.set_visible(False)
    rows = explanation.facts.rows.used
    words = [f"{len(names):,} features as {shape[0]} x {shape[1]}", f"{rows:,} rows"]
    if any(np.isnan(grid).any() for grid in scores.values()):
        words.append("hatched: constant")
    if any(panel.collections for panel in axes.flat):
        words.append("dot: low support")
    figure.suptitle(fill(", ".join(words), int(13 * size[0])), fontsize=9, color=MUTED, x=0.01, ha="left")
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def natural(name: str) -> list[Any]:
    """Sort key that orders numbers inside names as numbers.

    >>> sorted(["px[10]", "px[9]", "px[1]"], key=natural)
    ['px[1]', 'px[9]', 'px[10]']
    """
    return [int(part) if place % 2 else part for place, part in enumerate(re.split("([0-9]+)", name))]


def _outputs(explanation: Explanation, outputs: str | Sequence[str] | None) -> list[str]:
    asked = [outputs] if isinstance(outputs, str) else outputs
    chosen = list(explanation.outputs["output"]) if asked is None else list(asked)
    if not chosen:
        raise UsageError("outputs is empty; name at least one, or leave it out for all")
    for output in chosen:
        explanation.of(output)  # raises, and names the outputs, if this is none of them
    return chosen


def _features(explanation: Explanation, shape: tuple[int, int], features: Sequence[str] | None) -> list[str]:
    if len(shape) != 2 or min(shape) < 1:
        raise UsageError(f"shape is {shape}; give rows and columns of the grid, as (8, 8)")
    known = set(explanation.of()["feature"])
    names = sorted(known, key=natural) if features is None else list(features)
    for name in names:
        if name not in known:
            raise UsageError(f"'{name}' is not an explained feature{nearest(name, known)}")
    twice = len(names) - len(set(names))
    if len(names) != shape[0] * shape[1] or twice:
        also = f", {twice} of them twice" if twice else ""
        raise UsageError(
            f"a grid of {shape[0]} x {shape[1]} has {shape[0] * shape[1]:,} cells, but there are {len(names):,} "
            f"features{also}; give another shape, or features=[...] with the names row by row"
        )
    return names


def _scores(explanation: Explanation, output: str, names: list[str]) -> NDArray[np.float64]:
    """cir in the order of the grid; NaN for constant features."""
    cir = explanation.of(output).set_index("feature").loc[names, "cir"].to_numpy(dtype=np.float64)
    return np.where(_flagged(explanation, output, names, "constant|all missing"), np.nan, cir)


def _flagged(explanation: Explanation, output: str, names: list[str], flag: str) -> NDArray[np.bool_]:
    flags = explanation.of(output).set_index("feature").loc[names, "flag"]
    return np.asarray(flags.str.contains(flag), dtype=bool)


def _dress(panel: Axes, output: str, scores: NDArray[np.float64]) -> None:
    """A title, no ticks, and hatching where there is no score."""
    from matplotlib.patches import Rectangle

    panel.set_title(short(output), fontsize=10, color=INK, parse_math=False)
    panel.set_xticks([])
    panel.set_yticks([])
    for spine in panel.spines.values():
        spine.set_edgecolor(MUTED)
        spine.set_linewidth(0.6)
    for row, column in np.argwhere(np.isnan(scores)):
        panel.add_patch(
            Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, hatch="////", edgecolor="#ababab", linewidth=0)
        )


def _dot(panel: Axes, weak: NDArray[np.bool_]) -> None:
    """A dot on scores that few rows carry: they are often far from 0.5, and mean little."""
    rows, columns = np.nonzero(weak)
    if rows.size:
        panel.scatter(columns, rows, s=9, color="white", edgecolors=INK, linewidths=0.5)
