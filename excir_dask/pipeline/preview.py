"""A preview of a run, from footers alone: what ``excir plan`` prints."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from excir_dask.common.wording import count
from excir_dask.errors import LakeError, NoRowsError, SchemaError
from excir_dask.lake.filter import bind
from excir_dask.lake.locate import locate
from excir_dask.lake.plan import make_plan
from excir_dask.lake.prune import nothing_matches, prune
from excir_dask.lake.schema import column_types, conflicts, describe_columns
from excir_dask.lake.select import select
from excir_dask.lake.snapshot import take_snapshot
from excir_dask.models.output_columns import output_columns
from excir_dask.pipeline.inputs import by_columns
from excir_dask.pipeline.option_kinds import parse_bytes
from excir_dask.pipeline.options import ExplainOptions
from excir_dask.pipeline.segments import MEMORY

STATE_BYTES = 70 * 2**10
"""memory of a worker per feature: its part of the reference, and states that are being merged"""

BASE_MEMORY = 250 * 2**20
"""resident memory of a worker process before it reads anything"""


@dataclass(frozen=True)
class Preview:
    """A lake and the plan for it."""

    lake: str
    table: dict[str, Any] | None
    """kind and version of a table; None for plain files"""
    files: int
    row_groups: int
    rows: int
    left: dict[str, int] | None
    """files, row groups and rows that a row filter leaves to be read; None without one"""
    bytes: int
    """on disk"""
    columns: int
    features: int
    left_out: dict[str, str]
    converted: dict[str, str]
    conflicts: list[str]
    page_checksums: dict[str, Any]
    """how many files were checked for them, and how many of those have none"""
    remarks: list[str]
    """sentences about what else was left out"""
    slices: int
    slice_bytes: int
    """decoded bytes of the largest slice: the memory of each thread, on top of the process itself"""
    segment_bytes: int
    """memory of the states of segments at most; 0 without segments"""
    problem: LakeError | None
    """what would stop a run"""

    def to_dict(self) -> dict[str, Any]:
        problem = None if self.problem is None else str(self.problem)
        return {
            **asdict(self),
            "worker_bytes": {str(n): self.worker_bytes(n) for n in (1, 2, 4, 8)},
            "problem": problem,
        }

    def worker_bytes(self, threads: int) -> int:
        """Approximate memory of a worker with this many threads."""
        return BASE_MEMORY + self.features * STATE_BYTES + self.segment_bytes + threads * self.slice_bytes


def preview(lake: str, options: ExplainOptions) -> Preview:
    """Plan a run without reading data. A problem that would stop the run is part of the result, not an error."""
    outputs = () if options.output is None else output_columns(options.output).columns
    snapshot = take_snapshot(locate(lake, options.storage_options, options.table_version))
    columns = describe_columns(snapshot)
    selection = plan = None
    problem: LakeError | None = None
    try:
        where = None if options.where is None else bind(options.where, columns, partial(column_types, snapshot))
        selection = select(columns, outputs, options.weights, options.features, by=by_columns(options), times=True)
    except SchemaError as error:
        problem = error
    if selection is not None and snapshot.rows:
        if where is not None:
            selection, snapshot = replace(selection, filter_columns=where.columns), prune(snapshot, where)
        plan = make_plan(snapshot, selection, parse_bytes(options.budget))
        if where is not None and not plan.spans:
            problem = NoRowsError(nothing_matches(where, snapshot.rows))
    elif selection is not None:
        problem = LakeError(f"{snapshot.location.name} has {count(len(snapshot.files), 'file')} but no rows")
    usable = [column for column in columns.values() if column.unusable is None and not column.conflicts]
    return Preview(
        lake=snapshot.location.name,
        table=None if snapshot.location.table is None else snapshot.location.table.source,
        files=len(snapshot.files),
        row_groups=sum(len(file.row_groups) for file in snapshot.files),
        rows=snapshot.rows,
        left=None
        if plan is None or options.where is None
        else {"files": plan.files, "row_groups": plan.row_groups, "rows": plan.rows},
        bytes=snapshot.size,
        columns=len(columns),
        features=len(selection.features) if selection else len(usable),
        left_out=selection.left_out if selection else {c.name: c.unusable for c in columns.values() if c.unusable},
        converted=selection.converted if selection else {},
        conflicts=conflicts(columns.values()),
        page_checksums={name: n for name, n in snapshot.checksums.items() if name != "verified"},
        remarks=list(snapshot.location.remarks),
        slices=sum(1 for _ in plan.slices()) if plan else 0,
        slice_bytes=plan.slice_bytes if plan else 0,
        segment_bytes=MEMORY * parse_bytes(options.budget) if options.by is not None else 0,
        problem=problem,
    )
