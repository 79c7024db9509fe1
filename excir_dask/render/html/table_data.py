"""Large tables as the script of a page reads them: so short that 10,000 rows take less than a megabyte."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["text", "whole", "number", "score", "direction", "flag"]

SCALE = 100_000
"""scores are stored as whole multiples of 1 / SCALE: six characters instead of eighteen"""


@dataclass(frozen=True)
class Column:
    """One column of a large table."""

    title: str
    kind: Kind
    values: Iterable[Any]
    hint: str = ""
    """tooltip of its heading"""
    pick: bool = False
    """the reader may filter by one of its values"""
    picked: bool = False
    """the first of them is chosen when the page opens"""
    bar: bool = False
    """a score with a bar from 0.5 below it"""


def pack(columns: Sequence[Column], sort: int = 0) -> dict[str, Any]:
    """Columns as the script reads them; ``sort`` is the index of the column that the rows are sorted by."""
    return {"sort": sort, "scale": SCALE, "columns": [_packed(column) for column in columns]}


def size(table: dict[str, Any]) -> int:
    """Bytes of a table in a page."""
    return len(json.dumps(table, separators=(",", ":"), ensure_ascii=False).encode("utf-8"))


def _packed(column: Column) -> dict[str, Any]:
    """Values that repeat are stored once, with their positions."""
    values = [_short(value, column.kind) for value in column.values]
    places: dict[Any, int] = {}
    at = [places.setdefault(value, len(places)) for value in values]
    found: dict[str, Any] = {"title": column.title, "kind": column.kind}
    found |= {"hint": column.hint} if column.hint else {}
    found |= {"pick": True} if column.pick else {}
    found |= {"picked": True} if column.picked else {}
    found |= {"bar": True} if column.bar else {}
    if len(places) == 1:
        return {**found, "count": len(values), "same": values[0]}
    if len(places) <= len(values) // 2:
        return {**found, "distinct": list(places), "at": at}
    return {**found, "values": values}


def _short(value: Any, kind: Kind) -> Any:
    if kind in ("text", "flag"):
        return str(value)
    if value is None or not math.isfinite(value):
        return None
    if kind == "score":
        return round(float(value) * SCALE)
    if kind == "number":
        short = float(f"{float(value):.4g}")
        return int(short) if short.is_integer() and abs(short) < 1e15 else short
    return int(value)
