"""Which part of a lake an audit reads: a template over partition keys, filled in for a date."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from pyarrow import fs

from excir_dask.errors import LakeError, UsageError, nearest
from excir_dask.lake.store_errors import redact
from excir_dask.lake.stores import filesystem_of

_FIELD = re.compile(r"\{\{\s*(.*?)\s*\}\}")
_DATE = ("date", "year", "month", "day")

MOST_DAYS = 3660
"""of a backfill: a wrong year would otherwise start an audit of a lifetime"""


class NotThereError(LakeError):
    """The lake has not this window, perhaps not yet."""

    exit_code = 75


@dataclass(frozen=True)
class Window:
    """A template such as ``date={{ date }}``; fields are date, year, month, day and keys that the user gives."""

    template: str

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(_FIELD.findall(self.template)))

    @property
    def dated(self) -> bool:
        return any(field in _DATE for field in self.fields)

    def fill(self, day: date | None, keys: Mapping[str, str]) -> str:
        """The path below the lake for one day.

        >>> Window("region={{ region }}/date={{ date }}").fill(date(2026, 9, 1), {"region": "eu"})
        'region=eu/date=2026-09-01'
        """
        known = values(day, keys)
        for key in keys:
            if key in _DATE or key not in self.fields:
                raise UsageError(
                    f"--key {key} has no place in the window '{self.template}'{nearest(key, self.fields)}; "
                    "dates are given by --date"
                )
        for field in self.fields:
            if field not in known:
                raise UsageError(
                    f"the window '{self.template}' needs {field}; add --key {field}=VALUE{nearest(field, _DATE)}"
                )
            value = known[field]
            if not value or value in (".", "..") or "/" in value:
                raise UsageError(f"{field} is '{value}'; it is one part of a path, without '/'")
        return fill(self.template, known)


def values(day: date | None, keys: Mapping[str, str]) -> dict[str, str]:
    """What fields of a template stand for."""
    found = dict(keys)
    if day is not None:
        found |= {"date": day.isoformat(), "year": f"{day:%Y}", "month": f"{day:%m}", "day": f"{day:%d}"}
    return found


def fill(template: str, known: Mapping[str, str]) -> str:
    """A template with its fields filled in, all of which are known.

    >>> fill("prod-{{ region }}", {"region": "eu"})
    'prod-eu'
    """
    return _FIELD.sub(lambda match: known[match.group(1)], template)


def check_there(lake: str, window: str, storage_options: Mapping[str, Any] | None = None) -> None:
    """Say which windows a lake has, if it has not the one that is asked for."""
    filesystem, path = filesystem_of(below(lake, window), storage_options)
    if any(mark in window for mark in "*?[") or filesystem.get_file_info(path).type != fs.FileType.NotFound:
        return
    around = fs.FileSelector(posixpath.dirname(path), allow_not_found=True)
    names = sorted(info.base_name for info in filesystem.get_file_info(around) if info.base_name[:1] not in ("_", "."))
    others = f"the last one there is {names[-1]}" if names else f"there is nothing in {posixpath.dirname(path)} at all"
    root = filesystem.get_file_info(filesystem_of(lake, storage_options)[1])
    kind = LakeError if root.type == fs.FileType.NotFound else NotThereError
    raise kind(
        f"the lake {redact(lake)} has no {window}: {others}; run again when it is there, or check window and --date"
    )


def below(place: str, *parts: str) -> str:
    """A path below a path or URL; what a URL asks for at its end stays there.

    >>> below("s3://bucket/lake/?region=eu", "date=1")
    's3://bucket/lake/date=1?region=eu'
    """
    path, query = split_query(place)
    return posixpath.join(path.rstrip("/"), *parts) + query


def split_query(place: str) -> tuple[str, str]:
    """A URL without what it asks for at its end, and that."""
    path, query = re.fullmatch(r"(.*?)(\?\w+=.*)?", place, re.DOTALL).groups(default="")  # type: ignore[union-attr]
    return (path, query) if "://" in place else (place, "")


def read_date(text: str | None) -> date:
    """A date, ``today`` or ``yesterday`` in UTC; yesterday by default, because today's partition still grows.

    >>> read_date("2026-09-01")
    datetime.date(2026, 9, 1)
    """
    today = datetime.now(UTC).date()
    if text in (None, "yesterday"):
        return today - timedelta(days=1)
    if text == "today":
        return today
    try:
        return date.fromisoformat(str(text))
    except ValueError:
        raise UsageError(f"'{text}' is not a date such as 2026-09-01, today or yesterday") from None


def days(first: date, last: date) -> Iterator[date]:
    """All days from the first to the last, both included."""
    count = (last - first).days + 1
    if not 1 <= count <= MOST_DAYS:
        raise UsageError(f"from {first} to {last} are {count} days; give 1 to {MOST_DAYS:,}, the earlier day first")
    return (first + timedelta(days=number) for number in range(count))
