"""Rows of a slice as they were read: they can be looked at again, all or fewer of them, without the files."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from excir_dask.lake.arrays import Coded
from excir_dask.lake.blocks import Block, Floats, Layout, ModelOutputs, RowRange, make_block
from excir_dask.lake.plan import Plan, Slice

VALUE_BYTES = 8


@dataclass(frozen=True)
class CachedRows:
    """What a slice has of the rows in a sample, whether they count or not."""

    fixed: tuple[Floats, ...]
    """columns that every slice has: outputs and weights"""
    columns: tuple[Floats, ...]
    """one a feature of the slice"""
    categories: tuple[Coded, ...]
    draws: NDArray[np.uint64]
    """of each row"""
    places: tuple[RowRange, ...]
    """with the number of rows held of each"""
    read: int
    """rows that were looked at"""

    def __sizeof__(self) -> int:  # dask and the local store decide by this what to spill
        values = sum(x.nbytes for x in (*self.fixed, *self.columns))
        codes = sum(coded.codes.nbytes for coded in self.categories)
        return values + codes + self.draws.nbytes + object.__sizeof__(self)

    def block(
        self, piece: Slice, layout: Layout, wanted: NDArray[np.bool_] | None = None, scored: ModelOutputs | None = None
    ) -> Block:
        """The rows of a layout's sample, which must not be larger than the one that is held."""
        sample = layout.sample
        keep = None if sample.everything else sample.chosen(self.draws)
        outputs = list(self.fixed[: len(layout.outputs)])
        if scored is not None:
            outputs = scored.spread(keep, self.draws.size)
        columns = (x for number, x in enumerate(self.columns, piece.start) if wanted is None or wanted[number])
        weights = self.fixed[-1] if layout.weight else None
        block = make_block(layout, self.places, keep, outputs, weights, columns, iter(self.categories), self.draws)
        return replace(block, counts=replace(block.counts, read=self.read))


def cache_bytes(plan: Plan, rows: int) -> int | None:
    """Bytes that so many rows of a lake take; None where a slice is streamed, because it must never lie whole."""
    if any(piece.batch_rows is not None for piece in plan.slices()):
        return None
    selection = plan.selection
    slices = sum(len(block[0]) for block in plan.blocks)
    columns = len(selection.features) + len(selection.categoricals) + slices * (len(selection.outputs) + 2)
    return VALUE_BYTES * rows * columns
