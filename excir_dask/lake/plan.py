"""How a lake is cut: slices of rows and columns, each under a byte budget, decided from footers alone.

Rows come in spans (row groups packed together, small files side by side); columns come in blocks of at most
``BLOCK_COLUMNS``. A slice is a span of one block. A row group that is too large for the budget by itself
is cut into narrower slices, and one whose single column is too large is streamed in batches of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import pyarrow.types as pt

from excir_dask.errors import UsageError
from excir_dask.lake.sample import Sample
from excir_dask.lake.select import Selection
from excir_dask.lake.snapshot import LakeFile, Snapshot
from excir_dask.lake.tables.log import Deleted

DEFAULT_BUDGET = 128 * 2**20
"""decoded bytes of one slice"""

BLOCK_COLUMNS = 256
"""columns in one block: keeps a merged state of digests below 4 MB"""

SPAN_FILES = 64
"""files in one span: each is open while its slice is read"""

_LEAST_SLICES = 12
"""slices that a lake is cut into at least, as long as they are not smaller than the next figure"""

_SMALL_SLICE = 16 * 2**20
"""decoded bytes below which cutting finer costs more than it gains"""

_COLUMNS_A_FIXED_ONE = 10
"""features that a slice has for each output and weight it reads, if the budget allows: those are read by every slice"""

_STREAM_COLUMNS = 8
"""columns of a slice that is streamed: each holds some megabytes of pages"""

_VALUE = 8
"""bytes of a float64"""


@dataclass(frozen=True)
class Fragment:
    """Some row groups of one file."""

    path: str
    relative: str
    size: int
    """bytes the file had when it was planned"""
    row_groups: tuple[int, ...]
    rows: tuple[int, ...]
    """of each of those row groups"""
    keys: tuple[tuple[str, float | str | None], ...]
    """values that all rows have, of the columns that the run uses; text where they are categories"""
    names: tuple[tuple[str, str], ...] = ()
    """column -> its name inside the file, where that is another"""
    deleted: tuple[Deleted | None, ...] = ()
    """rows of each of those row groups that do not count; empty where all do"""
    verify: bool = True
    """check pages that carry a checksum"""

    @property
    def live_rows(self) -> int:
        """rows that count"""
        return sum(self.rows) - sum(each.count for each in self.deleted if each is not None)


@dataclass(frozen=True)
class Slice:
    """The unit of work: some rows of some columns."""

    rows: int
    start: int
    """first feature column"""
    stop: int
    """behind the last one"""
    lead: bool
    """counts the rows and looks after the outputs; one slice of every span does"""
    fragments: tuple[Fragment, ...] = ()
    """what to read from a Parquet lake"""
    batch_rows: int | None = None
    """rows decoded at a time where the whole slice is too large for the budget"""
    part: str = ""
    """what the draw of a frame's rows depends on; frames have no fragments"""
    first_row: int = 0
    """of the part, for frames"""

    @property
    def live_rows(self) -> int:
        """rows that no table has deleted"""
        return sum(fragment.live_rows for fragment in self.fragments) if self.fragments else self.rows


@dataclass(frozen=True)
class Plan:
    """Everything that decides what is computed in which order. Independent of workers and threads."""

    selection: Selection
    budget: int
    blocks: tuple[tuple[tuple[Slice, ...], ...], ...]
    """column block -> span of rows -> slices side by side"""

    @property
    def rows(self) -> int:
        """of the lake, 0 where only reading it tells (a dask DataFrame)"""
        return sum(slices[0].live_rows for slices in self.blocks[0])

    def slices(self) -> Iterator[Slice]:
        for block in self.blocks:
            for span in block:
                yield from span

    @property
    def spans(self) -> int:
        return len(self.blocks[0])

    @property
    def slice_bytes(self) -> int:
        """decoded bytes that the largest slice holds at once"""
        fixed = fixed_columns(self.selection)
        return max(
            ((s.stop - s.start + fixed) * _VALUE * min(s.rows, s.batch_rows or s.rows) for s in self.slices()),
            default=0,
        )


