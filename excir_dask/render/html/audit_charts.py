"""Charts of an audit: scores in the baseline and in this run, and from run to run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from excir_dask.render.html.blocks import Chart
from excir_dask.render.html.explanation_charts import ROW
from excir_dask.render.html.figures import (
    AGAINST,
    DARK,
    FONT,
    INK,
    MUTED,
    PAPER,
    WITH,
    bare,
    chart,
    hover,
    name_rows,
    rounded,
)
from excir_dask.render.plots.ranking import Z95

if TYPE_CHECKING:
    import pandas as pd

WARNED = "#b07d10"
COLOUR = {"fail": AGAINST, "warn": WARNED, "ok": WITH}
AUDIT_DARK = {**DARK, WARNED: "#e0b04a"}
WORD = {"fail": "failed", "warn": "warned", "ok": "within limits"}
MARK = {"fail": " ✕", "warn": " !", "ok": ""}
TREND = 150
"""height of a trend chart in pixels"""
LEAST_RANGE = 0.1
"""least range of CIR that it spans, so that noise does not look like a trend"""
BEYOND = 0.05
"""margin below 0 and above 1, for dots at the ends"""
NAMED_RUNS = 3
"""dates below a trend chart"""


def before_and_now(table: pd.DataFrame) -> Chart:
    """A row per name: a ring for the baseline, a dot for this run, a line between them, whiskers for both.

    ``table`` has ``name cir_was cir_now error_was error_now shift severity``.
    """
    from bokeh.models import ColumnDataSource, Scatter, Segment, Span

    count = len(table)
    ends = {
        f"{end}_{when}": (table[f"cir_{when}"] + sign * Z95 * table[f"error_{when}"]).clip(0.0, 1.0)
        for when in ("was", "now")
        for end, sign in (("low", -1), ("high", 1))
    }
    low = min(float(ends["low_was"].min()), float(ends["low_now"].min()), 0.5)
    high = max(float(ends["high_was"].max()), float(ends["high_now"].max()), 0.5)
    margin = 0.04 * (high - low) + 0.005
    figure = bare(ROW * count + 46, (low - margin, high + margin), (count - 0.4, -0.6))
    marks = [MARK[severity] for severity in table["severity"]]
    name_rows(figure, list(table["name"]), [f"{s:+.3f}{mark}" for s, mark in zip(table["shift"], marks, strict=True)])
    figure.xaxis.axis_label = "CIR (0.5: none either way)"
    source = ColumnDataSource(
        {
            "y": list(range(count)),
            "above": [round(place - 0.16, 2) for place in range(count)],
            "below": [round(place + 0.16, 2) for place in range(count)],
            "name": list(table["name"]),
            "was": rounded(table["cir_was"]),
            "now": rounded(table["cir_now"]),
            "shift": rounded(table["shift"]),
            "colour": [COLOUR[severity] for severity in table["severity"]],
            "word": [WORD[severity] for severity in table["severity"]],
            **{name: rounded(values) for name, values in ends.items()},
        }
    )
    figure.add_layout(Span(location=0.5, dimension="height", line_color=MUTED, line_width=1, line_dash="dotted"))
    # bare glyphs: figure.scatter and the like add three more of each, which are half of the time and of the bytes
    for x0, x1, y, colour, width, alpha in (
        ("was", "now", "y", "colour", 3.0, 0.45),
        ("low_was", "high_was", "above", MUTED, 1.4, 1.0),
        ("low_now", "high_now", "below", INK, 1.4, 1.0),
    ):
        line = Segment(x0=x0, y0=y, x1=x1, y1=y, line_color=colour, line_width=width, line_alpha=alpha)
        figure.add_glyph(source, line)
    rings, dots = (
        figure.add_glyph(source, Scatter(x=x, y="y", size=10, fill_color=fill, line_color=line, line_width=width))
        for x, fill, line, width in (("was", PAPER, MUTED, 2.0), ("now", "colour", PAPER, 0.8))
    )
    hover(
        figure, [dots, rings],
        {
            "name": "@name", "before": "@was{0.0000} (@low_was{0.000} to @high_was{0.000})",
            "now": "@now{0.0000} (@low_now{0.000} to @high_now{0.000})", "change": "@shift{+0.0000}",
            "verdict": "@word",
        },
    )  # fmt: skip
    said = ", ".join(
        f"{row['name']} from {row['cir_was']:.3f} to {row['cir_now']:.3f} ({WORD[row['severity']]})"
        for row in table.head(5).to_dict("records")
    )
    return chart(figure, f"Scores of {count} names in the baseline and in this run: {said}")


def span(tables: Iterable[pd.DataFrame]) -> float:
    """The range of CIR that all trend charts show, so that equal slopes mean equal changes."""
    return max(LEAST_RANGE, *(1.1 * float(np.ptp(_band(table))) for table in tables))


def _band(table: pd.DataFrame) -> NDArray[np.float64]:
    """Lower and upper ends of the 95% band, (2, runs)."""
    cir, error = table["cir"].to_numpy(dtype=np.float64), table["error"].to_numpy(dtype=np.float64)
    return np.clip([cir - Z95 * error, cir + Z95 * error], 0.0, 1.0)


def trend(table: pd.DataFrame, when: list[str], baseline: str | None, height: float) -> Chart:
    """CIR of one name from run to run with its 95% band; failed runs have a cross, the baseline has a ring.

    ``height`` is the range of CIR it shows, from :func:`span`.
    """
    from bokeh.models import ColumnDataSource, FixedTicker, Line, Scatter, Span, Text, VArea

    cir = table["cir"].to_numpy(dtype=np.float64)
    low, high = _band(table)
    bottom = (float(low.min()) + float(high.max()) - height) / 2
    bottom = max(min(bottom, 1.0 + BEYOND - height), -BEYOND)
    top = bottom + height
    count = len(table)
    figure = bare(TREND, (-0.5, count - 0.5), (bottom, top))
    places = np.unique(np.linspace(0, count - 1, min(count, NAMED_RUNS)).round().astype(int)).tolist()
    figure.xaxis.ticker = FixedTicker(ticks=places, minor_ticks=[])
    figure.xaxis.major_label_overrides = {place: when[place] for place in places}
    figure.xaxis.major_label_text_font_size = "11px"
    figure.yaxis.ticker.desired_num_ticks = 4
    figure.xgrid.grid_line_color = None
    figure.min_border_right = 34
    x = list(range(count))
    source = ColumnDataSource(
        {
            "x": x, "cir": rounded(cir), "low": rounded(low), "high": rounded(high), "when": when,
            "status": [WORD[status] for status in table["status"]],
        }
    )  # fmt: skip
    if bottom < 0.5 < top:
        figure.add_layout(Span(location=0.5, dimension="width", line_color=MUTED, line_width=1, line_dash="dotted"))
    figure.add_glyph(source, VArea(x="x", y1="low", y2="high", fill_color=WITH, fill_alpha=0.2))
    figure.add_glyph(source, Line(x="x", y="cir", line_color=WITH, line_width=2))
    dots = figure.add_glyph(source, Scatter(x="x", y="cir", size=6, fill_color=WITH, line_color=WITH))
    at = [place for place, run in enumerate(table["run"]) if run == baseline]
    if at:
        ring = Scatter(x="x", y="y", size=13, fill_color=None, line_color=INK, line_width=1.6)
        figure.add_glyph(ColumnDataSource({"x": at, "y": rounded(cir[at])}), ring)
    failed = np.flatnonzero((table["status"] == "fail").to_numpy()).tolist()
    if failed:
        cross = Text(
            x="x", y="y", text={"value": "✕"}, text_align="center", text_baseline="middle", text_color=INK,
            text_font={"value": FONT}, text_font_size="13px",
        )  # fmt: skip
        figure.add_glyph(ColumnDataSource({"x": failed, "y": rounded(cir[failed])}), cross)
    hover(
        figure, [dots],
        {"run": "@when", "CIR": "@cir{0.0000}", "95%": "@low{0.000} to @high{0.000}", "audit": "@status"},
    )  # fmt: skip
    name = table["name"].iloc[0]
    return chart(figure, f"CIR of {name} over {count} runs, from {cir[0]:.3f} to {cir[-1]:.3f}")
