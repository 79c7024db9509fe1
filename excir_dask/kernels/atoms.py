"""Values that a column has again and again: a quantile may well lie on one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LOOKED_AT = 4096
"""values of a block that are looked at"""

REPEATS = 8
"""times that a value must be among those"""

MOST = 64
"""atoms of a column that are kept, the heaviest ones"""


@dataclass(frozen=True)
class Atoms:
    """Of one column, with how often each was met."""

    VERSION: ClassVar[int] = 1

    values: Annotated[Floats, "atoms"]
    counts: Annotated[Floats, "atoms"]


def find_atoms(x: Floats) -> Atoms:
    """Atoms of a block of rows."""
    some = x[:: max(x.size // LOOKED_AT, 1)]
    values, counts = np.unique(some[np.isfinite(some)], return_counts=True)
    often = counts >= REPEATS
    return _heaviest(values[often], counts[often].astype(np.float64))


def merge_atoms(parts: Sequence[Atoms]) -> Atoms:
    """Atoms over the rows of all parts."""
    values, where = np.unique(np.concatenate([part.values for part in parts]), return_inverse=True)
    counts = np.concatenate([part.counts for part in parts])
    return _heaviest(values, np.bincount(where, counts, minlength=values.size).astype(np.float64))


def _heaviest(values: Floats, counts: Floats) -> Atoms:
    order = np.argsort(-counts, kind="stable")[:MOST]
    return Atoms(values[order], counts[order])
