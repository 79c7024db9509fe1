"""Nested samples: which rows, or which row groups, a run uses.

The draw of a row depends only on the seed, the path of its file below the lake's root, its row group and its index
there. The order of row groups depends only on the seed, the paths and the numbers of rows. So slicing, workers, retries
and resumed runs cannot change a sample, and the sample at 0.2 is part of the one at 0.4.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from excir_dask.errors import UsageError, nearest

if TYPE_CHECKING:
    from excir_dask.lake.snapshot import LakeFile

_DRAWS_PER_COUNT = 4
"""draws that Philox makes per value of its counter"""


@dataclass(frozen=True)
class Sample:
    """A share of the rows."""

    fraction: float = 1.0
    seed: int = 0
    by: str = "rows"
    """one of SAMPLINGS"""
    above: float = 0.0
    """leave out the sample of this fraction, so that only the rows that it lacks are read"""
    stream: str = ""
    """draws of different streams are independent, for instance those of a validation set"""

    def __post_init__(self) -> None:
        if self.by not in SAMPLINGS:
            raise UsageError(f"sampling is '{self.by}'{nearest(self.by, SAMPLINGS)} (one of {', '.join(SAMPLINGS)})")
        if not 0.0 < self.fraction <= 1.0:
            raise UsageError(f"fraction is {self.fraction}; it must be above 0 and at most 1")

    @property
    def whole_row_groups(self) -> bool:
        """Row groups are drawn, not rows."""
        return SAMPLINGS[self.by].whole_row_groups

    @property
    def all_rows(self) -> bool:
        """The sample is the whole lake."""
        return self.fraction == 1.0 and not self.above

    @property
    def draws_rows(self) -> bool:
        """Rows are drawn one by one; otherwise the sample has every row that is read."""
        return not self.all_rows and not self.whole_row_groups

    def row_groups(self, files: Sequence[LakeFile]) -> list[frozenset[int]]:
        """Row groups to read, per file."""
        return _all_row_groups(self, files) if self.all_rows else SAMPLINGS[self.by].row_groups(self, files)

    def mask(self, part: str, row_group: int, rows: int, start: int = 0) -> NDArray[np.bool_]:
        """Which of the rows ``start`` to ``start + rows`` of a row group are in the sample.

        >>> small, large = Sample(0.2).mask("a", 0, 1000), Sample(0.4).mask("a", 0, 1000)
        >>> bool(np.all(large[small])), bool(np.all(large[10:] == Sample(0.4).mask("a", 0, 990, start=10)))
        (True, True)
        """
        return self.mask_of(self.draws(part, row_group, rows, start)) if self.draws_rows else np.ones(rows, dtype=bool)

    def mask_of(self, draws: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Which rows are in the sample, given their draws."""
        mask = np.ones(draws.size, dtype=bool) if self.fraction == 1.0 else draws < _threshold(self.fraction)
        return mask & (draws >= _threshold(self.above)) if self.above else mask

    def draws(self, part: str, row_group: int, rows: int, start: int = 0) -> NDArray[np.uint64]:
        """The draws of those rows, uniform over 64-bit integers. Rows with small draws are in the sample."""
        text = f"{self.seed}\0{part}\0{row_group}" + (f"\0{self.stream}" if self.stream else "")
        key = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), "little")
        skip = start % _DRAWS_PER_COUNT
        return np.random.Philox(key=key, counter=start // _DRAWS_PER_COUNT).random_raw(rows + skip)[skip:]


def _threshold(fraction: float) -> np.uint64:
    """Draws below it are a fraction, below 1, of all."""
    return np.uint64(int(fraction * 2.0**64))


def _all_row_groups(sample: Sample, files: Sequence[LakeFile]) -> list[frozenset[int]]:
    """All row groups that have rows."""
    return [frozenset(_live_row_groups(file)) for file in files]


def _spread_row_groups(sample: Sample, files: Sequence[LakeFile]) -> list[frozenset[int]]:
    """Row groups spread over the lake.

    All row groups are put in an order in which every folder, and every file in its folder, recurs as evenly as
    possible. The sample is the start of that order, so samples are nested.
    """
    folders: dict[str, list[int]] = {}
    for number, file in enumerate(files):
        folders.setdefault(file.relative.rpartition("/")[0], []).append(number)
    order: list[tuple[float, str, int, int]] = []
    for folder, numbers in folders.items():
        in_folder: list[tuple[float, str, int, int]] = []
        for number in numbers:
            path = files[number].relative
            shuffled = sorted(_live_row_groups(files[number]), key=lambda g: _uniform(sample.seed, path, str(g)))
            offset = _uniform(sample.seed, path)
            in_folder += [((i + offset) / len(shuffled), path, number, g) for i, g in enumerate(shuffled)]
        in_folder.sort()
        offset = _uniform(sample.seed, folder, "folder")
        order += [((i + offset) / len(in_folder), *each[1:]) for i, each in enumerate(in_folder)]
    order.sort()
    chosen: list[set[int]] = [set() for _ in files]
    # a share of the row groups, not of the rows: otherwise large row groups would be drawn too rarely
    first, last = (max(round(share * len(order)), 1) if share else 0 for share in (sample.above, sample.fraction))
    for _, _, number, group in order[first:last]:
        chosen[number].add(group)
    return [frozenset(groups) for groups in chosen]


def _live_row_groups(file: LakeFile) -> list[int]:
    return [group for group, rows in enumerate(file.live_rows) if rows]


def _uniform(seed: int, *texts: str) -> float:
    """A number from 0 to 1 that depends only on the seed and the texts."""
    text = "\0".join([str(seed), "row-groups", *texts]).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") / 2.0**64


@dataclass(frozen=True)
class Sampling:
    """A sampling scheme."""

    row_groups: Callable[[Sample, Sequence[LakeFile]], list[frozenset[int]]]
    """row groups to read, per file"""
    whole_row_groups: bool
    """the sample has all rows of those row groups; otherwise each row is drawn"""


SAMPLINGS: dict[str, Sampling] = {
    "rows": Sampling(_all_row_groups, whole_row_groups=False),
    "row-groups": Sampling(_spread_row_groups, whole_row_groups=True),
}
"""a new scheme is a new entry"""
