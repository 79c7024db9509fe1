"""Groups of columns that move together, found in a sample of rows: rank correlation and complete linkage.

Rank correlation, so that outliers do not decide; its absolute value, because columns that move against each other
belong together too; complete linkage, so that every two members of a group are correlated at the threshold or above,
where single linkage would string columns together that have nothing in common.

The matrix of all correlations (3.2 GB for 20,000 columns) never exists. Blocks of it are computed and only say which
columns are linked, ``|r| >= threshold``; linkage then runs inside each connected component. That is the clustering of
all columns, cut at the threshold:

1. Complete linkage merges in ascending order of height, and the height of a merge is the largest distance between
   members of its two clusters. A cluster below the cut thus has only linked pairs in it, and lies inside one component.
2. So every merge below the cut joins two clusters of one component, at a height that distances inside the component
   decide. Merges of different components do not touch each other, and merges above the cut come after all of these.
3. A component in which all pairs are linked merges entirely below the cut: it is one group.

(Where distances tie exactly, complete linkage is not unique; the result is then one of the possible ones, the same on
every run.)
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from excir_dask.common import wording
from excir_dask.errors import DataError, UsageError
from excir_dask.kernels.spearman import MOST_ROWS, Positions, RankedColumns, correlation, rank_type

LINKAGE_MEMORY = 4 << 30
"""bytes that the linkage of one component may take"""

_BLOCK = 1024
"""columns multiplied with as many others at a time: 40 MB per side at 5,000 rows"""

_TIE = 1e-12
"""correlations closer to the threshold than this are at it: rounding must not decide"""

_RANK_SECONDS = 45e-9
"""to rank one value, measured on columns of 5,000 rows"""


def correlated_groups(sample: NDArray[np.float64], threshold: float = 0.9) -> list[list[int]]:
    """Groups of columns in which every two have a rank correlation of at least ``threshold``, of either sign.

    Parameters
    ----------
    sample : float64 array of shape (rows, columns)
        NaN and infinite values are missing. A correlation is taken over the rows that both columns have; where those
        hold less than half of the spread of either column, it counts as none.
    threshold : float
        Above 0, at most 1.

    Returns
    -------
    list of lists of int
        Positions of columns, ascending, groups ordered by their first column. Only groups of at least two; a column
        that is constant or nearly always missing is in none.

    Examples
    --------
    >>> x = np.arange(50.0)
    >>> correlated_groups(np.column_stack([x, np.cos(x), -np.exp(x), np.ones(50)]))
    [[0, 2]]
    """
    check_threshold(threshold)
    if sample.ndim != 2:
        raise UsageError(f"the sample has {sample.ndim} dimensions; give an array of shape (rows, columns)")
    if sample.shape[0] > MOST_ROWS:
        raise UsageError(f"the sample has {sample.shape[0]:,} rows; give at most {MOST_ROWS:,}, 5,000 are plenty")
    ranks = RankedColumns.of(sample)
    found = []
    for members in _components(ranks, threshold):
        found += [ranks.columns[group].tolist() for group in members]
    return sorted(found)


def check_threshold(threshold: float) -> None:
    """Refuse a threshold outside (0, 1] before anything is read."""
    if not 0.0 < threshold <= 1.0:
        raise UsageError(f"the correlation threshold is {threshold}; give one above 0 and up to 1, for instance 0.9")


def _components(ranks: RankedColumns, threshold: float) -> Iterator[list[Positions]]:
    """Groups of each connected component in turn."""
    labels, links = _walk(ranks, threshold)
    order = np.argsort(labels, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1):
        if members.size < 2:
            continue
        if (links[members] == members.size - 1).all():
            yield [members]
        else:
            yield _cut(ranks, members, threshold)


def _walk(ranks: RankedColumns, threshold: float) -> tuple[Positions, Positions]:
    """Component of each column, and with how many others it is linked, from blocks of the correlation matrix."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    size = ranks.columns.size
    labels, links = np.arange(size), np.zeros(size, dtype=np.int64)
    for start in range(0, size, _BLOCK):
        left = slice(start, start + _BLOCK)
        block = ranks.block(left)
        for other in range(start, size, _BLOCK):
            right = slice(other, other + _BLOCK)
            linked = correlation(block, block if start == other else ranks.block(right)) >= threshold - _TIE
            if start == other:
                linked = np.triu(linked, 1)
            links[left] += linked.sum(axis=1)
            links[right] += linked.sum(axis=0)
            i, j = np.nonzero(linked)
            if i.size:
                edges = coo_array((np.ones(i.size, dtype=bool), (labels[i + start], labels[j + other])), (size, size))
                labels = connected_components(edges, directed=False)[1][labels]
    return labels, links


