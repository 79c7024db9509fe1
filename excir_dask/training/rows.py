"""Rows to train and validate with: reads fragments of a lake into float32 matrices, on a worker."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray
from pyarrow import fs

from excir_dask.errors import DataError
from excir_dask.lake.open_files import OpenFiles
from excir_dask.lake.parquet_reader import FragmentReader
from excir_dask.lake.plan import Fragment
from excir_dask.lake.read import release_memory
from excir_dask.lake.retry import with_retries
from excir_dask.lake.sample import Sample
from excir_dask.training.labels import Target

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]

VALUE = 4
"""bytes of a float32"""

_MOST_COLUMNS = 16
"""columns read together: as float32 they fill one cache line per row"""

_MOST_READ_BYTES = 32 * 2**20
"""decoded bytes read together, unless a single column is larger"""


@dataclass(frozen=True)
class Recipe:
    """What all partitions share; sent to the cluster once."""

    filesystem: fs.FileSystem
    features: tuple[str, ...]
    target: Target
    weight: str | None
    sample: Sample
    split: Sample | None
    """its rows are the validation rows; None without validation"""


@dataclass(frozen=True)
class Counts:
    """Numbers of rows."""

    lake: int = 0
    sampled: int = 0
    """of those, in the sample"""
    without_label: int = 0
    """of those, dropped because the label is missing"""
    without_weight: int = 0
    """of the rest, dropped because the weight is missing or zero"""
    train: int = 0
    validation: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Counts)))


@dataclass(frozen=True)
class Rows:
    """Rows of one set."""

    X: Floats
    """(rows, features); missing values are NaN"""
    y: Floats
    """(rows,)"""
    w: Floats | None
    """(rows,)"""


@dataclass(frozen=True)
class Partition:
    """The rows that one task reads."""

    counts: Counts
    train: Rows
    validation: Rows


@dataclass(frozen=True)
class Shape:
    """What the client needs to know of a partition."""

    counts: Counts
    least: float
    """smallest label of the training rows; infinite without any"""
    greatest: float


def shape(partition: Partition) -> Shape:
    y = partition.train.y
    return Shape(partition.counts, float(y.min(initial=np.inf)), float(y.max(initial=-np.inf)))


def read_partition(fragments: Sequence[Fragment], recipe: Recipe) -> Partition:
    """Features of all usable rows, split into training and validation rows."""
    try:
        return with_retries(lambda: _read(fragments, recipe))
    finally:
        release_memory()


def _read(fragments: Sequence[Fragment], recipe: Recipe) -> Partition:
    with ExitStack() as stack:
        files = OpenFiles()
        stack.callback(files.close)
        readers = [stack.enter_context(files.borrow(fragment, recipe.filesystem)) for fragment in fragments]
        sides = [_side(reader, recipe) for reader in readers]
        counts = sum((side.counts for side in sides), Counts())
        width = len(recipe.features)
        train = np.empty((counts.train, width), dtype=np.float32)
        validation = np.empty((counts.validation, width), dtype=np.float32)
        at = (0, 0)
        for reader, side in zip(readers, sides, strict=True):
            ends = (at[0] + side.counts.train, at[1] + side.counts.validation)
            at_once = min(max(_MOST_READ_BYTES // (8 * reader.rows), 1), _MOST_COLUMNS)
            for first in range(0, width, at_once):
                names = recipe.features[first : first + at_once]
                with np.errstate(over="ignore"):
                    block = np.stack([x.astype(np.float32) for x in reader.read(names)], axis=1)
                block[np.isinf(block)] = np.nan  # XGBoost refuses infinite values
                train[at[0] : ends[0], first : first + len(names)] = block[side.train]
                validation[at[1] : ends[1], first : first + len(names)] = block[side.validation]
            at = ends
    return Partition(counts, _rows(train, sides, "train"), _rows(validation, sides, "validation"))


@dataclass(frozen=True)
class _Side:
    """Labels, weights and the two sets of a fragment's rows."""

    counts: Counts
    y: Floats
    w: Floats | None
    train: Mask
    validation: Mask


def _side(reader: FragmentReader, recipe: Recipe) -> _Side:
    groups = list(zip(reader.fragment.row_groups, reader.fragment.rows, strict=True))

    def draw(sample: Sample) -> Mask:
        return np.concatenate([sample.mask(reader.fragment.relative, group, rows) for group, rows in groups])

    with np.errstate(over="ignore"):
        y = recipe.target.encode(reader).astype(np.float32)
    sampled, live = draw(recipe.sample), reader.live_mask()
    if live is not None:
        sampled &= live
    labelled = sampled & np.isfinite(y)
    used, w = labelled, None
    if recipe.weight is not None:
        w = reader.read([recipe.weight])[0].astype(np.float32)
        if (labelled & (w < 0)).any():
            raise DataError(
                f"column '{recipe.weight}' (weights) has negative values, for instance in {reader.fragment.relative}"
            )
        used = labelled & np.isfinite(w) & (w > 0)
    validation = used & draw(recipe.split) if recipe.split else np.zeros(reader.rows, dtype=bool)
    train = used & ~validation
    counts = Counts(
        lake=reader.fragment.live_rows,
        sampled=int(sampled.sum()),
        without_label=int(sampled.sum() - labelled.sum()),
        without_weight=int(labelled.sum() - used.sum()),
        train=int(train.sum()),
        validation=int(validation.sum()),
    )
    return _Side(counts, y, w, train, validation)


def _rows(X: Floats, sides: Sequence[_Side], part: str) -> Rows:
    masks: list[Mask] = [getattr(side, part) for side in sides]
    y = np.concatenate([side.y[mask] for side, mask in zip(sides, masks, strict=True)])
    w = [side.w[mask] for side, mask in zip(sides, masks, strict=True) if side.w is not None]
    return Rows(X, y, np.concatenate(w) if w else None)
