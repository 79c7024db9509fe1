"""The part of a lake that an audit reads: a template over partition keys, filled in for a date."""

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
"""most days of a backfill: a mistyped year must not start thousands of audits"""


class WindowMissingError(LakeError):
    """The lake does not have this window, perhaps not yet."""

    exit_code = 75


@dataclass(frozen=True)
class Window:
    """A template such as ``date={{ date }}``; its fields are date, year, month, day and keys of the user."""

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
                    f"--key {key} is not a field of the window '{self.template}'{nearest(key, self.fields)}; "
                    "give dates with --date"
                )
        for field in self.fields:
            if field not in known:
                raise UsageError(
                    f"the window '{self.template}' needs {field}; add --key {field}=VALUE{nearest(field, _DATE)}"
                )
            value = known[field]
            if not value or value in (".", "..") or "/" in value:
                raise UsageError(f"{field} is '{value}'; give a single part of a path, without '/'")
        return fill(self.template, known)


def values(day: date | None, keys: Mapping[str, str]) -> dict[str, str]:
    """The values of a template's fields."""
    found = dict(keys)
    if day is not None:
        found |= {"date": day.isoformat(), "year": f"{day:%Y}", "month": f"{day:%m}", "day": f"{day:%d}"}
    return found


def fill(template: str, known: Mapping[str, str]) -> str:
    """A template with its fields filled in.

    >>> fill("prod-{{ region }}", {"region": "eu"})
    'prod-eu'
    """
    return _FIELD.sub(lambda match: known[match.group(1)], template)


def check_exists(lake: str, window: str, storage_options: Mapping[str, Any] | None = None) -> None:
    """Refuse a window that the lake does not have, and name the last one that it has."""
    filesystem, path = filesystem_of(join_path(lake, window), storage_options)
    if any(mark in window for mark in "*?[") or filesystem.get_file_info(path).type != fs.FileType.NotFound:
        return
    around = fs.FileSelector(posixpath.dirname(path), allow_not_found=True)
    names = sorted(info.base_name for info in filesystem.get_file_info(around) if info.base_name[:1] not in ("_", "."))
    others = f"the last one is {names[-1]}" if names else f"{posixpath.dirname(path)} is empty"
    root = filesystem.get_file_info(filesystem_of(lake, storage_options)[1])
    kind = LakeError if root.type == fs.FileType.NotFound else WindowMissingError
    raise kind(
        f"the lake {redact(lake)} has no {window}: {others}; run again when it is complete, or check window and --date"
    )


def join_path(place: str, *parts: str) -> str:
    """A path below a path or URL; the query of a URL stays at its end.

    >>> join_path("s3://bucket/lake/?region=eu", "date=1")
    's3://bucket/lake/date=1?region=eu'
    """
    path, query = split_query(place)
    return posixpath.join(path.rstrip("/"), *parts) + query


def split_query(place: str) -> tuple[str, str]:
    """A URL without its query, and the query."""
    path, query = re.fullmatch(r"(.*?)(\?\w+=.*)?", place, re.DOTALL).groups(default="")  # type: ignore[union-attr]
    return (path, query) if "://" in place else (place, "")


def read_date(text: str | None) -> date:
    """A date, ``today`` or ``yesterday`` in UTC; by default yesterday, because today's partition still grows.

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
        raise UsageError(f"{first} to {last} is {count} days; give 1 to {MOST_DAYS:,}, the earlier day first")
    return (first + timedelta(days=number) for number in range(count))
