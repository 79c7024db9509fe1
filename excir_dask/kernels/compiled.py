"""Loops compiled by numba: they go over a column once, with Python's lock released.

Reassociation is allowed so that sums become vector code: the order of additions then depends on the width of the
processor's vectors, never on threads, workers or time. Signed zeros are kept: the sign of a product is that of its
factors even where the product is zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile on first use; the result is cached on disk wherever there is a folder to write to."""
    return _compiled(function, fastmath={"reassoc"})


def compiled_exactly(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same without reassociation: for formulas whose rounding is accounted for, not for sums over rows."""
    return _compiled(function, error_model="numpy")


def _compiled(function: Callable[..., Any], **more: Any) -> Callable[..., Any]:
    options: dict[str, Any] = {"nogil": True, **more}
    found: Callable[..., Any]
    try:
        found = njit(cache=True, **options)(function)
    except RuntimeError:  # no folder that may be written to, as in a read-only container
        found = njit(**options)(function)
    return found
