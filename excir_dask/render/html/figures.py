"""What every chart of a report starts from: a bare Bokeh figure, and its colours on a light and a dark page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from excir_dask.render.html.blocks import Chart
from excir_dask.render.html.labels import labels
from excir_dask.render.plots.ranking import COLOURS

INK, MUTED, GRID = "#20242a", "#626a73", "#e2e5e9"
PAPER = "#fefefe"
"""not quite white: Bokeh omits its default colour from the JSON, and the script could not swap it"""
WITH, AGAINST, NEITHER = COLOURS[1], COLOURS[-1], COLOURS[0]
DARK = {
    INK: "#e8eaed", MUTED: "#a3abb5", GRID: "#343a42", PAPER: "#191d22",
    WITH: "#5aa9e6", AGAINST: "#ec8460", NEITHER: "#8d949c",
}  # fmt: skip
"""colours of a chart on a light page -> on a dark one; the script of the page swaps them"""
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"


def bare(height: int, x_range: Any, y_range: Any, **options: Any) -> Any:
    """A figure as wide as its container, without tools: scrolling the page with a finger must not move the chart."""
    from bokeh.models import NoOverlap
    from bokeh.plotting import figure

    made = figure(
        height=height, x_range=x_range, y_range=y_range, sizing_mode="stretch_width", toolbar_location=None, tools="",
        background_fill_color=PAPER, border_fill_color=PAPER, outline_line_color=None, **options,
    )  # fmt: skip
    made.min_border_right = 6
    for axis in (made.xaxis, made.yaxis):
        axis.axis_line_color = None
        axis.major_tick_line_color = None
        axis.minor_tick_line_color = None
        axis.major_label_text_font = FONT
        axis.major_label_text_font_size = "12px"
        axis.major_label_text_color = MUTED
        axis.axis_label_text_font = FONT
        axis.axis_label_text_font_size = "12px"
        axis.axis_label_text_font_style = "normal"
        axis.axis_label_text_color = MUTED
    made.xaxis.major_label_policy = NoOverlap()
    made.grid.grid_line_color = GRID
    return made


def chart(figure: Any, label: str) -> Chart:
    """The figure as a block of a page."""
    from bokeh.embed import json_item

    return Chart(json_item(figure), int(figure.height), label)


def name_rows(figure: Any, names: Sequence[str], values: Sequence[str] = ()) -> None:
    """Names on the left of rows 0, 1, ... and, if given, values on the right."""
    from bokeh.models import FixedTicker, LinearAxis

    places = list(range(len(names)))
    axis = figure.yaxis[0]
    axis.ticker = FixedTicker(ticks=places, minor_ticks=[])
    axis.major_label_overrides = dict(zip(places, labels(names), strict=True))
    axis.major_label_text_color = INK
    axis.major_label_standoff = 8
    figure.ygrid.grid_line_color = None
    if values:
        right = LinearAxis(
            ticker=FixedTicker(ticks=places, minor_ticks=[]),
            major_label_overrides=dict(zip(places, values, strict=True)),
            axis_line_color=None, major_tick_line_color=None, minor_tick_line_color=None,
            major_label_text_font=FONT, major_label_text_font_size="12px", major_label_text_color=MUTED,
        )  # fmt: skip
        figure.add_layout(right, "right")


def hover(figure: Any, renderers: Sequence[Any], tooltips: Mapping[str, str]) -> None:
    """Tooltips; Bokeh escapes the values."""
    from bokeh.models import HoverTool

    figure.add_tools(HoverTool(renderers=list(renderers), tooltips=list(tooltips.items()), point_policy="follow_mouse"))


def rounded(values: Any, digits: int = 4) -> list[float | None]:
    """Numbers of few characters; missing values are None."""
    return [None if value != value else round(float(value), digits) for value in values]
