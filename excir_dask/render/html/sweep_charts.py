"""Charts of a sweep: runtime against agreement with the Pareto front, and agreement against the share of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from excir_dask.common.wording import percent
from excir_dask.render.html.blocks import Chart
from excir_dask.render.html.figures import AGAINST, FONT, INK, MUTED, PAPER, WITH, bare, chart, hover, rounded
from excir_dask.sweep.summary import of_kind

if TYPE_CHECKING:
    from excir_dask.results.sweep import Sweep

Floats = NDArray[np.float64]

HEIGHT = 340
TIMES = 20.0
"""ratio of the longest to the shortest run from which on the axis of seconds is logarithmic"""
AGREEMENT = (-0.02, 1.1)


def front(sweep: Sweep) -> Chart:
    """Seconds against the mean Jaccard index, a point per fraction; a bar reaches to the worst seed."""
    from bokeh.models import ColumnDataSource, FixedTicker, NumeralTickFormatter

    table = of_kind(sweep.summary)
    seconds = table["seconds"].to_numpy()
    wide = seconds.max() > TIMES * seconds.min()
    ends = (seconds.min() / 1.6, seconds.max() * 1.6) if wide else (0.0, seconds.max() * 1.12)
    figure = bare(HEIGHT, ends, AGREEMENT, x_axis_type="log" if wide else "linear")
    _dress(figure, sweep, "seconds, median over seeds" + (", logarithmic" if wide else ""), ends[1])
    if wide:
        steps = [float(f"{digit}e{power}") for power in range(-4, 7) for digit in (1, 2, 5)]
        figure.xaxis.ticker = FixedTicker(ticks=[step for step in steps if ends[0] < step < ends[1]], minor_ticks=[])
        figure.xaxis.formatter = NumeralTickFormatter(format="0,0.[0000]")
    colours = [AGAINST if fraction == sweep.chosen else WITH for fraction in table["fraction"]]
    on = [fraction in sweep.front for fraction in table["fraction"]]
    share = (np.log(seconds / ends[0]) / np.log(ends[1] / ends[0])) if wide else seconds / ends[1]
    marked = [-2 * (f in (sweep.chosen, sweep.knee, 1.0)) - (f in sweep.front) for f in table["fraction"]]
    offsets = _beside(share, table["jaccard_mean"].to_numpy(), np.argsort(marked, kind="stable"))
    source = ColumnDataSource(
        {
            "seconds": rounded(seconds, 5),
            "mean": rounded(table["jaccard_mean"]),
            "worst": rounded(table["jaccard_worst"]),
            "name": [percent(fraction) for fraction in table["fraction"]],
            "shown": ["" if off is None else percent(f) for f, off in zip(table["fraction"], offsets, strict=True)],
            "rows": [f"{rows:,}" for rows in table["rows"]],
            "line": colours,
            "fill": [colour if held else PAPER for colour, held in zip(colours, on, strict=True)],
            "off": [off or 0 for off in offsets],
        }
    )
    line = table[on].sort_values("seconds")
    figure.line(rounded(line["seconds"], 5), rounded(line["jaccard_mean"]), line_color=WITH, line_width=1.6)
    figure.segment("seconds", "worst", "seconds", "mean", line_color=MUTED, line_width=2, line_alpha=0.5, source=source)
    if sweep.knee is not None:
        knee = table[table["fraction"] == sweep.knee]
        figure.scatter(
            rounded(knee["seconds"], 5), rounded(knee["jaccard_mean"]), size=20, fill_color=None, line_color=INK,
            line_width=1.4,
        )  # fmt: skip
    dots = figure.scatter("seconds", "mean", size=11, fill_color="fill", line_color="line", line_width=2, source=source)
    figure.text(
        "seconds", "mean", text="shown", y_offset="off", text_align="center", text_baseline="middle", text_color=INK,
        text_font={"value": FONT}, text_font_size="12px", source=source,
    )  # fmt: skip
    hover(
        figure, [dots],
        {
            "share": "@name", "rows": "@rows", "seconds": "@seconds{0.000}", "mean": "@mean{0.000}",
            "worst seed": "@worst{0.000}",
        },
    )  # fmt: skip
    names = ", ".join(percent(fraction) for fraction in sweep.front)
    return chart(figure, f"Seconds against agreement, a point per fraction; on the Pareto front: {names}")


def growth(sweep: Sweep) -> Chart:
    """Fraction against the Jaccard index: the mean over seeds, and the band from the worst seed to the best."""
    from bokeh.models import ColumnDataSource, FixedTicker, Span

    table = of_kind(sweep.summary)
    fractions = table["fraction"].to_numpy()
    wide = fractions.min() < 0.1
    ends = (fractions.min() / 1.5, 1.25) if wide else (0.0, 1.04)
    figure = bare(HEIGHT, ends, AGREEMENT, x_axis_type="log" if wide else "linear")
    _dress(figure, sweep, "share of the rows" + (", logarithmic" if wide else ""), ends[1])
    figure.xaxis.ticker = FixedTicker(ticks=fractions.tolist(), minor_ticks=[])
    figure.xaxis.major_label_overrides = {float(fraction): percent(fraction) for fraction in fractions}
    runs = sweep.runs[sweep.runs["kind"] == "features"].groupby(["fraction", "seed"])["jaccard"].min()
    seeds = runs.groupby("fraction")
    low, high = rounded(seeds.min()), rounded(seeds.max())
    x = fractions.tolist()
    source = ColumnDataSource(
        {
            "x": x,
            "mean": rounded(table["jaccard_mean"]),
            "low": low,
            "high": high,
            "name": [percent(fraction) for fraction in fractions],
        }
    )
    figure.varea("x", "low", "high", fill_color=WITH, fill_alpha=0.2, source=source)
    figure.line("x", "mean", line_color=WITH, line_width=2, source=source)
    dots = figure.scatter("x", "mean", size=8, color=WITH, source=source)
    if sweep.chosen is not None:
        figure.add_layout(Span(location=sweep.chosen, dimension="height", line_color=AGAINST, line_width=1.6))
    hover(
        figure,
        [dots],
        {"share": "@name", "mean": "@mean{0.000}", "worst seed": "@low{0.000}", "best seed": "@high{0.000}"},
    )
    return chart(figure, "Share of the rows against agreement with the ranking of all rows")


def _beside(x: Floats, y: Floats, order: NDArray[np.int64]) -> list[int | None]:
    """Pixels by which a label is above (negative) or below its point; None if there is room for neither on a phone.

    ``x`` counts from 0 to 1 along the axis, ``y`` are values; points that come first in ``order`` get labels first.
    """
    taken = [(across, up) for across, up in zip(x, y, strict=True)]
    found: list[int | None] = [None] * len(x)
    for place in order:
        for pixels in (-18, 18):
            across, up = x[place], y[place] - pixels / 18 * 0.085
            if all(abs(across - left) > 0.15 or abs(up - height) > 0.06 for left, height in taken):
                found[place] = pixels
                taken.append((across, up))
                break
    return found


def _dress(figure: Any, sweep: Sweep, below: str, end: float) -> None:
    """Labels of the axes, and lines at the target and at what chance gives."""
    from bokeh.models import Label, Span

    first = of_kind(sweep.summary).iloc[0]
    figure.xaxis.axis_label = below
    figure.yaxis.axis_label = f"Jaccard@{first['k']}"
    figure.grid.minor_grid_line_color = None
    for level, name, dash in (
        (float(sweep.settings["target_jaccard"]), "target", "dashed"),
        (float(first["jaccard_chance"]), "chance", "dotted"),
    ):
        figure.add_layout(Span(location=level, dimension="width", line_color=MUTED, line_dash=dash, line_width=1))
        words = Label(
            x=end, y=level, text=f"{name} {level:.3g}", text_font=FONT, text_font_size="11px", text_color=MUTED,
            text_align="right", text_baseline="top", y_offset=-2,
        )  # fmt: skip
        figure.add_layout(words)
