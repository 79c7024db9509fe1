"""From the arguments of a run to what it reads: where the outputs come from, which columns, which slices."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from excir_dask.errors import LakeError, UsageError
from excir_dask.lake.blocks import Layout
from excir_dask.lake.frames import frame_columns, is_dask, is_pandas, plan_dask, plan_pandas
from excir_dask.lake.locate import locate
from excir_dask.lake.open_files import OpenFiles
from excir_dask.lake.plan import Plan, append_spans, make_plan
from excir_dask.lake.sample import Sample
from excir_dask.lake.schema import Column, describe_columns
from excir_dask.lake.select import Selection, select
from excir_dask.lake.snapshot import Snapshot, take_snapshot
from excir_dask.models.checks import check_columns, columns_of_any_type
from excir_dask.models.output_columns import OutputColumns, output_columns
from excir_dask.version import __version__

if TYPE_CHECKING:
    from excir_dask.models.scoring import Model

_NUMBERS = ("int", "uint", "float", "double", "half", "bool", "decimal")

CALLABLE_OUTPUTS = 4
"""outputs that a callable is assumed to have when slices are cut: only calling it tells"""


@dataclass(frozen=True)
class Outputs:
    """Where a run's outputs come from: columns of the lake, or a model."""

    columns: OutputColumns
    """none where a model makes them"""
    model: Model | None = None


@dataclass(frozen=True)
class Inputs:
    """Everything that a run reads."""

    lake: Any
    """as it was given"""
    outputs: Outputs
    sample: Sample
    plan: Plan
    layout: Layout
    frames: list[Any] | None
    """pieces of a DataFrame, one a span; None for files"""
    snapshot: Snapshot | None
    """of the files; None for a DataFrame"""

    @property
    def rows(self) -> int:
        """of the lake; 0 where only reading it tells (a dask DataFrame)"""
        return self.plan.rows if self.snapshot is None else self.snapshot.rows


def understand_outputs(
    output: str | Sequence[str] | Mapping[str, str] | None,
    model: Any,
    predict_type: str,
    model_columns: Sequence[str] | None,
    allow_pickle: bool,
) -> Outputs:
    """Exactly one of ``output`` and ``model`` says where the outputs come from."""
    if (output is None) == (model is None):
        what = "neither is" if output is None else "both are"
        raise UsageError(f"name output columns (--output) or give a model (--model), one of the two; {what} given")
    if model is None:
        return Outputs(output_columns(output))
    from excir_dask.models.load import load_model

    loaded = load_model(model, predict_type=predict_type, columns=model_columns, allow_pickle=allow_pickle)
    return Outputs(OutputColumns((), ()), loaded)


def prepare(
    lake: Any,
    outputs: Outputs,
    *,
    features: str | Sequence[str] | None,
    weights: str | None,
    indicators: bool,
    sample: Sample,
    budget: int,
    storage_options: Mapping[str, Any] | None,
    table_version: int | None = None,
    verify_checksums: bool = True,
) -> Inputs:
    """Take stock of a lake and plan how it is read."""
    if is_pandas(lake) or is_dask(lake):
        if table_version is not None:
            raise UsageError(f"version {table_version} was asked for, but a DataFrame has no versions")
        if sample.whole_row_groups and sample.fraction < 1.0:
            raise UsageError("a DataFrame has no row groups; use sampling='rows', or save it as Parquet")
        columns = frame_columns(lake)
        selection = _select(columns, outputs, weights, features, indicators)
        plan, frames = (plan_pandas if is_pandas(lake) else plan_dask)(lake, selection, budget)
        if not frames:
            raise LakeError("the frame has no rows")
        return Inputs(lake, outputs, sample, plan, _layout(None, selection, sample), frames, None)
    if not isinstance(lake, str | os.PathLike | Sequence):
        raise UsageError(f"a lake is a path, a URL, a glob, a list of files or a DataFrame, not {type(lake).__name__}")
    snapshot = take_snapshot(locate(lake, storage_options, table_version, verify_checksums))
    columns = describe_columns(snapshot)
    selection = _select(columns, outputs, weights, features, indicators)
    if snapshot.rows == 0:
        raise LakeError(f"{snapshot.location.name} has {len(snapshot.files)} files but no rows")
    layout = _layout(snapshot.location.filesystem, selection, sample)
    plan = make_plan(snapshot, selection, budget, sample)
    return Inputs(lake, outputs, sample, plan, layout, None, snapshot)


def resampled(inputs: Inputs, sample: Sample, earlier: Inputs | None = None) -> Inputs:
    """The same with another sample; slices of whole row groups that a smaller sample has stay as they are."""
    selection, snapshot = inputs.plan.selection, inputs.snapshot
    if snapshot is None:
        return replace(inputs, sample=sample, layout=_layout(None, selection, sample))
    layout = _layout(snapshot.location.filesystem, selection, sample)
    if earlier is None or not sample.whole_row_groups:
        plan = make_plan(snapshot, selection, inputs.plan.budget, sample)
    else:
        fresh = replace(sample, above=earlier.sample.fraction)
        plan = append_spans(earlier.plan, make_plan(snapshot, selection, inputs.plan.budget, fresh))
    return replace(inputs, sample=sample, plan=plan, layout=layout)


def identity(inputs: Inputs, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What makes two runs the same: everything that decides the result, and how it is cut."""
    assert inputs.snapshot is not None, "frames cannot be told apart"
    model, selection = inputs.outputs.model, inputs.plan.selection
    return {
        "version": __version__,
        "lake": inputs.snapshot.fingerprint,
        "outputs": inputs.outputs.columns.columns,
        "model": None if model is None else [model.kind, model.sha256, model.predict_type],
        "selection": [
            selection.features, selection.weight, selection.categoricals, selection.model_columns, selection.vectors,
        ],
        "seed": inputs.sample.seed,
        "budget": inputs.plan.budget,
        "settings": settings,
    }  # fmt: skip


def parse_bytes(budget: int | str) -> int:
    """Bytes from a number or a text such as ``"64MB"`` or ``"64MiB"``.

    >>> parse_bytes("64MiB")
    67108864
    """
    from dask.utils import parse_bytes as parse

    try:
        return int(parse(budget))
    except ValueError as error:
        raise UsageError(f"'{budget}' is not a number of bytes; write for instance 128MB") from error


def _select(
    columns: Mapping[str, Column],
    outputs: Outputs,
    weights: str | None,
    features: str | Sequence[str] | None,
    indicators: bool,
) -> Selection:
    model = outputs.model
    if model is None:
        return select(columns, outputs.columns.columns, weights, features, indicators=indicators)
    selection = select(
        columns,
        (),
        weights,
        features,
        indicators=indicators,
        model_columns=model.columns or (),
        any_type=columns_of_any_type(model),
        model_outputs=CALLABLE_OUTPUTS if model.names is None else len(model.names),
    )
    if model.columns is None:  # what is explained must not change what the model sees
        return replace(selection, model_columns=select(columns, (), weights, None).features)
    check_columns(model, {name: _holds_text(columns[name]) for name in model.columns if name in columns})
    return selection


def _holds_text(column: Column) -> bool:
    """Text, or a dictionary of text rather than of numbers."""
    return column.text and not column.types[0].startswith(tuple(f"dictionary<values={n}" for n in _NUMBERS))


def _layout(filesystem: Any, selection: Selection, sample: Sample) -> Layout:
    return Layout(
        filesystem,
        selection.features,
        selection.outputs,
        selection.weight,
        sample,
        selection.categoricals,
        selection.model_columns,
        OpenFiles(selection.vectors, selection.categoricals),
    )
