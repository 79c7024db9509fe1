"""Nested fractions: which rows, or which row groups, a run keeps.

A row's draw depends only on the seed, its file's path below the lake's root, its row group and its place there; a row
group's place in line on the seed, the paths and the numbers of rows. Slicing, workers, retries and resumed runs cannot
change it, and what is kept at 0.2 is among what is kept at 0.4.
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

_PER_COUNT = 4
"""draws that Philox makes from one value of its counter"""


@dataclass(frozen=True)
class Sample:
    """A share of the rows."""

    fraction: float = 1.0
    seed: int = 0
    by: str = "rows"
    """one of SAMPLINGS"""
    above: float = 0.0
    """share whose rows, or row groups, are left out again: what a smaller sample has is not drawn a second time"""
    stream: str = ""
    """draws of another stream are independent of these: a validation set, for instance"""

    def __post_init__(self) -> None:
        if self.by not in SAMPLINGS:
            raise UsageError(f"sampling is '{self.by}'{nearest(self.by, SAMPLINGS)} (one of {', '.join(SAMPLINGS)})")
        if not 0.0 < self.fraction <= 1.0:
            raise UsageError(f"fraction is {self.fraction}; it must be above 0 and at most 1")

    @property
    def whole_row_groups(self) -> bool:
        """whole row groups are drawn"""
        return SAMPLINGS[self.by].whole_row_groups

    @property
    def all_rows(self) -> bool:
        """it leaves out nothing of the lake"""
        return self.fraction == 1.0 and not self.above

    @property
    def everything(self) -> bool:
        """every row of what is read counts"""
        return self.all_rows or self.whole_row_groups

    def row_groups(self, files: Sequence[LakeFile]) -> list[frozenset[int]]:
        """For each file, the row groups that are read."""
        return _all_row_groups(self, files) if self.all_rows else SAMPLINGS[self.by].row_groups(self, files)

    def mask(self, part: str, row_group: int, rows: int, start: int = 0) -> NDArray[np.bool_]:
        """Which of the rows ``start`` to ``start + rows`` of a row group are kept.

        >>> small, large = Sample(0.2).mask("a", 0, 1000), Sample(0.4).mask("a", 0, 1000)
        >>> bool(np.all(large[small])), bool(np.all(large[10:] == Sample(0.4).mask("a", 0, 990, start=10)))
        (True, True)
        """
        if self.everything:
            return np.ones(rows, dtype=bool)
        return self.chosen(self.draws(part, row_group, rows, start))

    def chosen(self, draws: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Which rows are kept, from their draws."""
        kept = np.ones(draws.size, dtype=bool) if self.fraction == 1.0 else draws < _share(self.fraction)
        return kept & (draws >= _share(self.above)) if self.above else kept

    def draws(self, part: str, row_group: int, rows: int, start: int = 0) -> NDArray[np.uint64]:
        """The draws of those rows, uniform over all 64-bit numbers: a row is kept if its draw is small enough."""
        text = f"{self.seed}\0{part}\0{row_group}" + (f"\0{self.stream}" if self.stream else "")
        key = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), "little")
        skip = start % _PER_COUNT
        return np.random.Philox(key=key, counter=start // _PER_COUNT).random_raw(rows + skip)[skip:]


def _share(fraction: float) -> np.uint64:
    return np.uint64(min(int(fraction * 2.0**64), 2**64 - 1))


def _all_row_groups(sample: Sample, files: Sequence[LakeFile]) -> list[frozenset[int]]:
    """Those that have rows."""
    return [frozenset(g for g, rows in enumerate(file.live_rows) if rows) for file in files]


def _spread_row_groups(sample: Sample, files: Sequence[LakeFile]) -> list[frozenset[int]]:
    """The beginning of a line of row groups.

    Row groups stand in a line in which those of every folder, and in a folder those of every file, come as evenly
    as they can; the sample is the beginning of the line. So it is spread over the lake, and nested.
    """
    folders: dict[str, list[int]] = {}
    for number, file in enumerate(files):
        folders.setdefault(file.relative.rpartition("/")[0], []).append(number)
    line: list[tuple[float, str, int, int]] = []
    for folder, numbers in folders.items():
        turns: list[tuple[float, str, int, int]] = []
        for number in numbers:
            filled = [g for g, rows in enumerate(files[number].live_rows) if rows]
            mixed = sorted(filled, key=lambda g: _draw(sample.seed, files[number].relative, str(g)))
            start = _draw(sample.seed, files[number].relative)
            turns += [((i + start) / len(mixed), files[number].relative, number, g) for i, g in enumerate(mixed)]
        turns.sort()
        start = _draw(sample.seed, folder, "folder")
        line += [((i + start) / len(turns), *turn[1:]) for i, turn in enumerate(turns)]
    line.sort()
    kept: list[set[int]] = [set() for _ in files]
    # their number decides, not their rows: else large ones would be drawn less often than their share
    first, last = (max(round(share * len(line)), 1) if share else 0 for share in (sample.above, sample.fraction))
    for _, _, number, group in line[first:last]:
        kept[number].add(group)
    return [frozenset(groups) for groups in kept]


def _draw(seed: int, *of: str) -> float:
    """A number from 0 to 1 that depends on the seed and some texts alone."""
    text = "\0".join([str(seed), "row-groups", *of]).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") / 2.0**64


@dataclass(frozen=True)
class Sampling:
    """What a sample is drawn from. A new scheme is a new entry of ``SAMPLINGS``."""

    row_groups: Callable[[Sample, Sequence[LakeFile]], list[frozenset[int]]]
    """for each file, the row groups that are read"""
    whole_row_groups: bool
    """all rows of those count, and the others are not read at all; else each row is drawn"""


SAMPLINGS: dict[str, Sampling] = {
    "rows": Sampling(_all_row_groups, whole_row_groups=False),
    "row-groups": Sampling(_spread_row_groups, whole_row_groups=True),
}
