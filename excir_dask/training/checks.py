"""Checks of a training: arguments, memory of the workers, and the rows that are left."""

from __future__ import annotations

from collections.abc import Sequence

from excir_dask.common.wording import count, size
from excir_dask.errors import DataError, UsageError
from excir_dask.lake.select import Selection
from excir_dask.lake.snapshot import Snapshot
from excir_dask.training.labels import Target
from excir_dask.training.rows import VALUE, Counts, Shape
from excir_dask.training.watch import Worker


def check_arguments(rounds: int, early_stopping: int, validation: float) -> None:
    """Refuse numbers that make no sense."""
    if rounds < 1:
        raise UsageError(f"rounds is {rounds}; it must be at least 1")
    if early_stopping < 0:
        raise UsageError(f"early_stopping is {early_stopping}; it must be 0 (never stop early) or more")
    if not 0.0 <= validation < 1.0:
        raise UsageError(f"validation is {validation}; it must be at least 0 and below 1")


def check_memory(snapshot: Snapshot, selection: Selection, fraction: float, workers: Sequence[Worker]) -> None:
    """Refuse rows that cannot fit: workers hold them, and XGBoost's own copy of one byte per value."""
    from distributed.system import MEMORY_LIMIT

    limits = [worker.memory for worker in workers]
    if all(worker.address.startswith("inproc:") for worker in workers):
        limits = [MEMORY_LIMIT]
    needed = int(snapshot.rows * fraction * (len(selection.features) + 2) * (VALUE + 1))
    if all(limits) and needed > sum(limits):
        have = "has" if len(workers) == 1 else "have"
        raise UsageError(
            f"the rows take about {size(needed)} in memory, but {count(len(workers), 'worker')} {have} "
            f"{size(sum(limits))} in all; add workers, or train on a fraction of at most "
            f"{0.8 * fraction * sum(limits) / needed:.2g}"
        )


def check_rows(shapes: Sequence[Shape], target: Target, validation: float) -> Counts:
    """The rows of all partitions, if there are enough to learn from."""
    counts = sum((part.counts for part in shapes), Counts())
    found = (
        f"{count(counts.lake, 'row')}, {counts.sampled:,} in the sample, {counts.without_label:,} of those without a "
        f"label, {counts.without_weight:,} without a positive weight, {counts.train:,} to train, "
        f"{counts.validation:,} to validate"
    )
    if counts.train == 0:
        raise DataError(f"no rows are left to train on: {found}")
    if validation and counts.validation == 0:
        raise DataError(f"no rows are left to validate with: {found}; raise the fraction, or set validation to 0")
    if min(part.least for part in shapes) == max(part.greatest for part in shapes):
        raise DataError(f"column '{target.label}' (label) has the same value in all training rows: {found}")
    return counts
