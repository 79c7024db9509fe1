"""Outputs that are columns of the lake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from excir_dask.errors import UsageError


@dataclass(frozen=True)
class OutputColumns:
    """Names of the outputs, and their columns."""

    names: tuple[str, ...]
    """as shown to users: class names if a mapping was given"""
    columns: tuple[str, ...]


def output_columns(output: str | Sequence[str] | Mapping[str, str] | None) -> OutputColumns:
    """Resolve the ``output`` argument: a column, a list of columns, or a mapping class -> column.

    >>> output_columns({"setosa": "margin_0"})
    OutputColumns(names=('setosa',), columns=('margin_0',))
    """
    if output is None:
        raise UsageError("no output; name the column of model outputs with output=...")
    if isinstance(output, str):
        return OutputColumns((output,), (output,))
    if isinstance(output, Mapping):
        names, columns = tuple(str(name) for name in output), tuple(output.values())
    else:
        names = columns = tuple(output)
    if not columns:
        raise UsageError("output is empty; name at least one column of model outputs")
    if len(set(columns)) < len(columns):
        raise UsageError(f"output names a column twice: {', '.join(columns)}")
    return OutputColumns(names, columns)
