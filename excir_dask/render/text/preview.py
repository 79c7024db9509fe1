"""A preview of a run on a terminal."""

from __future__ import annotations

from excir_dask.common.wording import count, listed, printable_lines, size
from excir_dask.pipeline.preview import Preview

MOST_COLUMNS = 20
"""columns of a list that are shown"""


def text(preview: Preview) -> str:
    """What a run would read, what it needs, and what is wrong with the lake."""
    lines = [
        f"lake      {preview.lake}",
        *([f"table     {preview.table['table']}, version {preview.table['version']}"] if preview.table else []),
        f"files     {preview.files:,} ({size(preview.bytes)}, {count(preview.row_groups, 'row group')})",
        _checksums(**preview.page_checksums),
        f"rows      {preview.rows:,}",
        *_left(preview),
        f"columns   {preview.columns:,}, of which {preview.features:,} can be explained",
    ]
    if preview.slices:
        memory = size(preview.worker_bytes(2)), size(preview.worker_bytes(8))
        lines.append(f"slices    {preview.slices:,} per scan, at most {size(preview.slice_bytes)} decoded each")
        lines.append(f"memory    about {memory[0]} for a worker with 2 threads, {memory[1]} with 8")
    if preview.left_out:
        lines.append("left out:")
        lines += [f"  {name}: {reason}" for name, reason in list(preview.left_out.items())[:MOST_COLUMNS]]
        if len(preview.left_out) > MOST_COLUMNS:
            lines.append(f"  ... and {len(preview.left_out) - MOST_COLUMNS} more")
    if preview.converted:
        by_type: dict[str, list[str]] = {}
        for name, kind in preview.converted.items():
            by_type.setdefault(kind, []).append(name)
        lines.append("converted to float64:")
        lines += [f"  {kind}: {listed(names)}" for kind, names in by_type.items()]
    lines += [f"note: {remark}" for remark in preview.remarks]
    lines.append(f"schema conflicts: {len(preview.conflicts) or 'none'}")
    return printable_lines([*lines, *(f"  {conflict}" for conflict in preview.conflicts)])


def _left(preview: Preview) -> list[str]:
    """What the row filter leaves to be read."""
    left = preview.left
    if left is None:
        return []
    parts = [
        f"{left['files']:,} of {count(preview.files, 'file')}",
        f"{left['row_groups']:,} of {count(preview.row_groups, 'row group')}",
        f"{left['rows']:,} of {count(preview.rows, 'row')}",
    ]
    return [f"where     {', '.join(parts)} left to read; the others hold no match"]


def _checksums(files_looked_at: int, files_without: int) -> str:
    having = files_looked_at - files_without
    return f"checksums in {having:,} of {files_looked_at:,} files{' looked at' if files_looked_at else ''}"
