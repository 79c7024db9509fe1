"""Nested row fractions: which rows a run keeps.

A row's draw depends only on the seed, its file's path below the lake's root, its row group and its place there.
Slicing, workers, retries and resumed runs cannot change it, and the rows kept at 0.2 are among those kept at 0.4.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from excir_dask.errors import UsageError

_PER_COUNT = 4
"""draws that Philox makes from one value of its counter"""


@dataclass(frozen=True)
class Sample:
    """A share of the rows."""

    fraction: float = 1.0
    seed: int = 0
    stream: str = ""
    """draws of another stream are independent of these: a validation set, for instance"""

    def __post_init__(self) -> None:
        if not 0.0 < self.fraction <= 1.0:
            raise UsageError(f"fraction is {self.fraction}; it must be above 0 and at most 1")

    @property
    def everything(self) -> bool:
        return self.fraction == 1.0

    def keep(self, part: str, row_group: int, rows: int, start: int = 0) -> NDArray[np.bool_]:
        """Which of the rows ``start`` to ``start + rows`` of a row group are kept.

        >>> small, large = Sample(0.2).keep("a", 0, 1000), Sample(0.4).keep("a", 0, 1000)
        >>> bool(np.all(large[small])), bool(np.all(large[10:] == Sample(0.4).keep("a", 0, 990, start=10)))
        (True, True)
        """
        if self.everything:
            return np.ones(rows, dtype=bool)
        text = f"{self.seed}\0{part}\0{row_group}" + (f"\0{self.stream}" if self.stream else "")
        key = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), "little")
        skip = start % _PER_COUNT
        draws = np.random.Philox(key=key, counter=start // _PER_COUNT).random_raw(rows + skip)[skip:]
        return draws < np.uint64(min(int(self.fraction * 2.0**64), 2**64 - 1))
