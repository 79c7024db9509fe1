"""The parts of an explanation besides its scores: outputs, facts that repeat with the run, and provenance."""

from __future__ import annotations

import platform
import time
from collections.abc import Sequence
from dataclasses import fields
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Any

from excir_dask.graph.measure import Measurement
from excir_dask.graph.segment_states import SegmentStates
from excir_dask.kernels.categories import MOST_VALUES
from excir_dask.kernels.settle import ColumnStats
from excir_dask.lake.snapshot import Snapshot
from excir_dask.pipeline.inputs import Inputs, Outputs
from excir_dask.pipeline.options import OPTIONS, ExplainOptions
from excir_dask.results.metadata import (
    Facts,
    LakeSource,
    ModelSettings,
    ModelSource,
    Provenance,
    RowCounts,
    RunSettings,
    SegmentFacts,
)
from excir_dask.version import __version__

if TYPE_CHECKING:
    import pandas as pd

version = cache(metadata.version)  # 2 ms per package, a tenth of a small run


def output_table(names: Sequence[str], outputs: Outputs, found: ColumnStats) -> pd.DataFrame:
    """A row per output."""
    import pandas as pd

    columns = outputs.columns.columns if outputs.model is None else [outputs.model.predict_type] * len(names)
    return pd.DataFrame({"output": list(names), "column": columns, **output_figures(found)})


def output_figures(found: ColumnStats) -> dict[str, Any]:
    """What the table of outputs says about each."""
    return {
        "n": found.n,
        "center": found.center,
        "center_error": found.error,
        "q25": found.q25,
        "q75": found.q75,
        "flag": ["constant" if constant else "" for constant in found.constant],
    }


def facts(
    inputs: Inputs,
    measured: Measurement,
    constant: Sequence[str],
    out_of_range: Sequence[str],
    names: Sequence[str],
    options: ExplainOptions,
) -> Facts:
    """What must be the same when the run is repeated; options that are fields of :class:`RunSettings` are recorded."""
    model, selection, sample = inputs.outputs.model, inputs.plan.selection, inputs.sample
    recorded = {found.name: getattr(options, found.name) for found in fields(RunSettings) if found.name in OPTIONS}
    resolved = {
        "outputs": dict(zip(names, inputs.outputs.columns.columns or [None] * len(names), strict=True)),
        "model": None if model is None else ModelSettings(kind=model.kind, predict_type=model.predict_type),
        "fraction": sample.fraction,
        "sampling": sample.by,
        "weights": selection.weight,
        "by": selection.by,
        "group_correlated": inputs.groups.correlated,
        "group_rows": None if inputs.groups.correlated is None else options.group_rows,
    }
    rows = RowCounts(
        lake=measured.rows.read if inputs.snapshot is None else inputs.snapshot.rows,
        filtered_out=inputs.plan.excluded_rows + measured.rows.filtered_out,
        sampled=measured.rows.sampled,
        without_output=measured.rows.without_output,
        without_weight=measured.rows.without_weight,
        used=measured.rows.used,
        row_groups=measured.row_groups,
    )
    states = measured.segments
    reason = f"text with more than {MOST_VALUES:,} different values, too many to be categories"
    return Facts(
        settings=RunSettings(**{**recorded, **resolved}),
        rows=rows,
        constant=tuple(constant),
        out_of_range=tuple(out_of_range),
        left_out={**selection.left_out, **dict.fromkeys(measured.too_many, reason)},
        converted=selection.converted,
        segments=() if states is None else segment_facts(states, rows, measured.rows.matching),
    )


def segment_facts(states: SegmentStates, rows: RowCounts, matching: int) -> tuple[SegmentFacts, ...]:
    """Rows of every segment that match the row filter.

    ``rows`` are those of all segments. ``matching`` of them match in the row groups that were drawn, and other row
    groups are taken to be alike.
    """
    found, drawn = [], rows.filtered_out + matching
    for name, counts, units in zip(states.names, states.counts, states.spans.units.tolist(), strict=True):
        found.append(
            SegmentFacts(
                name=name,
                lake=round(counts.read * rows.lake / drawn),
                sampled=counts.sampled,
                without_output=counts.without_output,
                without_weight=counts.without_weight,
                used=counts.used,
                row_groups=units,
            )
        )
    return tuple(found)


def provenance(inputs: Inputs, measured: Measurement, began: float) -> Provenance:
    """What may differ between two runs with the same result; ``began`` is a time of the performance counter."""
    model = inputs.outputs.model
    packages = [
        "dask",
        "pyarrow",
        "numpy",
        "pandas",
        "crick",
        *(["xgboost"] if model and model.kind == "xgboost" else []),
    ]
    return Provenance(
        lake=_source(inputs),
        model=None
        if model is None
        else ModelSource(
            kind=model.kind,
            sha256=model.sha256,
            predict_type=model.predict_type,
            columns=tuple(inputs.plan.selection.model_columns),
            extra=dict(model.details),
        ),
        slices=sum(1 for _ in inputs.plan.slices()),
        budget=inputs.plan.budget,
        bytes_read=measured.bytes_read,
        resumed_states=measured.resumed_states,
        seconds=round(time.perf_counter() - began, 3),
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        versions={
            "excir-dask": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in packages},
        },
    )


def _source(inputs: Inputs) -> LakeSource:
    if inputs.snapshot is None:
        return LakeSource(name=f"{type(inputs.lake).__module__.split('.')[0]} DataFrame")
    return lake_source(inputs.snapshot)


def lake_source(snapshot: Snapshot) -> LakeSource:
    """What the manifest says about the files of a lake."""
    table = snapshot.location.table
    return LakeSource(
        name=snapshot.location.name,
        files=len(snapshot.files),
        rows=snapshot.rows,
        bytes=snapshot.size,
        fingerprint=snapshot.fingerprint,
        remarks=tuple(snapshot.location.remarks),
        page_checksums=snapshot.checksums,
        table=None if table is None else table.format,
        version=None if table is None else table.version,
    )
