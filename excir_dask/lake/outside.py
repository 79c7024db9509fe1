"""Nothing is written into a lake: Parquet files of a result would be rows of the next run."""

from __future__ import annotations

import os
from typing import Any

from excir_dask.errors import UsageError
from excir_dask.lake.store_errors import redact

_HIDDEN = ("_", ".")
"""how names begin that nobody reads as a part of a lake"""


def check_outside(place: str | os.PathLike[str] | None, lake: Any, what: str) -> None:
    """Refuse a place inside the folder of a lake.

    Parameters
    ----------
    place : path or URL, optional
        Where something is to be written.
    lake : path, URL or anything else
        A glob, a list of files or a DataFrame has no folder.
    what : str
        What is to be written, for messages.
    """
    if place is None or not isinstance(lake, str | os.PathLike):
        return
    name, home = os.fspath(place), os.fspath(lake)
    if ("://" in name) != ("://" in home):
        return
    if "://" in name:
        inside, folder = (text.partition("?")[0].rstrip("/") for text in (name, home))
    else:
        inside, folder = (os.path.realpath(os.path.expanduser(text)) for text in (name, home))
        if not os.path.isdir(folder):
            return
    below = os.path.relpath(inside, folder).split("/") if f"{inside}/".startswith(f"{folder.rstrip('/')}/") else [".."]
    if below[0] == ".." or any(part.startswith(_HIDDEN) and part != "." for part in below):
        return
    raise UsageError(
        f"{redact(name)} ({what}) is inside the lake {redact(home)}, where the next run would read it; choose a folder "
        "outside the lake"
    )
