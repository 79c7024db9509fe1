"""Charts of an explanation: the ranking, the map of outputs, and the distribution of scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from excir_dask.render.html.blocks import Chart
from excir_dask.render.html.figures import (
    AGAINST,
    GRID,
    INK,
    MUTED,
    NEITHER,
    PAPER,
    WITH,
    bare,
    chart,
    hover,
    name_rows,
    rounded,
)
from excir_dask.render.html.labels import label

if TYPE_CHECKING:
    import pandas as pd

COLOUR = {1: WITH, -1: AGAINST, 0: NEITHER}
WORD = {1: "with the output", -1: "against the output", 0: "neither"}
ROW = 27
"""pixels of a bar and the gap below it"""
DOTS = 1200
"""most dots of one output; with more features a dot stands for several of them"""
LEAST_DOTS = 150
"""dots per output, however many outputs there are"""


def ranking(table: pd.DataFrame, output: str, total: int) -> Chart:
    """Bars from 0.5 to the score with whiskers from ``low`` to ``high``, the highest rank on top."""
    from bokeh.models import ColumnDataSource, FixedTicker, Span

    half = _half(np.concatenate([table["low"], table["high"], table["cir"]]))
    count = len(table)
    figure = bare(ROW * count + 46, (0.5 - half, 0.5 + half), (count - 0.4, -0.6))
    name_rows(figure, list(table["feature"]), [f"{cir:.3f}" for cir in table["cir"]])
    ticks = [round(0.5 + half * side, 4) for side in (-1.0, -0.5, 0.0, 0.5, 1.0)]
    figure.xaxis.ticker = FixedTicker(ticks=ticks, minor_ticks=[])
    figure.xaxis.axis_label = "CIR (0.5: none either way)"
    source = ColumnDataSource(
        {
            "y": list(range(count)),
            "name": list(table["feature"]),
            "cir": rounded(table["cir"]),
            "low": rounded(table["low"]),
            "high": rounded(table["high"]),
            "colour": [COLOUR[direction] for direction in table["direction"]],
            "word": [WORD[direction] for direction in table["direction"]],
        }
    )
    bars = figure.hbar(y="y", left=0.5, right="cir", height=0.66, color="colour", line_color=None, source=source)
    # a light line under a dark one: whiskers must show on bars and beside them
    figure.segment("low", "y", "high", "y", line_color=PAPER, line_width=4, line_alpha=0.8, source=source)
    figure.segment("low", "y", "high", "y", line_color=INK, line_width=1.4, source=source)
    figure.add_layout(Span(location=0.5, dimension="height", line_color=INK, line_width=1))
    hover(
        figure, [bars],
        {"feature": "@name", "CIR": "@cir{0.0000}", "95% interval": "@low{0.000} to @high{0.000}", "moves": "@word"},
    )  # fmt: skip
    names = ", ".join(
        f"{row['feature']} {row['cir']:.3f} {WORD[row['direction']]}" for row in table.head(5).to_dict("records")
    )
    return chart(figure, f"Bar chart: the first {count} of {total:,} features by co-movement with {output}: {names}")


def side_by_side(
    cir: NDArray[np.float64], features: Sequence[str], outputs: Sequence[str], kind: str = "output"
) -> Chart:
    """A map of scores, (features, outputs): the colour shows the direction, its depth the strength.

    ``kind`` is what the columns are called: they may be segments.
    """
    from bokeh.models import ColumnDataSource, FixedTicker

    rows, columns = cir.shape
    slanted = columns > 4 or max(map(len, outputs)) > 10
    height = ROW * rows + (100 if slanted else 44)
    figure = bare(height, (-0.5, columns - 0.5), (rows - 0.5, -0.5), x_axis_location="above")
    name_rows(figure, features)
    figure.grid.grid_line_color = None
    figure.xaxis.ticker = FixedTicker(ticks=list(range(columns)), minor_ticks=[])
    figure.xaxis.major_label_overrides = {place: label(name, 14) for place, name in enumerate(outputs)}
    figure.xaxis.major_label_text_color = INK
    if slanted:
        figure.xaxis.major_label_orientation = 0.9
    y, x = (axis.ravel() for axis in np.indices(cir.shape))
    scores = cir.ravel()
    strength = np.abs(2.0 * np.nan_to_num(scores, nan=0.5) - 1.0)
    source = ColumnDataSource(
        {
            "x": x.tolist(),
            "y": y.tolist(),
            "feature": [features[place] for place in y.tolist()],
            "output": [outputs[place] for place in x.tolist()],
            "cir": rounded(scores),
            "text": ["–" if score != score else f"{score:.2f}" for score in scores],
            "colour": [WITH if score >= 0.5 else AGAINST for score in scores],
            "depth": [round(0.06 + 0.72 * float(value), 3) for value in strength],
        }
    )
    cells = figure.rect(
        "x", "y", width=0.94, height=0.88, fill_color="colour", fill_alpha="depth", line_color=None, source=source
    )
    if columns <= 8:
        figure.text(
            "x", "y", text="text", text_align="center", text_baseline="middle", text_font_size="11px",
            text_color=INK, source=source,
        )  # fmt: skip
    hover(figure, [cells], {"feature": "@feature", kind: "@output", "CIR": "@cir{0.0000}"})
    return chart(figure, f"Map of the scores of {rows} features for {columns} {kind}s, side by side")


def swarm(tables: Sequence[pd.DataFrame], outputs: Sequence[str]) -> tuple[Chart, int]:
    """A beeswarm of scores per output above a strip of the same, and how many features a dot stands for."""
    from bokeh.models import ColumnDataSource, FixedTicker, Span

    most = max(LEAST_DOTS, DOTS // len(tables))
    step = max(-(-len(table) // most) for table in tables)
    rows = len(tables)
    height = max(72, 190 - 30 * rows) * rows + 56
    figure = bare(height, (-0.02, 1.02), (rows - 0.45, -0.55))
    name_rows(figure, outputs)
    figure.ygrid.grid_line_color = GRID
    figure.ygrid.ticker = FixedTicker(ticks=[place + 0.5 for place in range(rows - 1)], minor_ticks=[])
    figure.xaxis.axis_label = "CIR (0.5: none either way)"
    x, y, strip, names, colours = [], [], [], [], []
    for place, table in enumerate(tables):
        ordered = table.sort_values(["cir", "feature"]).iloc[step // 2 :: step]
        x += rounded(ordered["cir"])
        y += [round(place - 0.06 + offset, 3) for offset in _offsets(ordered["cir"].to_numpy())]
        strip += [place + 0.4] * len(ordered)
        names += list(ordered["feature"])
        colours += [COLOUR[direction] for direction in ordered["direction"]]
    columns = {"x": x, "y": y, "strip": strip, "colour": colours, **({"name": names} if step == 1 else {})}
    source = ColumnDataSource(columns)
    figure.scatter(
        "x", "strip", marker="dash", angle=np.pi / 2, size=9, line_color="colour", line_alpha=0.55, source=source
    )
    dots = figure.scatter(
        "x", "y", size=9 if len(x) <= 100 else 6, fill_color="colour", fill_alpha=0.75, line_color=PAPER,
        line_width=0.6, source=source,
    )  # fmt: skip
    figure.add_layout(Span(location=0.5, dimension="height", line_color=MUTED, line_width=1))
    if step == 1:
        hover(figure, [dots], {"feature": "@name", "CIR": "@x{0.0000}"})
    return chart(figure, f"Distribution of the scores of all features between 0 and 1, for {rows} outputs"), step


def _offsets(scores: NDArray[np.float64], width: float = 0.011, reach: float = 0.34) -> NDArray[np.float64]:
    """Offsets that spread dots of almost the same score to both sides of their line: 0, up, down, further up, ..."""
    cells = np.floor(scores / width).astype(int)
    place = np.zeros(len(scores))
    seen: dict[int, int] = {}
    for j, cell in enumerate(cells):
        k = seen.get(cell, 0)
        seen[cell] = k + 1
        place[j] = (k + 1) // 2 * (1 if k % 2 else -1)
    return place * min(0.055, reach / max(1.0, float(np.abs(place).max(initial=0.0))))


def _half(scores: NDArray[np.float64]) -> float:
    """How far the axis reaches to both sides of 0.5."""
    far = float(np.nanmax(np.abs(scores - 0.5), initial=0.0))
    return next((width for width in (0.05, 0.1, 0.2, 0.3, 0.4) if far <= width), 0.5)
