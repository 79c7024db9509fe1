"""Trying again what may pass: a broken connection, a store that is busy for a moment."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from excir_dask.errors import ReadError

ATTEMPTS = 4
"""times that something is read before its error counts"""

_PAUSES = (0.2, 1.0, 5.0)
"""seconds between the tries"""

T = TypeVar("T")


def with_retries(action: Callable[[], T]) -> T:
    """What ``action`` returns; a ReadError is tried again and in the end says how often it was tried."""
    for pause in _PAUSES:
        try:
            return action()
        except ReadError:
            time.sleep(pause)
    try:
        return action()
    except ReadError as error:
        raise ReadError(f"{error} ({ATTEMPTS} tries)") from error
