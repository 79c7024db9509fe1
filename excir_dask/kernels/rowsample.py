"""A mergeable sample of whole rows: those with the smallest draws, whatever slices they come from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RowSample:
    """Some rows of some columns."""

    VERSION: ClassVar[int] = 1

    draws: Annotated[NDArray[np.uint64], "rows"]
    """in the order of the lake"""
    values: Annotated[Floats, "columns", "rows"]


class RowPicker:
    """Picks the rows with the smallest draws while the columns of a block pass.

    Parameters
    ----------
    draws : uint64 array of shape (rows,)
    limit : int
        Rows to pick at most.
    threshold : int
        Only draws below it count (:func:`draw_threshold`), so that slices do not send rows that are dropped later.
    """

    def __init__(self, draws: NDArray[np.uint64], limit: int, threshold: int = 2**64):
        few = np.flatnonzero(draws < np.uint64(threshold)) if threshold < 2**64 else np.arange(draws.size)
        self.rows = few[_smallest(draws[few], limit)]
        self.draws = draws[self.rows]
        self.picked: list[Floats] = []

    def watch(self, columns: Iterable[Floats]) -> Iterator[Floats]:
        """The same columns; the picked rows of each are stored."""
        for x in columns:
            self.picked.append(x[self.rows])
            yield x

    def result(self) -> RowSample:
        return RowSample(self.draws, np.array(self.picked).reshape(len(self.picked), self.draws.size))


def merge_samples(parts: Sequence[RowSample], limit: int) -> RowSample:
    """The rows with the smallest draws of all parts, which hold the same columns."""
    draws = np.concatenate([part.draws for part in parts])
    chosen = _smallest(draws, limit)
    return RowSample(draws[chosen], np.concatenate([part.values for part in parts], axis=1)[:, chosen])


def concatenate_samples(parts: Sequence[RowSample]) -> RowSample:
    """Samples of neighbouring column blocks over the same rows as one."""
    return RowSample(parts[0].draws, np.concatenate([part.values for part in parts]))


def draw_threshold(limit: int, rows: int) -> int:
    """A threshold with at least ``limit`` of ``rows`` draws below it (almost surely), and not many more."""
    if rows <= limit:
        return 2**64
    return min(int(2.0**64 * (limit + 10 * limit**0.5 + 100) / rows), 2**64)


def _smallest(draws: NDArray[np.uint64], limit: int) -> NDArray[np.int64]:
    """Indices of the smallest draws, ascending."""
    if draws.size <= limit:
        return np.arange(draws.size)
    return np.sort(np.argsort(draws, kind="stable")[:limit])
