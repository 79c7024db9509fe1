"""What one run of an audit reads, and the names that it goes by."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from urllib.parse import quote

from excir_dask.audit.config import Config
from excir_dask.audit.window import check_exists, fill, join_path, values
from excir_dask.lake.outside import check_outside


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
    check_outside(config.results, config.lake, "results")
    if config.window is None:
        return Target(config.lake, None, None if day is None else day.isoformat(), config.name, config.baseline)
    window = config.window.fill(day, keys)
    series = ",".join([config.name, *(f"{name}={value}" for name, value in sorted(_unambiguous(keys).items()))])
    baseline = None if config.baseline is None else _file_name(fill(config.baseline, values(day, keys)))
    when = day.isoformat() if day and config.window.dated else None
    return Target(join_path(config.lake, window), window, when, _file_name(series), baseline)


def check_window(config: Config, target: Target) -> None:
    """Refuse a window that the lake does not have. Other errors of the lake are left to its reader."""
    if target.window is not None:
        with suppress(OSError):
            check_exists(config.lake, target.window, config.options.storage_options)


def _unambiguous(keys: Mapping[str, str]) -> Mapping[str, str]:
    """Values that may stand between commas: quoted if one of them could be read as several keys.

    >>> _unambiguous({"a": "1,2", "b": "3"}), _unambiguous({"a": "1,b=2", "b": "3"})
    ({'a': '1,2', 'b': '3'}, {'a': '1%2Cb%3D2', 'b': '3'})
    """
    if not any(re.search(",.*=|%", value, re.DOTALL) for value in keys.values()):
        return keys
    return {name: quote(value, safe="", errors="surrogatepass") for name, value in keys.items()}


def _file_name(text: str) -> str:
    """A name that every filesystem accepts, another one for another text: if characters must go, a digest is added.

    >>> _file_name("credit,region=eu-west"), _file_name("credit,region=eu west"), _file_name("credit,region=東京")
    ('credit,region=eu-west', 'credit,region=eu_west-24fb60792dfb', 'credit,region=_-8fdbdbdba2a0')
    """
    name = re.sub(r"[^A-Za-z0-9.,=_-]+", "_", text)
    if name == text:
        return name
    return f"{name}-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"
