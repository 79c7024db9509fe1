"""The label column: its values, and the objective they imply.

Text, Booleans and integers are classes if there are 2 to 100 distinct values; floats are classes only if they are all 0
or 1. Everything else is a number to predict. An objective given by the user wins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray
from pyarrow import fs

from excir_dask.errors import DataError, SchemaError, UsageError, nearest
from excir_dask.lake.open_files import OpenFiles
from excir_dask.lake.parquet_reader import FragmentReader
from excir_dask.lake.plan import Fragment
from excir_dask.lake.read import release_memory
from excir_dask.lake.retry import with_retries
from excir_dask.lake.schema import Column
from excir_dask.lake.snapshot import Snapshot

MOST_CLASSES = 100
"""most distinct values of a label that count as classes"""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LabelValues:
    """Values of the label column."""

    rows: int
    missing: int
    """of those, null, NaN or infinite"""
    values: tuple[float, ...] | tuple[str, ...]
    """distinct values in order; at most ``MOST_CLASSES + 1`` of them"""

    @property
    def few(self) -> bool:
        return len(self.values) <= MOST_CLASSES


@dataclass(frozen=True)
class Target:
    """What the model predicts."""

    label: str
    """column"""
    kind: str
    """text, bool, integer or float"""
    objective: str
    values: tuple[float, ...] | tuple[str, ...] = ()
    """value of each class in the column; empty if the label is a number to predict"""

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes, in the order of the model's outputs."""
        if self.kind == "bool":
            return tuple("true" if value else "false" for value in self.values)
        return tuple(value if isinstance(value, str) else f"{value:.17g}" for value in self.values)

    def encode(self, reader: FragmentReader) -> Floats:
        """The label of every row: the index of its class, or the number itself; NaN if missing."""
        if self.kind == "text":
            codes = pc.index_in(_texts(reader, self.label), value_set=pa.array(self.values, pa.string()))
            return np.asarray(codes.cast(pa.float64()).to_numpy(zero_copy_only=False))
        (found,) = reader.read([self.label])
        if not self.values:
            return np.where(np.isfinite(found), found, np.nan)
        values = np.asarray(self.values)
        codes = np.searchsorted(values, found).clip(max=len(values) - 1)
        return np.where(values[codes] == found, codes, np.nan)


def label_kind(snapshot: Snapshot, columns: Mapping[str, Column], label: str) -> str:
    """The kind of the label column, or an error that says why it cannot be one."""
    if label not in columns:
        raise SchemaError(f"column '{label}' (label) is not in the lake{nearest(label, columns)}")
    column = columns[label]
    if column.conflicts:
        raise SchemaError(column.conflicts[0])
    if column.encrypted:
        raise SchemaError(f"column '{label}' (label) is {column.unusable}")
    types = [snapshot.key_types[label]] if column.key else [schema.field(label).type for schema in snapshot.schemas]
    types = [kind for kind in types if not pt.is_null(kind)]
    if types and all(_is_text(kind) for kind in types):
        if column.key:
            raise SchemaError(
                f"column '{label}' (label) is text in folder names ('{label}=...'); write it into the files"
            )
        return "text"
    if column.unusable is not None:
        raise SchemaError(f"column '{label}' (label) is {' and '.join(column.types)}: {column.unusable}")
    if all(pt.is_boolean(kind) for kind in types):
        return "bool"
    return "integer" if all(pt.is_integer(kind) or pt.is_boolean(kind) for kind in types) else "float"


def find_values(fragments: Sequence[Fragment], label: str, kind: str, filesystem: fs.FileSystem) -> LabelValues:
    """The distinct labels of some fragments; runs on a worker."""

    def read(fragment: Fragment) -> LabelValues:
        files = OpenFiles()
        try:
            with files.borrow(fragment, filesystem) as reader:
                live = reader.live_mask()
                if kind == "text":
                    column = _texts(reader, label)
                    column = column if live is None else column.filter(pa.array(live))
                    found = column.unique().drop_null().to_pylist()
                    return LabelValues(fragment.live_rows, column.null_count, _first(found))
                (numbers,) = reader.read([label])
                numbers = numbers if live is None else numbers[live]
                finite = numbers[np.isfinite(numbers)]
                return LabelValues(fragment.live_rows, numbers.size - finite.size, _first(np.unique(finite).tolist()))
        finally:
            files.close()

    try:
        return merge_values([with_retries(lambda fragment=fragment: read(fragment)) for fragment in fragments])  # type: ignore[misc]
    finally:
        release_memory()


def merge_values(parts: Sequence[LabelValues]) -> LabelValues:
    return LabelValues(
        sum(part.rows for part in parts),
        sum(part.missing for part in parts),
        _first(list({value for part in parts for value in part.values})),
    )


def decide(label: str, kind: str, found: LabelValues, objective: str | None = None) -> Target:
    """The target that the kind and values of a label imply, or that an objective asks for.

    >>> decide("broken", "integer", LabelValues(9, 0, (0.0, 1.0))).objective
    'binary:logistic'
    >>> decide("city", "text", LabelValues(9, 0, ("Oslo", "Rome", "Wien"))).objective
    'multi:softprob'
    >>> decide("price", "float", LabelValues(9, 0, (1.0, 2.0))).objective
    'reg:squarederror'
    """
    count = len(found.values)
    if count == 0:
        raise DataError(f"column '{label}' (label) is empty in all {found.rows} rows; there is nothing to learn")
    if count == 1:
        raise DataError(
            f"column '{label}' (label) is {found.values[0]!r} in all {found.rows - found.missing} rows that have one; "
            "there is nothing to learn"
        )
    if objective is None:
        whole = kind in ("text", "bool", "integer") or found.values == (0.0, 1.0)
        objective = ("binary:logistic" if count == 2 else "multi:softprob") if whole and found.few else None
        if objective is None and kind == "text":
            raise DataError(
                f"column '{label}' (label) holds more than {MOST_CLASSES} distinct texts, such as "
                f"{', '.join(map(repr, found.values[:3]))}; a label has at most {MOST_CLASSES} classes"
            )
    if objective is None or not objective.startswith(("binary:", "multi:")):
        if kind == "text":
            raise UsageError(
                f"objective {objective} predicts a number, but column '{label}' is text; "
                "leave the objective out, or name a numeric column"
            )
        return Target(label, kind, objective or "reg:squarederror")
    many = str(count) if found.few else f"more than {MOST_CLASSES}"
    if objective.startswith("binary:") and count != 2:
        raise UsageError(f"objective {objective} asks for 2 classes, but column '{label}' has {many} distinct values")
    if not found.few:
        raise UsageError(
            f"objective {objective} asks for classes, but column '{label}' has {many} distinct values; "
            "leave the objective out to predict a number"
        )
    return Target(label, kind, objective, found.values)


def _first(values: list[Any]) -> tuple[float, ...] | tuple[str, ...]:
    return tuple(sorted(values)[: MOST_CLASSES + 1])


def _is_text(kind: pa.DataType) -> bool:
    inner = kind.value_type if pt.is_dictionary(kind) else kind
    return bool(pt.is_string(inner) or pt.is_large_string(inner) or pt.is_string_view(inner))


def _texts(reader: FragmentReader, label: str) -> pa.ChunkedArray:
    column = reader.column(label)
    if pt.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.cast(pa.string())
