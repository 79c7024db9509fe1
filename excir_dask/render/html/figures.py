"""What every chart of a report begins with: a bare Bokeh figure, the inks for both grounds, and names as labels."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from excir_dask.render.html.blocks import Chart
from excir_dask.render.plots.ranking import COLOURS
from excir_dask.render.terminal import cells

INK, MUTED, GRID = "#20242a", "#626a73", "#e2e5e9"
PAPER = "#fefefe"
"""not quite white: Bokeh leaves out what is its default, and the script could not swap it"""
WITH, AGAINST, NEITHER = COLOURS[1], COLOURS[-1], COLOURS[0]
DARK = {
    INK: "#e8eaed", MUTED: "#a3abb5", GRID: "#343a42", PAPER: "#191d22",
    WITH: "#5aa9e6", AGAINST: "#ec8460", NEITHER: "#8d949c",
}  # fmt: skip
"""colours of a chart on a light ground -> on a dark one; the page's script swaps them"""
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"
LABEL = 20
"""small letters of a name beside a chart, or as many others as take their room: on a phone more would leave none for
the chart"""
CAPITAL = 1.4
"""small letters that take the room of a capital one"""
_ROUNDS = 20
"""of telling names apart; each splits what is alike, so that few are needed"""


def bare(height: int, x_range: Any, y_range: Any, **options: Any) -> Any:
    """A figure as wide as its place, without tools: a finger that scrolls the page must not move the chart."""
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
    """Names on the left of rows 0, 1, ... and, if they are given, values on their right."""
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
    """What a reader sees on pointing at something; Bokeh escapes the values."""
    from bokeh.models import HoverTool

    figure.add_tools(HoverTool(renderers=list(renderers), tooltips=list(tooltips.items()), point_policy="follow_mouse"))


def labels(names: Sequence[str]) -> list[str]:
    """Names beside a chart, none wider than :data:`LABEL`, and cut so that they still differ.

    >>> labels(["wheel_front_01_temperature", "wheel_front_02_temperature", "speed"])
    ['wheel_front_01…', 'wheel_front_02…', 'speed']
    """
    shown = {name: label(name) for name in names}
    for _ in range(_ROUNDS):
        alike: dict[str, list[str]] = {}
        for name, text in shown.items():
            alike.setdefault(text, []).append(name)
        clashes = [some for some in alike.values() if len(some) > 1]
        if not clashes:
            break
        for some in clashes:
            shown |= _apart(some)
    return [shown[name] for name in names]


def _apart(names: Sequence[str]) -> dict[str, str]:
    """Labels of names that begin and end alike: mostly of what is between, with as much of the beginning as fits."""
    start = _beginning(names)
    found: dict[str, str] = {}
    for known in (re.sub(r"[^_.\W]*$", "", start), start):  # whole words, unless that shows no difference
        left = [name[len(known) :] for name in names]
        end = re.sub(r"^[^_.\W]*", "", _beginning([name[::-1] for name in left])[::-1])
        inner = [name[: len(name) - len(end)] + "…" * bool(end) for name in left]
        head = _first(known, LABEL - 1 - max(map(_width, inner)))
        head = known if head == known else f"{head}…"
        found = {name: label(head + text) for name, text in zip(names, inner, strict=True)}
        if len(set(found.values())) > 1:
            break
    return found


def label(name: str, most: int = LABEL) -> str:
    """A name as a chart shows it: cut in its middle, because names often differ at both ends.

    >>> label("sensor_front_left_axle_temperature", 20), label("温度センサー", 8)
    ('sensor_fr…emperature', '温…サー')
    """
    cut = name
    if _width(name) > most:
        cut = f"{_first(name, (most - 1) // 2)}…{_first(name[::-1], most // 2)[::-1]}"
    # Bokeh takes $$...$$, \[...\] and \(...\) for formulas, and would look for a typesetter on the network.
    return cut.replace("$$", "$\u200b$").replace("\\[", "\\\u200b[").replace("\\(", "\\\u200b(")


def _width(text: str) -> float:
    """Small letters that would take as much room."""
    return sum(CAPITAL if mark.isupper() else cells(mark) for mark in text)


def _first(text: str, room: float) -> str:
    """As much of a text's beginning as takes the room of so many small letters."""
    ends = accumulate(map(_width, text))
    return text[: sum(end <= room for end in ends)]


def _beginning(names: Sequence[str]) -> str:
    """What all names begin with."""
    first, last = min(names), max(names)
    return first[: next((place for place, mark in enumerate(first) if mark != last[place]), len(first))]


def rounded(values: Any, digits: int = 4) -> list[float | None]:
    """Numbers that take few characters in a file; what is missing is None."""
    return [None if value != value else round(float(value), digits) for value in values]
