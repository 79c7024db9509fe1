"""Cut a lake into slices of rows and columns, each under a byte budget, from footers alone.

Rows come in spans: row groups, and small files, packed together. Columns come in blocks. A slice is one span of one
block. A row group that exceeds the budget is cut into slices of fewer columns, and if a single column exceeds it, the
slice is streamed in batches of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow.types as pt

from excir_dask.errors import UsageError
from excir_dask.lake.column_blocks import column_blocks, even_ranges, vector_ranges
from excir_dask.lake.sample import Sample
from excir_dask.lake.select import Selection
from excir_dask.lake.snapshot import LakeFile, Snapshot
from excir_dask.lake.tables.table import Constant, DeletedRows

DEFAULT_BUDGET = 128 * 2**20
"""decoded bytes per slice"""

MIN_BUDGET = 2**20

SPAN_FILES = 64
"""files per span: each is open while its slice is read"""

_MIN_SLICES = 12
"""slices per lake, as long as they are not smaller than the next figure"""

_SMALL_SLICE = 16 * 2**20
"""decoded bytes of a slice below which a finer cut costs more than it gains"""

_FEATURES_PER_FIXED_COLUMN = 10
"""features that a slice has per output and weight, if the budget allows: every slice reads those again"""

_STREAM_COLUMNS = 8
"""columns of a streamed slice: each holds some megabytes of pages"""

_VALUE_BYTES = 8


@dataclass(frozen=True)
class Fragment:
    """Row groups of one file."""

    path: str
    relative: str
    """path below the lake's root"""
    size: int
    """bytes of the file when the run was planned"""
    row_groups: tuple[int, ...]
    rows: tuple[int, ...]
    """per row group"""
    constants: tuple[tuple[str, float | str | None], ...]
    """columns that have one value in all rows, such as partition keys; text for categories"""
    stored_names: tuple[tuple[str, str], ...] = ()
    """column -> its name in the file, if that differs"""
    deleted: tuple[DeletedRows | None, ...] = ()
    """deleted rows per row group; empty if there are none"""
    verify: bool = True
    """verify the checksums of pages that have one"""
    filter_constants: tuple[Constant, ...] = ()
    """columns of the row filter that have one value in all rows"""

    @property
    def live_rows(self) -> int:
        """Rows that are not deleted."""
        return sum(self.rows) - sum(each.count for each in self.deleted if each is not None)


@dataclass(frozen=True)
class Slice:
    """The unit of work: some rows of some columns."""

    rows: int
    start: int
    """first feature column"""
    stop: int
    """end of the feature columns"""
    lead: bool
    """the slice of its span that counts the rows and scans the outputs"""
    fragments: tuple[Fragment, ...] = ()
    """row groups to read; empty for frames"""
    batch_rows: int | None = None
    """rows to decode at a time, if the whole slice exceeds the budget"""
    part: str = ""
    """of a frame: what the random draws of its rows depend on"""
    first_row: int = 0
    """of a frame: first row of the part"""
    head: bool = False
    """read only the first ``batch_rows`` of its one row group"""

    @property
    def live_rows(self) -> int:
        """Rows that are not deleted."""
        return sum(fragment.live_rows for fragment in self.fragments) if self.fragments else self.rows


