"""The inner loops of scan 2, compiled by numba: one pass over a column, with Python's lock let go.

In numpy the same sums are eleven passes over memory and cost three times as much; two threads then also wait for each
other's lock between the passes. Reassociation is allowed so that the loops become vector instructions: the order of
additions then depends on the width of the processor's vectors, never on threads, workers or time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]

BLOCK = 2048
"""rows that stay in the first-level cache while every output and threshold is gone through"""


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile on first use; the result is kept on disk wherever there is a place to keep it."""
    options: dict[str, Any] = {"nogil": True, "fastmath": {"reassoc", "nsz"}}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # no folder that may be written to, as in a read-only container
        return njit(**options)(function)


@_compiled
def products(x: Floats, center: float, moves: Floats, weights: Floats, found: Floats) -> float:
    """Add N, D, S2 and SP of a column to ``found`` (4, outputs); returns its sum of w |x~|.

    ``moves`` is (outputs, rows) of w y~; ``weights`` is (rows,), or empty for ones.
    """
    total = 0.0
    for start in range(0, x.size, BLOCK):
        stop = min(start + BLOCK, x.size)
        part = 0.0
        if weights.size:
            for i in range(start, stop):
                part += weights[i] * abs(x[i] - center)
        else:
            for i in range(start, stop):
                part += abs(x[i] - center)
        total += part
        for k in range(moves.shape[0]):
            n = d = s2 = sp = 0.0
            for i in range(start, stop):
                p = (x[i] - center) * moves[k, i]
                a = abs(p)
                n += p
                d += a
                s2 += p * p
                sp += p * a
            found[0, k] += n
            found[1, k] += d
            found[2, k] += s2
            found[3, k] += sp
    return total


@_compiled
def below(x: Floats, thresholds: Floats, weights: Floats, found: Floats) -> None:
    """Add the weight of the values strictly below each threshold to ``found``; ``weights`` empty for ones."""
    for start in range(0, x.size, BLOCK):
        stop = min(start + BLOCK, x.size)
        for t in range(thresholds.size):
            threshold = thresholds[t]
            if weights.size:
                weight = 0.0
                for i in range(start, stop):
                    weight += weights[i] if x[i] < threshold else 0.0
                found[t] += weight
            else:
                count = 0
                for i in range(start, stop):
                    count += x[i] < threshold
                found[t] += count