def _cut(ranks: RankedColumns, members: Positions, threshold: float) -> list[Positions]:
    """Complete linkage of one component, cut at the threshold; groups of at least two."""
    from scipy.cluster.hierarchy import fcluster, linkage

    size = members.size
    needed = linkage_bytes(size)
    if needed > LINKAGE_MEMORY:
        raise DataError(
            f"{size:,} columns are connected by correlations of {threshold} or more; to separate them takes "
            f"{wording.size(needed)}, more than the {wording.size(LINKAGE_MEMORY)} set aside for it; raise the "
            "threshold, or search fewer columns for groups"
        )
    distances = np.empty(size * (size - 1) // 2)  # of pairs (i, j), i < j, row after row, as scipy wants them
    for start in range(0, size, _BLOCK):
        left = ranks.block(members[start : start + _BLOCK])
        for other in range(start, size, _BLOCK):
            found = correlation(left, left if start == other else ranks.block(members[other : other + _BLOCK]))
            for row in range(found.shape[0]):
                i, first = start + row, max(other, start + row + 1)
                rest = found[row, first - other :]
                place = i * size - i * (i + 1) // 2 + first - i - 1
                distances[place : place + rest.size] = 1.0 - rest
    np.clip(distances, 0.0, 1.0, out=distances)
    labels = fcluster(linkage(distances, "complete"), 1.0 - threshold + _TIE, "distance")
    order = np.argsort(labels, kind="stable")
    groups = np.split(members[order], np.flatnonzero(np.diff(labels[order])) + 1)
    return [group for group in groups if group.size > 1]


def linkage_bytes(columns: int) -> int:
    """Memory to separate one component of so many columns: distances, scipy's copy of them, and its checks."""
    return columns * (columns - 1) // 2 * 17


@dataclass(frozen=True)
class Cost:
    """What finding groups takes on the machine that does it."""

    columns: int
    rows: int
    bytes: int
    """the sample, its ranks and the current blocks; a component to be separated takes more (linkage_bytes)"""
    operations: int
    """floating-point operations of the products"""
    seconds: float
    """estimated from the speed of a small product"""

    def __str__(self) -> str:
        """One sentence for people.

        >>> str(Cost(20_000, 5_000, 1_200_000_000, 2_000_000_000_000, 24.3))
        'finding groups among 20,000 columns takes about 24 s and 1.12 GiB on the client'
        """
        return (
            f"finding groups among {wording.count(self.columns, 'column')} takes about "
            f"{max(self.seconds, 1.0):,.0f} s and {wording.size(self.bytes)} on the client"
        )


def correlation_cost(columns: int, rows: int, missing: bool = False) -> Cost:
    """Time and memory that :func:`correlated_groups` takes here; with missing values there are three products."""
    products = 3 if missing else 1
    block = min(columns, _BLOCK)
    operations = products * columns * (columns + block) * rows
    ranks = columns * rows * np.dtype(rank_type(rows)).itemsize
    memory = 8 * columns * rows + ranks + 8 * block * (2 * products * rows + 4 * products * block)
    seconds = operations * _seconds_per_operation() + columns * rows * _RANK_SECONDS
    return Cost(columns, rows, memory, operations, seconds)


def _seconds_per_operation(size: int = 1024) -> float:
    """Of a product of two blocks; timed at the second try, since the first one starts BLAS's threads (0.1 s in all)."""
    block = np.ones((size, size))
    for _ in range(2):
        start = time.perf_counter()
        block @ block
        taken = time.perf_counter() - start
    return taken / (2.0 * size**3)