def make_plan(
    snapshot: Snapshot, selection: Selection, budget: int = DEFAULT_BUDGET, sample: Sample | None = None
) -> Plan:
    """Cut a Parquet lake into slices.

    Parameters
    ----------
    snapshot : Snapshot
    selection : Selection
    budget : int
        Decoded bytes that one slice may hold.
    sample : Sample, optional
        Row groups outside it are not planned.
    """
    if budget < 2**20:
        raise UsageError(f"the slice budget is {budget} bytes; it must be at least 1 MiB")
    blocks = column_blocks(len(selection.features))
    # a model is given all its columns at once, and a vector is decoded as a whole
    width = max(*(stop - start for start, stop in blocks), len(selection.model_columns), selection.widest)
    fixed = fixed_columns(selection)
    # a small lake is cut finer than the budget asks for, so that several threads have something to do
    groups = (sample or Sample()).row_groups(snapshot.files)
    rows = sum(f.row_groups[g] for f, kept in zip(snapshot.files, groups, strict=True) for g in kept)
    whole = _VALUE * rows * (len(selection.features) + fixed)
    size = min(budget, max(whole // _LEAST_SLICES, _SMALL_SLICE))
    spans = list(_spans(snapshot, selection, max(size // (_VALUE * (width + fixed)), 1), groups))
    return Plan(
        selection,
        budget,
        tuple(
            tuple(
                tuple(_slices(fragments, start, stop, size=size, budget=budget, selection=selection))
                for fragments in spans
            )
            for start, stop in blocks
        ),
    )


def append_spans(plan: Plan, more: Plan) -> Plan:
    """A plan with the spans of another one of the same columns behind its own."""
    return replace(plan, blocks=tuple(own + others for own, others in zip(plan.blocks, more.blocks, strict=True)))


def row_spans(snapshot: Snapshot, selection: Selection, budget: int, value: int = _VALUE) -> list[tuple[Fragment, ...]]:
    """Spans of rows for who needs all columns of a row at once; a row group larger than the budget is one by itself.

    Parameters
    ----------
    snapshot : Snapshot
    selection : Selection
    budget : int
        Bytes that the features, outputs and weights of a span may take.
    value : int
        Bytes of one value.
    """
    if budget < 2**20:
        raise UsageError(f"the slice budget is {budget} bytes; it must be at least 1 MiB")
    row = value * (len(selection.features) + len(selection.outputs) + 1)
    size = min(budget, max(row * snapshot.rows // _LEAST_SLICES, _SMALL_SLICE))
    return list(_spans(snapshot, selection, max(size // row, 1), Sample().row_groups(snapshot.files)))


def column_blocks(features: int) -> list[tuple[int, int]]:
    """Ranges of columns of about equal width, none wider than ``BLOCK_COLUMNS``.

    >>> column_blocks(600)
    [(0, 200), (200, 400), (400, 600)]
    """
    return _even(0, features, BLOCK_COLUMNS)


def fixed_columns(selection: Selection) -> int:
    """Columns that every slice holds beside its features: outputs raw and centred, weights."""
    return 2 * (len(selection.outputs) + selection.model_outputs) + 2


def _spans(
    snapshot: Snapshot, selection: Selection, most_rows: int, groups: Sequence[frozenset[int]]
) -> Iterator[tuple[Fragment, ...]]:
    numbers = {*selection.features, *selection.outputs, selection.weight, *selection.model_columns}
    texts = {*selection.categoricals, *(n for n, kind in snapshot.key_types.items() if not pt.is_integer(kind))}
    used = numbers | set(selection.categoricals)
    verify = snapshot.location.verify_checksums
    pending: list[Fragment] = []
    for file, kept in zip(snapshot.files, groups, strict=True):
        keys = tuple((name, _key(value, name in texts)) for name, value in file.keys if name in used)
        for group in _runs(file, most_rows, kept):
            rows = tuple(file.row_groups[g] for g in group)
            deleted = tuple(file.deleted[g] for g in group) if file.deleted else ()
            fragment = Fragment(file.path, file.relative, file.size, group, rows, keys, file.names, deleted, verify)
            room = most_rows - sum(sum(other.rows) for other in pending)
            if pending and (sum(fragment.rows) > room or len(pending) >= SPAN_FILES):
                yield tuple(pending)
                pending = []
            pending.append(fragment)
    if pending:
        yield tuple(pending)


def _runs(file: LakeFile, most_rows: int, kept: frozenset[int]) -> Iterator[tuple[int, ...]]:
    """Row groups of a file that fit together, of those that are kept."""
    run: list[int] = []
    rows = 0
    for number in sorted(kept):
        count = file.row_groups[number]
        if run and rows + count > most_rows:
            yield tuple(run)
            run, rows = [], 0
        run.append(number)
        rows += count
    if run:
        yield tuple(run)


def _slices(
    fragments: Sequence[Fragment], start: int, stop: int, *, size: int, budget: int, selection: Selection
) -> Iterator[Slice]:
    """The columns ``start`` to ``stop`` of a span, in slices of about ``size`` bytes and never more than ``budget``."""
    rows = sum(sum(fragment.rows) for fragment in fragments)
    fixed = fixed_columns(selection)
    least = _COLUMNS_A_FIXED_ONE * (len(selection.outputs) + (selection.weight is not None))
    width, batch_rows = max(size // (_VALUE * rows) - fixed, min(least, budget // (_VALUE * rows) - fixed)), None
    if width < 1:
        if _VALUE * rows * (1 + fixed) <= budget:
            width = 1
        else:
            width = min(_STREAM_COLUMNS, stop - start)
            batch_rows = max(budget // (_VALUE * (width + fixed)), 1)
    for first, last in _even(start, stop, width):
        yield Slice(rows, first, last, first == 0, tuple(fragments), batch_rows=batch_rows)


def _even(start: int, stop: int, most: int) -> list[tuple[int, int]]:
    """Ranges of about equal length that cover ``start`` to ``stop``, none longer than ``most``."""
    count = max(-(-(stop - start) // most), 1)
    edges = [start + (stop - start) * i // count for i in range(count + 1)]
    return list(pairwise(edges))


def _key(value: int | float | str | None, text: bool) -> float | str | None:
    if isinstance(value, str) or (value is None and text):
        return value
    return float("nan") if value is None else float(value)
