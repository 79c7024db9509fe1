"""What a report is made of. Every block has a ``kind``, the macro of ``assets/blocks.html`` that draws it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

Tone = Literal["good", "warn", "bad", "plain"]


class Strong(str):
    """A part of a paragraph that stands out, such as a name."""

    __slots__ = ()
    strong = True


@dataclass(frozen=True)
class Paragraphs:
    """Paragraphs of text, each a string or a list of parts."""

    kind: ClassVar[str] = "paragraphs"
    paragraphs: Sequence[str | Sequence[str]]


@dataclass(frozen=True)
class Points:
    """A list; each point starts with a part that stands out, which may be empty."""

    kind: ClassVar[str] = "points"
    points: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Facts:
    """Names and values, one below the other."""

    kind: ClassVar[str] = "facts"
    facts: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Verdict:
    """What a reader came for, in a sentence."""

    kind: ClassVar[str] = "verdict"
    text: str
    tone: Tone = "plain"
    word: str = ""
    """the verdict in one word, which stands out: not everybody sees colours"""


@dataclass(frozen=True)
class Legend:
    """Signs of a chart and what they mean; a sign is a class ``key`` of ``assets/page.css``, such as ``with``."""

    kind: ClassVar[str] = "legend"
    entries: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Chart:
    """A Bokeh figure, as :func:`~excir_dask.render.html.figures.chart` makes it."""

    kind: ClassVar[str] = "chart"
    item: Mapping[str, Any]
    height: int
    """pixels"""
    label: str
    """what it shows, for screen readers"""


@dataclass(frozen=True)
class Panels:
    """Small charts side by side, or below each other where there is no room; each has a name and a remark."""

    kind: ClassVar[str] = "panels"
    panels: Sequence[tuple[str, str, Chart]]


@dataclass(frozen=True)
class Grid:
    """A small table, all of it on the page."""

    kind: ClassVar[str] = "grid"
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    text_columns: int = 1
    """how many columns, from the left, hold text; the others hold numbers"""
    strong: int | None = None
    """row that stands out"""


@dataclass(frozen=True)
class Rows:
    """A large table that the reader searches, sorts and filters."""

    kind: ClassVar[str] = "rows"
    content: Mapping[str, Any]
    """as :func:`~excir_dask.render.html.table_data.pack` makes it"""
    what: str
    """what its rows are, in the plural"""
    note: str = ""
    """what was left out, and where to find it"""
    profiles: str | None = None
    """names in the first column open profiles: for the output in column "output", or for this one"""


@dataclass(frozen=True)
class Profiles:
    """Profiles of features, which open from their names here and in the large table."""

    kind: ClassVar[str] = "profiles"
    output: str
    names: Sequence[str]
    """features that are linked here"""
    content: Mapping[str, Any]
    """as :func:`~excir_dask.render.html.profile_data.profiles` makes it"""


@dataclass(frozen=True)
class GroupList:
    """Groups, each with its members."""

    kind: ClassVar[str] = "groups"
    groups: Sequence[Mapping[str, Any]]
    note: str = ""


@dataclass(frozen=True)
class Choice:
    """Several panels, of which the reader chooses one."""

    kind: ClassVar[str] = "choice"
    label: str
    panels: Sequence[tuple[str, Sequence[Block]]]


Block = Paragraphs | Points | Facts | Verdict | Legend | Chart | Panels | Grid | Rows | Profiles | GroupList | Choice


@dataclass(frozen=True)
class Section:
    """A part of a report with a heading."""

    key: str
    """its anchor in the page"""
    title: str
    blocks: Sequence[Block]
    lead: str = ""
    """one line under the heading"""


@dataclass(frozen=True)
class Report:
    """A whole page."""

    kicker: str
    """the kind of report"""
    title: str
    summary: Sequence[Block]
    """blocks above all sections"""
    cards: Sequence[tuple[str, str, str]]
    """numbers at a glance: value, name and a remark"""
    sections: Sequence[Section]
    footer: str
    dark: Mapping[str, str]
    """colours of charts on a light page -> on a dark one"""
