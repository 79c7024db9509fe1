"""Tables for a page's script: columns of few characters, so that 10,000 rows stay below a megabyte."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["text", "whole", "number", "score", "direction", "flag"]

SCALE = 100_000
"""scores are whole numbers of this part: six characters instead of eighteen"""


@dataclass(frozen=True)
class Column:
    """One column of a large table."""

    title: str
    kind: Kind
    values: Iterable[Any]
    hint: str = ""
    """what its heading says on pointing at it"""
    pick: bool = False
    """the reader may choose one of its values"""
    bar: bool = False
    """a score with a bar from 0.5 under it"""


def pack(columns: Sequence[Column], sort: int = 0) -> dict[str, Any]:
    """Columns as the script reads them; ``sort`` is the place of the column whose order the rows are in."""
    return {"sort": sort, "scale": SCALE, "columns": [_packed(column) for column in columns]}


def size(table: dict[str, Any]) -> int:
    """Bytes of a table in a page."""
    return len(json.dumps(table, separators=(",", ":"), ensure_ascii=False).encode("utf-8"))


def _packed(column: Column) -> dict[str, Any]:
    """Values that repeat are kept once, with their places."""
    values = [_short(value, column.kind) for value in column.values]
    places: dict[Any, int] = {}
    at = [places.setdefault(value, len(places)) for value in values]
    found: dict[str, Any] = {"title": column.title, "kind": column.kind}
    found |= {"hint": column.hint} if column.hint else {}
    found |= {"pick": True} if column.pick else {}
    found |= {"bar": True} if column.bar else {}
    if len(places) == 1:
        return {**found, "count": len(values), "same": values[0]}
    if len(places) <= len(values) // 2:
        return {**found, "words": list(places), "at": at}
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
