"""Text measured in the cells of a terminal: a wide (East Asian) character takes two."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from excir_dask.common.wording import printable

_EIGHTHS = " ▏▎▍▌▋▊▉█"


def cells(text: str) -> int:
    """How many cells a text takes.

    >>> cells("rpm"), cells("温度"), cells("e\\u0301")
    (3, 4, 1)
    """
    return len(text) if text.isascii() else sum(map(_cells, text))


def short(text: str, most: int) -> str:
    """The text, cut to at most so many cells; a box stands for a character that would move the cursor.

    >>> short("temperature", 6), short("温度センサー", 6), short("a\\nb", 6)
    ('tempe…', '温度…', 'a□b')
    """
    shown = printable(text)
    if cells(shown) <= most:
        return shown
    start, room = "", most - 1
    for character in shown:
        room -= _cells(character)
        if room < 0:
            break
        start += character
    return start + "…"


def fit(text: str, width: int) -> str:
    """The text in exactly so many cells: cut, or padded with blanks."""
    shown = short(text, width)
    return shown + " " * (width - cells(shown))


def fill(words: Iterable[str], width: int, gap: str = "  ") -> list[str]:
    """Words in lines of at most so many cells; a longer word gets a line of its own.

    >>> fill(["one", "two", "three"], 9)
    ['one  two', 'three']
    """
    lines: list[str] = []
    for word in words:
        if lines and cells(lines[-1]) + len(gap) + cells(word) <= width:
            lines[-1] += gap + word
        else:
            lines.append(word)
    return lines


def bar(share: float, width: int) -> str:
    """A bar of block characters, ``width`` wide at 1.

    >>> bar(0.5, 8)
    '████    '
    """
    full, rest = divmod(round(share * width * 8), 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(width)


def _cells(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
