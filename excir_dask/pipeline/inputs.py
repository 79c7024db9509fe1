"""Options meet a lake: where the outputs come from, which columns and groups, which slices. Reads footers, no data."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from excir_dask.common.wording import count, listed
from excir_dask.errors import LakeError, UsageError
from excir_dask.lake.blocks import Layout
from excir_dask.lake.filter import RowFilter, bind
from excir_dask.lake.frames import frame_columns, frame_types, is_dask, is_pandas, plan_dask, plan_pandas
from excir_dask.lake.locate import locate
from excir_dask.lake.open_files import OpenFiles
from excir_dask.lake.plan import Plan, append_spans, make_plan
from excir_dask.lake.prune import prune
from excir_dask.lake.sample import Sample
from excir_dask.lake.schema import Column, column_types, describe_columns
from excir_dask.lake.select import Selection, select
from excir_dask.lake.snapshot import Snapshot, take_snapshot
from excir_dask.models.checks import check_codes, check_columns, columns_of_any_type
from excir_dask.models.load import load_model
from excir_dask.models.naming import matched_columns
from excir_dask.models.output_columns import OutputColumns, output_columns
from excir_dask.pipeline.groups import WantedGroups, resolve_groups
from excir_dask.pipeline.option_kinds import parse_bytes
from excir_dask.pipeline.options import ExplainOptions
from excir_dask.results.explanation import Explanation

if TYPE_CHECKING:
    from excir_dask.models.scoring import Model

log = logging.getLogger(__name__)

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
    groups: WantedGroups
    sample: Sample
    plan: Plan
    layout: Layout
    frames: list[Any] | None
    """pieces of a DataFrame, one a span; None for files"""
    snapshot: Snapshot | None
    """of the files; None for a DataFrame"""
    reference: Explanation | None
    """an earlier run, whose provisional centres this one takes"""

    @property
    def rows(self) -> int:
        """of the lake; 0 where only reading it tells (a dask DataFrame)"""
        return self.plan.rows if self.snapshot is None else self.snapshot.rows


def resolve_inputs(lake: Any, options: ExplainOptions) -> Inputs:
    """Take stock of a lake and plan how it is read."""
    outputs = resolve_outputs(options)
    reference = _reference(options)
    sample = Sample(1.0 if options.adaptive else float(options.fraction), options.seed, options.sampling or "rows")
    budget = parse_bytes(options.budget)
    if is_pandas(lake) or is_dask(lake):
        _check_frame(options, sample)
        columns = frame_columns(lake)
        outputs = _under_lake_names(outputs, columns)
        where = None if options.where is None else bind(options.where, columns, partial(frame_types, lake))
        selection = _select(columns, outputs, options, where)
        plan, frames = (plan_pandas if is_pandas(lake) else plan_dask)(lake, selection, budget)
        if not frames:
            raise LakeError("the frame has no rows")
        groups = resolve_groups(options, selection)
        layout = _layout(None, selection, sample, where)
        return Inputs(lake, outputs, groups, sample, plan, layout, frames, None, reference)
    if not isinstance(lake, str | os.PathLike | Sequence):
        is_model = callable(lake) or hasattr(lake, "predict")
        hint = "; a model goes to model=, as in explain(data, model=model)" if is_model else ""
        raise UsageError(
            f"a lake is a path, a URL, a glob, a list of files or a table, not {type(lake).__name__}{hint}"
        )
    location = locate(lake, _storage_options(lake, options), options.table_version, options.verify_checksums)
    snapshot = take_snapshot(location)
    columns = describe_columns(snapshot)
    outputs = _under_lake_names(outputs, columns)
    where = None if options.where is None else bind(options.where, columns, partial(column_types, snapshot))
    selection = _select(columns, outputs, options, where)
    if snapshot.rows == 0:
        raise LakeError(f"{snapshot.location.name} has {count(len(snapshot.files), 'file')} but no rows")
    snapshot = snapshot if where is None else prune(snapshot, where)
    groups = resolve_groups(options, selection)
    layout = _layout(snapshot.location.filesystem, selection, sample, where)
    plan = make_plan(snapshot, selection, budget, sample)
    return Inputs(lake, outputs, groups, sample, plan, layout, None, snapshot, reference)


def resolve_outputs(options: ExplainOptions) -> Outputs:
    """Exactly one of ``output`` and ``model`` says where the outputs come from."""
    if (options.output is None) == (options.model is None):
        what = "neither is" if options.output is None else "both are"
        raise UsageError(f"name output columns (--output) or give a model (--model), one of the two; {what} given")
    if options.model is None:
        return Outputs(output_columns(options.output))
    model = load_model(
        options.model,
        predict_type=options.predict_type,
        columns=options.model_columns,
        allow_pickle=options.allow_pickle,
    )
    return Outputs(OutputColumns((), ()), model)


def _reference(options: ExplainOptions) -> Explanation | None:
    given = options.reference
    if given is None:
        return None
    if isinstance(given, str | os.PathLike) and not Path(given).is_dir():
        raise UsageError(f"reference is {os.fspath(given)}, which is not a folder; give a result saved with --out")
    found = given if isinstance(given, Explanation) else Explanation.load(given)
    return replace(found, source=found.state)  # read once


def _under_lake_names(outputs: Outputs, columns: Mapping[str, Column]) -> Outputs:
    """The outputs of a model whose library changed characters of its columns' names."""
    model = outputs.model
    if model is None or model.columns is None:
        return outputs
    names = matched_columns(model.columns, columns)
    if names == model.columns:
        return outputs
    renamed = dict(zip(model.columns, names, strict=True))
    ours = [name for theirs, name in renamed.items() if theirs != name]
    log.info("the model has %s under another name than the lake: %s", count(len(ours), "column"), listed(ours))
    categories = tuple((renamed[name], values) for name, values in model.categories)
    return replace(outputs, model=replace(model, columns=names, categories=categories))


