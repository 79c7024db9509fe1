"""Segments: rows that share the values of one or two columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from excir_dask.errors import DataError, SchemaError, UsageError, nearest
from excir_dask.lake.arrays import CategoryCodes
from excir_dask.lake.schema import Column

MISSING = "(missing)"
"""the segment of rows without a value"""

OTHER = "(other)"
"""the segment of all rows whose own segment is too small to be told apart"""

BETWEEN = " / "
"""between the values of two columns"""

MOST_COLUMNS = 2

_TYPES = ("int", "uint", "bool", "null")


def check_by(columns: Mapping[str, Column], by: Sequence[str]) -> None:
    """Refuse columns that cannot be segments."""
    if len(by) > MOST_COLUMNS:
        raise UsageError(f"by names {len(by)} columns; segments are made of one or two")
    if len(set(by)) < len(by):
        raise UsageError(f"by names column '{by[0]}' twice; name it once")
    for name in by:
        if name not in columns:
            raise SchemaError(f"column '{name}' (by) is not in the lake{nearest(name, columns)}")
        column = columns[name]
        if column.conflicts:
            raise SchemaError(column.conflicts[0])
        if column.encrypted or not (column.text or all(kind.startswith(_TYPES) for kind in column.types)):
            raise SchemaError(
                f"column '{name}' (by) is {' and '.join(column.types)}; segments are values of text, whole numbers "
                "or true and false: write such a column, for instance of ranges"
            )


def segment_codes(by: Sequence[str], columns: Sequence[CategoryCodes]) -> CategoryCodes:
    """The segment of each row, from the values of the columns; a missing value is a value of its own.

    >>> found = segment_codes(["a"], [CategoryCodes(np.array([1, -1, 1], dtype=np.int32), ("x", "y"))])
    >>> [found.values[code] for code in found.codes]
    ['y', '(missing)', 'y']
    """
    for name, column in zip(by, columns, strict=True):
        for value in column.values:
            if value in (MISSING, OTHER) or (len(by) > 1 and BETWEEN in value):
                raise DataError(
                    f"column '{name}' (by) has the value '{value}', which cannot be told from a segment's own name; "
                    "write it differently"
                )
    labels = [(*column.values, MISSING) for column in columns]  # a missing value's code is -1, which is the last
    codes = [np.where(c.codes < 0, len(c.values), c.codes).astype(np.int64) for c in columns]
    if len(columns) == 1:
        return CategoryCodes(codes[0].astype(np.int32), labels[0])
    met, where = np.unique(codes[0] * len(labels[1]) + codes[1], return_inverse=True)
    names = (BETWEEN.join((labels[0][pair // len(labels[1])], labels[1][pair % len(labels[1])])) for pair in met)
    return CategoryCodes(where.astype(np.int32), tuple(names))
