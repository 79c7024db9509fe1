"""Plan a run on a pandas or dask DataFrame: partitions take the place of files."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from excir_dask.errors import UsageError
from excir_dask.lake.arrays import object_times
from excir_dask.lake.plan import DEFAULT_BUDGET, Plan, Slice, fixed_columns
from excir_dask.lake.schema import Column, describe
from excir_dask.lake.select import Selection


def is_pandas(lake: object) -> bool:
    """Whether the lake is a pandas DataFrame. Does not import pandas: if nobody has, it cannot be one."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(lake, pandas.DataFrame)


def is_dask(lake: object) -> bool:
    frames = sys.modules.get("dask.dataframe")
    return frames is not None and isinstance(lake, frames.DataFrame)


def frame_columns(frame: Any) -> dict[str, Column]:
    """Columns of a pandas or dask DataFrame."""
    columns: dict[str, Column] = {}
    for name, dtype in frame.dtypes.items():
        if not isinstance(name, str):
            raise UsageError(f"the frame's column {name!r} has a name that is not a string; rename it with str(name)")
        if name in columns:
            raise UsageError(f"the frame has two columns '{name}'; rename one of them")
        if _is_text(frame, name, dtype):
            columns[name] = describe(name, pa.string())
        elif dtype.kind == "O" and is_pandas(frame) and (kind := object_times(frame[name])) is not None:
            columns[name] = describe(name, kind)
        else:
            columns[name] = _column(name, dtype)
    return columns


def frame_types(frame: Any, names: Sequence[str]) -> dict[str, list[pa.DataType]]:
    """The types that some columns of a frame have in Arrow."""
    found = {}
    for name in names:
        column = frame[name] if is_pandas(frame) else frame._meta[name]
        try:
            kind = pa.Schema.from_pandas(column.to_frame(), preserve_index=False).field(0).type
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
            raise UsageError(f"column '{name}' (where) of the frame holds values of several types: {error}") from error
        inner = kind.value_type if pt.is_dictionary(kind) else kind
        # partitions without rows do not tell what objects and categories are: text, most likely
        found[name] = [pa.string() if pt.is_null(inner) and not is_pandas(frame) else kind]
    return found


def plan_pandas(frame: Any, selection: Selection, budget: int = DEFAULT_BUDGET) -> tuple[Plan, list[Any]]:
    """Slices of rows, and the part of the frame for each."""
    width = max(len(selection.features), len(selection.model_columns))
    rows = max(budget // (8 * (width + fixed_columns(selection))), 1)
    starts = list(range(0, len(frame), rows))
    slices = [
        Slice(min(rows, len(frame) - start), 0, len(selection.features), True, part="frame", first_row=start)
        for start in starts
    ]
    plan = Plan(selection, budget, (tuple((each,) for each in slices),))
    return plan, [frame.iloc[start : start + rows] for start in starts]


def plan_dask(frame: Any, selection: Selection, budget: int = DEFAULT_BUDGET) -> tuple[Plan, list[Any]]:
    """One slice per partition, and the delayed partition for each."""
    wanted = dict.fromkeys([*selection.features, *selection.outputs, *selection.model_columns, *selection.categoricals])
    wanted |= dict.fromkeys([*selection.filter_columns, *selection.by])
    if selection.weight:
        wanted[selection.weight] = None
    partitions = frame[list(wanted)].to_delayed()
    slices = [Slice(0, 0, len(selection.features), True, part=f"partition {i}") for i in range(len(partitions))]
    return Plan(selection, budget, (tuple((each,) for each in slices),)), list(partitions)


def _is_text(frame: Any, name: str, dtype: Any) -> bool:
    """Whether a column of a pandas DataFrame holds text as objects, as before pandas 3."""
    if dtype.kind != "O" or not is_pandas(frame):
        return False
    from pandas.api.types import infer_dtype

    return infer_dtype(frame[name], skipna=True) == "string"


def _column(name: str, dtype: Any) -> Column:
    kind = _arrow_type(dtype)
    if kind is not None:
        column = describe(name, kind)
        if column.elements is None:
            return column
        reason = (
            f"a vector ({kind}), which DataFrames do not support; save it as Parquet, or make each element a column"
        )
        return replace(column, elements=None, unusable=reason)
    reason = f"of dtype {dtype}, not a number; use astype(float) if it holds numbers, or encode it as 0/1 columns"
    return Column(name, (str(dtype),), reason)


def _arrow_type(dtype: Any) -> pa.DataType | None:
    """The type that the column would have in Parquet; None if that depends on its values."""
    import pandas as pd
    import pandas.api.types as kinds

    if isinstance(dtype, pd.ArrowDtype):
        return dtype.pyarrow_dtype
    if isinstance(dtype, pd.StringDtype):
        return pa.string()
    if isinstance(dtype, pd.CategoricalDtype):
        return pa.dictionary(pa.int32(), _arrow_type(dtype.categories.dtype) or pa.string())
    if kinds.is_bool_dtype(dtype):
        return pa.bool_()
    if isinstance(dtype, np.dtype) and dtype.kind in "iuf" and dtype.itemsize <= 8:
        return pa.from_numpy_dtype(dtype)
    if kinds.is_numeric_dtype(dtype) and not kinds.is_complex_dtype(dtype):
        return pa.int64() if kinds.is_integer_dtype(dtype) else pa.float64()
    if kinds.is_datetime64_any_dtype(dtype):
        return pa.timestamp("ns")
    return pa.duration("ns") if kinds.is_timedelta64_dtype(dtype) else None