def is_url(place: Any) -> bool:
    return isinstance(place, str) and "://" in place


def _storage_options(lake: Any, options: ExplainOptions) -> Mapping[str, Any] | None:
    """Of the lake's store: where the lake is a local path and the checkpoint a URL, they are the checkpoint's."""
    local = isinstance(lake, str | os.PathLike) and not is_url(lake)
    return None if local and is_url(options.checkpoint) else options.storage_options


def _check_frame(options: ExplainOptions, sample: Sample) -> None:
    if options.table_version is not None:
        raise UsageError(f"version {options.table_version} was asked for, but a DataFrame has no versions")
    if sample.whole_row_groups and (options.adaptive or sample.fraction < 1.0):
        raise UsageError("a DataFrame has no row groups; use sampling='rows', or save it as Parquet")


def resampled(inputs: Inputs, sample: Sample, earlier: Inputs | None = None) -> Inputs:
    """The same with another sample; slices of whole row groups that a smaller sample has stay as they are."""
    selection, snapshot = inputs.plan.selection, inputs.snapshot
    if snapshot is None:
        return replace(inputs, sample=sample, layout=_layout(None, selection, sample, inputs.layout.where))
    layout = _layout(snapshot.location.filesystem, selection, sample, inputs.layout.where)
    if earlier is None or not sample.whole_row_groups:
        plan = make_plan(snapshot, selection, inputs.plan.budget, sample)
    else:
        fresh = replace(sample, above=earlier.sample.fraction)
        plan = append_spans(earlier.plan, make_plan(snapshot, selection, inputs.plan.budget, fresh))
    return replace(inputs, sample=sample, plan=plan, layout=layout)


def _select(
    columns: Mapping[str, Column], outputs: Outputs, options: ExplainOptions, where: RowFilter | None
) -> Selection:
    selection = _select_scored(columns, outputs, options)
    return selection if where is None else replace(selection, filter_columns=where.columns)


def _select_scored(columns: Mapping[str, Column], outputs: Outputs, options: ExplainOptions) -> Selection:
    model, indicators = outputs.model, options.categoricals == "indicators"
    if model is None:
        return select(
            columns,
            outputs.columns.columns,
            options.weights,
            options.features,
            indicators=indicators,
            by=by_columns(options),
            times=True,
        )
    check_codes(model, {name: column.text for name, column in columns.items()})
    selection = select(
        columns,
        (),
        options.weights,
        options.features,
        indicators=indicators,
        model_columns=model.columns or (),
        any_type=columns_of_any_type(model),
        model_outputs=CALLABLE_OUTPUTS if model.names is None else len(model.names),
        by=by_columns(options),
        times=model.columns is not None or options.features is not None,
    )
    if model.columns is None:  # what is explained must not change what the model sees
        return replace(selection, model_columns=select(columns, (), options.weights, None).features)
    check_columns(model, {name: _holds_text(columns[name]) for name in model.columns if name in columns})
    return selection


def by_columns(options: ExplainOptions) -> tuple[str, ...]:
    """Columns whose values are the segments."""
    return () if options.by is None else (options.by,) if isinstance(options.by, str) else tuple(options.by)


def _holds_text(column: Column) -> bool:
    """Text, or a dictionary of text rather than of numbers."""
    return column.text and not column.types[0].startswith(tuple(f"dictionary<values={n}" for n in _NUMBERS))


def _layout(filesystem: Any, selection: Selection, sample: Sample, where: RowFilter | None) -> Layout:
    return Layout(
        filesystem,
        selection.features,
        selection.outputs,
        selection.weight,
        sample,
        selection.categoricals,
        selection.model_columns,
        where,
        selection.by,
        OpenFiles(selection.vectors, (*selection.categoricals, *selection.by)),
    )
