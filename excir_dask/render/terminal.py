"""Text measured in the cells of a terminal, of which a wide (East Asian) character takes two."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

_EIGHTHS = " ▏▎▍▌▋▊▉█"

_MOVING = ("Cc", "Zl", "Zp")
"""categories of characters that end a line or steer a terminal"""


def cells(text: str) -> int:
    """Cells that a text takes.

    >>> cells("rpm"), cells("温度"), cells("e\\u0301")
    (3, 4, 1)
    """
    return len(text) if text.isascii() else sum(map(_cells, text))


def short(text: str, most: int) -> str:
    """The text, cut where it takes more than so many cells; what would move the cursor is shown as a box.

    >>> short("temperature", 6), short("温度センサー", 6), short("a\\nb", 6)
    ('tempe…', '温度…', 'a□b')
    """
    shown = "".join("□" if unicodedata.category(character) in _MOVING else character for character in text)
    if cells(shown) <= most:
        return shown
    kept, room = "", most - 1
    for character in shown:
        room -= _cells(character)
        if room < 0:
            break
        kept += character
    return kept + "…"


def fit(text: str, width: int) -> str:
    """The text in exactly so many cells: cut, or with blanks after it."""
    shown = short(text, width)
    return shown + " " * (width - cells(shown))


def fill(words: Iterable[str], width: int, gap: str = "  ") -> list[str]:
    """Words in lines of at most so many cells (a longer word has a line of its own).

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