@dataclass(frozen=True)
class Plan:
    """All slices in the order in which their results are merged. Independent of workers and threads."""

    selection: Selection
    budget: int
    blocks: tuple[tuple[tuple[Slice, ...], ...], ...]
    """column block -> span of rows -> slices with the same rows"""
    excluded_rows: int = 0
    """rows of the sample's row groups that are not read, because none of them matches the row filter"""

    @property
    def rows(self) -> int:
        """Rows to read; 0 if unknown (a dask DataFrame)."""
        return sum(slices[0].live_rows for slices in self.blocks[0])

    @property
    def files(self) -> int:
        """Files to read."""
        return len({fragment.path for slices in self.blocks[0] for fragment in slices[0].fragments})

    @property
    def row_groups(self) -> int:
        """Row groups to read."""
        return sum(len(fragment.row_groups) for slices in self.blocks[0] for fragment in slices[0].fragments)

    def slices(self) -> Iterator[Slice]:
        for block in self.blocks:
            for span in block:
                yield from span

    @property
    def spans(self) -> int:
        return len(self.blocks[0])

    @property
    def fixed_columns(self) -> int:
        """Columns that every slice holds beside its features."""
        return fixed_columns(self.selection)

    @property
    def slice_bytes(self) -> int:
        """Decoded bytes of the largest slice."""
        fixed = fixed_columns(self.selection)
        return max(
            ((s.stop - s.start + fixed) * _VALUE_BYTES * min(s.rows, s.batch_rows or s.rows) for s in self.slices()),
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
        Decoded bytes per slice.
    sample : Sample, optional
        Row groups outside it are not planned.
    """
    _check_budget(budget)
    blocks = column_blocks(len(selection.features), vector_ranges(selection))
    # a model takes all its columns at once, and a vector is decoded as a whole
    width = max(*(stop - start for start, stop in blocks), len(selection.model_columns), selection.widest)
    fixed = fixed_columns(selection)
    drawn = (sample or Sample()).row_groups(snapshot.files)  # whatever the filter: samples of all filters agree
    excluded = snapshot.excluded or [frozenset[int]()] * len(snapshot.files)
    groups = [chosen - gone for chosen, gone in zip(drawn, excluded, strict=True)]
    rows = sum(file.row_groups[g] for file, chosen in zip(snapshot.files, groups, strict=True) for g in chosen)
    size = _slice_size(budget, _VALUE_BYTES * rows * (len(selection.features) + fixed))
    spans = list(_spans(snapshot, selection, max(size // (_VALUE_BYTES * (width + fixed)), 1), groups))

    def slices(start: int, stop: int) -> tuple[tuple[Slice, ...], ...]:
        return tuple(tuple(_slices(s, start, stop, size=size, budget=budget, selection=selection)) for s in spans)

    excluded_rows = sum(
        file.live_rows[g]
        for file, chosen, gone in zip(snapshot.files, drawn, excluded, strict=True)
        for g in chosen & gone
    )
    return Plan(selection, budget, tuple(slices(start, stop) for start, stop in blocks), excluded_rows)


def append_spans(plan: Plan, more: Plan) -> Plan:
    """A plan with the spans of another plan of the same columns after its own."""
    blocks = tuple(own + others for own, others in zip(plan.blocks, more.blocks, strict=True))
    return replace(plan, blocks=blocks, excluded_rows=plan.excluded_rows + more.excluded_rows)


def row_spans(
    snapshot: Snapshot, selection: Selection, budget: int, value_bytes: int = _VALUE_BYTES
) -> list[tuple[Fragment, ...]]:
    """Spans of rows for readers that need all columns of a row; a row group above the budget is a span by itself.

    Parameters
    ----------
    snapshot : Snapshot
    selection : Selection
    budget : int
        Bytes of the features, outputs and weights of a span.
    value_bytes : int
        Bytes per value.
    """
    _check_budget(budget)
    row = value_bytes * (len(selection.features) + len(selection.outputs) + 1)
    size = _slice_size(budget, row * snapshot.rows)
    return list(_spans(snapshot, selection, max(size // row, 1), Sample().row_groups(snapshot.files)))


def fixed_columns(selection: Selection) -> int:
    """Columns that every slice holds in addition to its features: outputs, raw and centred, weights, a row filter's."""
    return 2 * (len(selection.outputs) + selection.model_outputs) + 2 + len(selection.filter_columns)


def _check_budget(budget: int) -> None:
    if budget < MIN_BUDGET:
        raise UsageError(f"the slice budget is {budget} bytes; it must be at least 1 MiB")


def _slice_size(budget: int, total: int) -> int:
    """Bytes per slice; a small lake is cut finer than the budget, so that several threads have work."""
    return min(budget, max(total // _MIN_SLICES, _SMALL_SLICE))


def _spans(
    snapshot: Snapshot, selection: Selection, max_rows: int, groups: Sequence[frozenset[int]]
) -> Iterator[tuple[Fragment, ...]]:
    numbers = {*selection.features, *selection.outputs, selection.weight, *selection.model_columns}
    texts = {*selection.categoricals, *(n for n, kind in snapshot.key_types.items() if not pt.is_integer(kind))}
    used = numbers | {*selection.categoricals, *selection.by}
    pending: list[Fragment] = []
    for file, chosen in zip(snapshot.files, groups, strict=True):
        constants = tuple((name, _constant(value, name in texts)) for name, value in file.constants if name in used)
        for run in _runs(file, max_rows, chosen):
            fragment = Fragment(
                file.path,
                file.relative,
                file.size,
                row_groups=run,
                rows=tuple(file.row_groups[g] for g in run),
                constants=constants,
                stored_names=file.stored_names,
                deleted=tuple(file.deleted[g] for g in run) if file.deleted else (),
                verify=snapshot.location.verify_checksums,
                filter_constants=tuple(each for each in file.constants if each[0] in selection.filter_columns),
            )
            room = max_rows - sum(sum(other.rows) for other in pending)
            if pending and (sum(fragment.rows) > room or len(pending) >= SPAN_FILES):
                yield tuple(pending)
                pending = []
            pending.append(fragment)
    if pending:
        yield tuple(pending)


def _runs(file: LakeFile, max_rows: int, chosen: frozenset[int]) -> Iterator[tuple[int, ...]]:
    """The chosen row groups of a file, packed into runs of at most ``max_rows`` rows."""
    run: list[int] = []
    rows = 0
    for number in sorted(chosen):
        count = file.row_groups[number]
        if run and rows + count > max_rows:
            yield tuple(run)
            run, rows = [], 0
        run.append(number)
        rows += count
    if run:
        yield tuple(run)


def _slices(
    fragments: Sequence[Fragment], start: int, stop: int, *, size: int, budget: int, selection: Selection
) -> Iterator[Slice]:
    """The columns ``start`` to ``stop`` of a span, in slices of about ``size`` bytes and at most ``budget``."""
    rows = sum(sum(fragment.rows) for fragment in fragments)
    column = _VALUE_BYTES * rows
    fixed = fixed_columns(selection)
    enough = _FEATURES_PER_FIXED_COLUMN * (len(selection.outputs) + (selection.weight is not None))
    width, batch_rows = max(size // column - fixed, min(enough, budget // column - fixed)), None
    if width < 1:
        if column * (1 + fixed) <= budget:
            width = 1
        else:
            width = min(_STREAM_COLUMNS, stop - start)
            batch_rows = max(budget // (_VALUE_BYTES * (width + fixed)), 1)
    for first, last in even_ranges(start, stop, width):
        yield Slice(rows, first, last, first == 0, tuple(fragments), batch_rows=batch_rows)


def _constant(value: int | float | str | None, text: bool) -> float | str | None:
    if isinstance(value, str) or (value is None and text):
        return value
    return float("nan") if value is None else float(value)
