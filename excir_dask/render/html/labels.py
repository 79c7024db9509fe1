"""Names beside a chart: cut to a width that a phone has room for, and so that they still differ."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate

from excir_dask.render.terminal import cells

LABEL = 20
"""width of a name beside a chart, in lower-case letters: on a phone a longer one would leave no room for the chart"""
CAPITAL = 1.4
"""width of a capital, in lower-case letters"""
_COLUMN = 3
"""width of the start of a column's name that must fit before its category"""
_ROUNDS = 20
"""of telling names apart; each round splits what looks alike, so few are needed"""


def labels(names: Sequence[str]) -> list[str]:
    """Names beside a chart, at most as wide as :data:`LABEL`, cut so that they still differ.

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
    """Labels of names that start and end alike: what is in between, after as much of the start as fits."""
    start = _common_start(names)
    found: dict[str, str] = {}
    for known in (re.sub(r"[^_.\W]*$", "", start), start):  # whole words, unless that shows no difference
        left = [name[len(known) :] for name in names]
        end = re.sub(r"^[^_.\W]*", "", _common_start([name[::-1] for name in left])[::-1])
        inner = [name[: len(name) - len(end)] + "…" * bool(end) for name in left]
        head = _start(known, LABEL - 1 - max(map(_width, inner)))
        head = known if head == known else f"{head}…"
        found = {name: label(head + text) for name, text in zip(names, inner, strict=True)}
        if len(set(found.values())) > 1:
            break
    return found


def label(name: str, most: int = LABEL) -> str:
    """A name as a chart shows it: cut in its middle, because names often differ at both ends.

    Of an indicator the category stays whole, if it leaves room for the start of its column.

    >>> label("sensor_front_left_axle_temperature", 20), label("温度センサー", 8)
    ('sensor_fr…emperature', '温…サー')
    >>> label("manufacturer=CANADAIR", 20)
    'manufa…=CANADAIR'
    """
    cut = name
    column, equals, category = name.partition("=")
    room = most - 1 - _width(equals + category)
    if _width(name) > most and equals and category and room >= _COLUMN:
        cut = f"{_start(column, room)}…{equals}{category}"
    elif _width(name) > most:
        cut = f"{_start(name, (most - 1) // 2)}…{_start(name[::-1], most // 2)[::-1]}"
    # Bokeh reads $$...$$, \[...\] and \(...\) as formulas, and would fetch a typesetter from the network.
    return cut.replace("$$", "$\u200b$").replace("\\[", "\\\u200b[").replace("\\(", "\\\u200b(")


def _width(text: str) -> float:
    """Width of a text in lower-case letters."""
    return sum(CAPITAL if mark.isupper() else cells(mark) for mark in text)


def _start(text: str, room: float) -> str:
    """As much of the start of a text as fits into so many lower-case letters."""
    ends = accumulate(map(_width, text))
    return text[: sum(end <= room for end in ends)]


def _common_start(names: Sequence[str]) -> str:
    """The common start of all names."""
    first, last = min(names), max(names)
    return first[: next((place for place, mark in enumerate(first) if mark != last[place]), len(first))]
