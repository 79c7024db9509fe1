"""Retries after transient errors: a broken connection, a store that is busy for a moment."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from excir_dask.errors import ReadError

ATTEMPTS = 4
"""tries before a ReadError is raised"""

_PAUSES = (0.2, 1.0, 5.0)
"""seconds between tries"""

T = TypeVar("T")


def with_retries(action: Callable[[], T]) -> T:
    """Call ``action`` again after a ReadError; the last error says how many tries there were."""
    for pause in _PAUSES:
        try:
            return action()
        except ReadError:
            time.sleep(pause)
    try:
        return action()
    except ReadError as error:
        raise ReadError(f"{error} ({ATTEMPTS} tries)") from error
