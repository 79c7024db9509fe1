"""Sections of docs/EVIDENCE.md: text between two marks that a command makes again, and what has drifted in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "EVIDENCE.md"
END = "<!-- end -->"
NUMBER = re.compile(r"(?<![A-Za-z_0-9])[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")


def mark(name: str) -> str:
    """What stands above a section."""
    return f"<!-- python jobs/reproduce.py {name} -->"


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (titles, ["---"] * len(titles), *rows))


def section(page: str, name: str) -> str:
    """The text of one section of a page."""
    if (count := page.count(mark(name))) != 1:
        raise ValueError(f"the page has {count} sections '{name}'; write {mark(name)} once, then {END}")
    return page.split(mark(name))[1].split(END)[0].strip()


def with_section(page: str, name: str, text: str) -> str:
    """The page with another text in one section."""
    section(page, name)  # an error if there is none
    before, rest = page.split(mark(name))
    return f"{before}{mark(name)}\n{text}\n{END}{rest.split(END, 1)[1]}"


def drift(expected: str, found: str, tolerance: float) -> list[str]:
    """Lines whose words differ, or whose numbers differ by more than the tolerance: both versions of each.

    >>> drift("| a | 0.50 |", "| a | 0.51 |", 0.02), drift("| a | 0.5 |", "| b | 0.5 |", 0.02)
    ([], ['| a | 0.5 | -> | b | 0.5 |'])
    """
    old, new = expected.splitlines(), found.splitlines()
    width = max(len(old), len(new))
    pairs = zip(old + [""] * (width - len(old)), new + [""] * (width - len(new)), strict=True)
    return [f"{one} -> {other}" for one, other in pairs if not _same(one, other, tolerance)]


def _same(one: str, other: str, tolerance: float) -> bool:
    if NUMBER.sub("#", one) != NUMBER.sub("#", other):
        return False
    values = ([float(text.replace(",", "")) for text in NUMBER.findall(line)] for line in (one, other))
    return all(abs(a - b) <= tolerance + 1e-9 for a, b in zip(*values, strict=True))
