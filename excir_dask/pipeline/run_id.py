"""Which run it is: the same question to the same data has the same id, and need not be answered twice."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from excir_dask.lake.locate import locate
from excir_dask.lake.snapshot import take_snapshot

log = logging.getLogger(__name__)

DIGITS = 12
"""of a run id: two of a million runs share one with a chance of 1 in 500"""


def make_id(parts: Mapping[str, Any]) -> str:
    """An id for everything that decides about a result.

    >>> make_id({"lake": "f3a1", "seed": 0}) == make_id({"seed": 0, "lake": "f3a1"})
    True
    """
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def lake_fingerprint(
    lake: Any, storage_options: Mapping[str, Any] | None = None, table_version: int | None = None
) -> str | None:
    """Of the files of a lake, from their footers; None for a DataFrame, which has none."""
    if not isinstance(lake, str | os.PathLike | Sequence):
        return None
    return take_snapshot(locate(lake, storage_options, table_version)).fingerprint


def saved_id(file: Path, place: Sequence[str]) -> str | None:
    """The id of the run that a saved result is of; ``place`` says under which keys of a JSON file it is.

    None where there is no result, or one without an id: that is of another run, whatever this one is.
    """
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        for key in place:
            found = found[key]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, str) else None


def say_done(run: str | None, out: str | os.PathLike[str]) -> None:
    log.info("already done (run id %s): this is what %s holds; --force (force=True) computes it again", run, out)
