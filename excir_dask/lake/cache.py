"""Rows of a slice in memory: later scans and smaller samples use them without reading files again."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from excir_dask.lake.arrays import CategoryCodes
from excir_dask.lake.blocks import Block, Floats, Layout, ModelOutputs, RowRange, make_block
from excir_dask.lake.plan import Plan, Slice

_VALUE_BYTES = 8


@dataclass(frozen=True)
class CachedRows:
    """The sampled rows of a slice, including those without an output or weight."""

    fixed: tuple[Floats, ...]
    """columns that every slice has: outputs and weights"""
    columns: tuple[Floats, ...]
    """one per feature of the slice"""
    categories: tuple[CategoryCodes, ...]
    draws: NDArray[np.uint64]
    """(rows,) the random draw of each row"""
    ranges: tuple[RowRange, ...]
    """where the rows come from, with the number of cached rows of each"""
    read: int
    """rows that were read to find them"""
    filtered_out: int = 0
    """of those, rows that do not match the row filter"""

    def __sizeof__(self) -> int:  # tells dask and the local runner what to spill
        values = sum(x.nbytes for x in (*self.fixed, *self.columns))
        codes = sum(each.codes.nbytes for each in self.categories)
        return values + codes + self.draws.nbytes + object.__sizeof__(self)

    def block(
        self, slice_: Slice, layout: Layout, wanted: NDArray[np.bool_] | None = None, scored: ModelOutputs | None = None
    ) -> Block:
        """The rows of a layout's sample, which must not be larger than the cached one."""
        mask = layout.sample.mask_of(self.draws) if layout.sample.draws_rows else None
        outputs = list(self.fixed[: len(layout.outputs)])
        if scored is not None:
            outputs = scored.expand(mask, self.draws.size)
        block = make_block(
            layout,
            self.ranges,
            mask,
            outputs=outputs,
            weights=self.fixed[-1] if layout.weight else None,
            columns=(x for i, x in enumerate(self.columns, slice_.start) if wanted is None or wanted[i]),
            categories=iter(self.categories),
            draws=self.draws,
        )
        return replace(block, counts=replace(block.counts, read=self.read, filtered_out=self.filtered_out))


def cache_bytes(plan: Plan, rows: int) -> int | None:
    """Bytes that ``rows`` rows of a lake take in the cache; None if a slice is streamed, because it is too large."""
    if any(each.batch_rows is not None for each in plan.slices()):
        return None
    selection = plan.selection
    slices = sum(len(block[0]) for block in plan.blocks)
    columns = len(selection.features) + len(selection.categoricals) + slices * (len(selection.outputs) + 2)
    return _VALUE_BYTES * rows * columns
