"""Cut the features of a lake into blocks of columns, without cutting vectors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise

from excir_dask.lake.select import Selection

Range = tuple[int, int]
"""start and end of consecutive features"""

BLOCK_COLUMNS = 256
"""columns per block: the merged digests of a block stay below 4 MB"""

MAX_VECTOR_COLUMNS = 1024
"""elements of a vector that stay in one block; each block decodes the whole vector"""


def column_blocks(features: int, vectors: Sequence[Range] = ()) -> list[Range]:
    """Ranges of features of about equal width, with edges moved out of vectors.

    A block has at most ``BLOCK_COLUMNS`` features, and what belongs to vectors at its ends.

    >>> column_blocks(600)
    [(0, 200), (200, 400), (400, 600)]
    >>> column_blocks(778, vectors=[(0, 768)])
    [(0, 768), (768, 778)]
    """
    edges = {0, features}
    for edge, _ in even_ranges(0, features, BLOCK_COLUMNS):
        vector = next(((start, stop) for start, stop in vectors if start < edge < stop), None)
        edges.add(edge if vector is None else _nearest_edge(edge, vector))
    return list(pairwise(sorted(edges))) or [(0, 0)]


def vector_ranges(selection: Selection) -> list[Range]:
    """Consecutive features that are elements of one vector."""
    ranges, start = [], 0
    for column, group in groupby(selection.features, lambda name: selection.vectors.get(name, (None, 0))[0]):
        stop = start + sum(1 for _ in group)
        if column is not None:
            ranges.append((start, stop))
        start = stop
    return ranges


def even_ranges(start: int, stop: int, max_width: int) -> list[Range]:
    """Ranges of about equal width that cover ``start`` to ``stop``."""
    count = max(-(-(stop - start) // max_width), 1)
    edges = [start + (stop - start) * i // count for i in range(count + 1)]
    return list(pairwise(edges))


def _nearest_edge(edge: int, vector: Range) -> int:
    parts = even_ranges(*vector, MAX_VECTOR_COLUMNS)
    return min((parts[0][0], *(stop for _, stop in parts)), key=lambda each: abs(each - edge))
