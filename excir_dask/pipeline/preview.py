"""What a run would read, from footers alone: the answer of ``excir plan``."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from excir_dask.common.wording import count, printable_lines, size
from excir_dask.errors import LakeError, SchemaError
from excir_dask.lake.locate import locate
from excir_dask.lake.plan import make_plan
from excir_dask.lake.schema import conflicts, describe_columns
from excir_dask.lake.select import select
from excir_dask.lake.snapshot import take_snapshot
from excir_dask.models.output_columns import output_columns
from excir_dask.pipeline.option_kinds import parse_bytes
from excir_dask.pipeline.options import ExplainOptions

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
    bytes: int
    """on disk"""
    columns: int
    features: int
    left_out: dict[str, str]
    converted: dict[str, str]
    conflicts: list[str]
    page_checksums: dict[str, Any]
    """files that were looked at for them, and those of them without any"""
    remarks: list[str]
    """what else was left out, a sentence each"""
    slices: int
    slice_bytes: int
    """decoded bytes of the largest slice: what each thread needs on top of the process itself"""
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
        """Memory that a worker with so many threads needs, about."""
        return BASE_MEMORY + threads * self.slice_bytes

    def __str__(self) -> str:
        lines = [
            f"lake      {self.lake}",
            *([f"table     {self.table['table']}, version {self.table['version']}"] if self.table else []),
            f"files     {self.files:,} ({size(self.bytes)}, {count(self.row_groups, 'row group')})",
            _checksums(**self.page_checksums),
            f"rows      {self.rows:,}",
            f"columns   {self.columns:,}, of which {self.features:,} can be explained",
        ]
        if self.slices:
            memory = self.worker_bytes(2), self.worker_bytes(8)
            lines.append(f"slices    {self.slices:,} per scan, at most {size(self.slice_bytes)} decoded each")
            lines.append(f"memory    about {size(memory[0])} for a worker with 2 threads, {size(memory[1])} with 8")
        for title, found in (("left out", self.left_out), ("converted to float64", self.converted)):
            if found:
                lines.append(f"{title}:")
                lines += [f"  {name}: {reason}" for name, reason in list(found.items())[:20]]
                if len(found) > 20:
                    lines.append(f"  ... and {len(found) - 20} more")
        lines += [f"note: {remark}" for remark in self.remarks]
        lines.append(f"schema conflicts: {len(self.conflicts) or 'none'}")
        return printable_lines([*lines, *(f"  {conflict}" for conflict in self.conflicts)])


def preview(lake: str, options: ExplainOptions) -> Preview:
    """Plan a run without reading data. What would stop the run is part of the answer, not an error."""
    outputs = () if options.output is None else output_columns(options.output).columns
    snapshot = take_snapshot(locate(lake, options.storage_options, options.table_version))
    columns = describe_columns(snapshot)
    selection = plan = None
    problem: LakeError | None = None
    try:
        selection = select(columns, outputs, options.weights, options.features)
    except SchemaError as error:
        problem = error
    if selection is not None and snapshot.rows:
        plan = make_plan(snapshot, selection, parse_bytes(options.budget))
    elif selection is not None:
        problem = LakeError(f"{snapshot.location.name} has {count(len(snapshot.files), 'file')} but no rows")
    usable = [column for column in columns.values() if column.unusable is None and not column.conflicts]
    return Preview(
        lake=snapshot.location.name,
        table=None if snapshot.location.table is None else snapshot.location.table.source,
        files=len(snapshot.files),
        row_groups=sum(len(file.row_groups) for file in snapshot.files),
        rows=snapshot.rows,
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
        problem=problem,
    )


def _checksums(files_looked_at: int, files_without: int) -> str:
    having = files_looked_at - files_without
    return f"checksums in {having:,} of {files_looked_at:,} files{' looked at' if files_looked_at else ''}"
