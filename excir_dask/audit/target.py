"""What one run of an audit reads, and the names that it goes by."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime

from excir_dask.audit.config import Config
from excir_dask.audit.window import check_exists, fill, join_path, values


@dataclass(frozen=True)
class Target:
    """The window of one run."""

    lake: str
    window: str | None
    date: str | None
    series: str
    """name of the audit with the keys of the window: runs of one series are compared with each other"""
    baseline: str | None = None
    """its name, with the keys of the window filled in"""

    def run_name(self, finished: datetime) -> str:
        """A unique name for a run, which sorts by time within a series."""
        parts = [self.series, self.date, f"{finished:%Y%m%dT%H%M%SZ}", uuid.uuid4().hex[:6]]
        return "-".join(part for part in parts if part)


def resolve_target(config: Config, day: date | None, keys: Mapping[str, str]) -> Target:
    """Fill in the window of a configuration."""
    if config.window is None:
        return Target(config.lake, None, None if day is None else day.isoformat(), config.name, config.baseline)
    window = config.window.fill(day, keys)
    series = ",".join([config.name, *(f"{name}={keys[name]}" for name in sorted(keys))])
    baseline = None if config.baseline is None else _file_name(fill(config.baseline, values(day, keys)))
    when = day.isoformat() if day and config.window.dated else None
    return Target(join_path(config.lake, window), window, when, _file_name(series), baseline)


def check_window(config: Config, target: Target) -> None:
    """Refuse a window that the lake does not have. Other errors of the lake are left to its reader."""
    if target.window is not None:
        with suppress(OSError):
            check_exists(config.lake, target.window, config.options.storage_options)


def _file_name(text: str) -> str:
    """A name that every filesystem accepts.

    >>> _file_name("credit,region=eu west")
    'credit,region=eu_west'
    """
    return re.sub(r"[^A-Za-z0-9.,=_-]+", "_", text)
