"""Rank correlation of many columns, in whole numbers.

A column becomes its doubled, centred average ranks, ``2 rank - (n + 1)``: whole numbers, ties included. The sum of
their squares is at most ``rows^3 / 3``, which also bounds every partial sum of a product of two columns. Up to 300,000
rows that is below 2^53, so float64 products are exact in whatever order they are added: neither the number of BLAS
threads nor the size of blocks can change a correlation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ranks = NDArray[np.int16 | np.int32]
Positions = NDArray[np.int64]

MOST_ROWS = 300_000
"""rows of a sample: beyond, sums of products may pass 2^53"""

LEAST_PRESENT = 30
"""values that a column must have (or all rows, if they are fewer): with three values, chance alone gives |r| = 1"""


@dataclass(frozen=True)
class Block:
    """Some columns, ready to be multiplied."""

    ranks: Floats
    """(columns, rows), 0 where the value is missing"""
    spread: Floats
    """sum of squares of each column's ranks"""
    present: Floats | None
    """(columns, rows), 1 where there is a value; None where no value is missing"""


@dataclass(frozen=True)
class RankedColumns:
    """The columns of a sample that vary, as ranks."""

    values: Ranks
    """(columns, rows): doubled, centred average ranks; the smallest number of the type is a missing value"""
    spread: Floats
    """sum of squares of each column's ranks"""
    gaps: NDArray[np.bool_]
    """columns with missing values"""
    columns: Positions
    """position of each column in the sample"""

    @classmethod
    def of(cls, sample: Floats) -> RankedColumns:
        """Rank a sample of shape (rows, columns), in which NaN and infinite values are missing."""
        rows, columns = sample.shape
        least, kind = min(LEAST_PRESENT, rows), rank_type(rows)
        values = np.full((columns, rows), np.iinfo(kind).min, dtype=kind)
        spread, gaps, position = np.zeros(columns), np.zeros(columns, dtype=bool), np.empty(columns, dtype=np.int64)
        count = 0
        for column in range(columns):
            x = np.array(sample[:, column], dtype=np.float64)
            present = np.isfinite(x)
            n = int(present.sum())
            ranks = doubled_ranks(x if n == rows else x[present])
            square = float(np.dot(ranks, ranks))
            if n < least or square == 0.0:
                continue
            values[count, present] = ranks
            spread[count], gaps[count], position[count] = square, n < rows, column
            count += 1
        return cls(values[:count], spread[:count], gaps[:count], position[:count])

    def block(self, which: Positions | slice) -> Block:
        values, missing = self.values[which], np.iinfo(self.values.dtype).min
        if not self.gaps[which].any():
            return Block(values.astype(np.float64), self.spread[which], None)
        present = values != missing
        return Block(np.where(present, values, 0).astype(np.float64), self.spread[which], present.astype(np.float64))


def correlation(a: Block, b: Block) -> Floats:
    """Absolute rank correlations, of shape (columns of a, columns of b).

    Over the rows that both columns have; where those hold less than half of the spread of either one, it is 0.
    """
    product = np.abs(a.ranks @ b.ranks.T)
    spread_a, spread_b = a.spread[:, None], b.spread[None, :]
    if a.present is None and b.present is None:
        product /= np.sqrt(spread_a * spread_b)
        return product
    shared_a = spread_a if b.present is None else (a.ranks * a.ranks) @ b.present.T
    shared_b = spread_b if a.present is None else a.present @ (b.ranks * b.ranks).T
    enough = (2.0 * shared_a >= spread_a) & (2.0 * shared_b >= spread_b)
    return np.divide(product, np.sqrt(shared_a * shared_b), out=np.zeros_like(product), where=enough)


def doubled_ranks(x: Floats) -> Floats:
    """Twice the average ranks minus their mean: whole numbers from ``1 - n`` to ``n - 1``.

    >>> doubled_ranks(np.array([7.0, 9.0, 7.0, 1.0]))
    array([ 0.,  3.,  0., -3.])
    """
    order = np.argsort(x)
    ordered = x[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: x.size])
    ends = np.append(starts[1:], x.size)
    found = np.empty(x.size)
    # ties at positions s to e - 1 share the position (s + e - 1) / 2; the mean of all positions is (n - 1) / 2
    found[order] = np.repeat(starts + ends - x.size, ends - starts) if x.size else 0.0
    return found


def rank_type(rows: int) -> type[np.int16] | type[np.int32]:
    """Two bytes per value for up to 32,767 rows, else four."""
    return np.int16 if rows <= np.iinfo(np.int16).max else np.int32
