"""Choose the columns that a run reads.

A column can be used if every file has it once, as a type that converts to float64, as a vector of such (whose elements
are the features ``name[i]``), or as categories if those are asked for. Other columns are left out and listed, unless
they were asked for by name: then they are an error.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from excir_dask.common.wording import count, listed
from excir_dask.errors import SchemaError, UsageError, nearest
from excir_dask.lake.schema import Column
from excir_dask.lake.segments import check_by


@dataclass(frozen=True)
class Selection:
    """The columns that a run reads."""

    features: tuple[str, ...]
    outputs: tuple[str, ...]
    weight: str | None
    left_out: dict[str, str]
    """columns that are not numbers and were not asked for -> reason"""
    converted: dict[str, str]
    """columns that are converted to float64 -> their stored types"""
    vectors: dict[str, tuple[str, int]] = field(default_factory=dict)
    """features that are an element of a vector column -> that column and the element's index"""
    categoricals: tuple[str, ...] = ()
    """columns whose categories become features"""
    model_columns: tuple[str, ...] = ()
    """inputs of the model, in its order"""
    model_outputs: int = 0
    """number of outputs of the model, if known before it is called"""
    named: frozenset[str] = frozenset()
    """features that were asked for by name"""
    by: tuple[str, ...] = ()
    """columns whose values are the segments"""
    widest: int = 1
    """length of the longest vector: vectors are decoded as a whole"""
    filter_columns: tuple[str, ...] = ()
    """columns that decide which rows count"""


def select(
    columns: Mapping[str, Column],
    outputs: Sequence[str],
    weight: str | None = None,
    features: str | Sequence[str] | None = None,
    *,
    indicators: bool = False,
    model_columns: Sequence[str] = (),
    any_type: Collection[str] = (),
    model_outputs: int = 0,
    by: Sequence[str] = (),
    times: bool = False,
) -> Selection:
    """Choose the columns to read; raise if one that was asked for cannot be used.

    Parameters
    ----------
    columns : mapping
        From :func:`describe_columns`.
    outputs : sequence of str
        Columns of model outputs.
    weight : str, optional
        Column of row weights.
    features : names or patterns, optional
        Shell patterns (``temp_*``); one that starts with ``!`` excludes columns. The name of a vector means all its
        elements. Default: the model's columns, or all numbers except outputs and weights.
    indicators : bool
        Use categorical columns as features too.
    model_columns : sequence of str
        Columns that the model reads.
    any_type : collection of str
        Those of them that the model accepts in any type.
    model_outputs : int
        Number of its outputs.
    by : sequence of str
        Columns whose values are the segments; they may be features too.
    times : bool
        Use dates, timestamps, times of day and durations as features too, as numbers.
    """
    check_by(columns, by)
    single = _single_columns(columns)
    reserved = [*outputs, *([weight] if weight else [])]
    for role, name in [*(("output", name) for name in outputs), *([("weights", weight)] if weight else [])]:
        _require(columns, name, role)
    _check_model_columns(single, model_columns, any_type)
    repeated = sorted({name for name in reserved if reserved.count(name) > 1})
    if repeated:
        raise UsageError(f"outputs and weights name column '{repeated[0]}' twice; name it once")
    wanted, by_name = _match(single, _elements_of(columns, features), reserved, list(model_columns) or list(single))
    left_out: dict[str, str] = {}
    chosen, categoricals = [], []
    for name in wanted:
        column = single[name]
        as_categories = indicators and column.text
        as_time = times and column.unit is not None
        if name in by_name or (column.conflicts and (as_categories or column.unusable is None)):
            _require(single, name, "features", categories=as_categories, times=as_time)
        if as_categories:
            categoricals.append(name)
        elif as_time and column.conflicts:
            left_out[name] = column.conflicts[0]
        elif column.unusable is not None and not as_time:
            left_out[name] = column.unusable
        else:
            chosen.append(name)
    if not chosen and not categoricals:
        raise SchemaError(
            f"no column is left to explain: {count(len(columns), 'column')}, {len(left_out)} of them not numbers and "
            f"{len(reserved)} used as output or weight; check 'features'"
        )
    origins = {name: _origin(columns, name) for name in dict.fromkeys([*chosen, *model_columns]) if name not in columns}
    read = dict.fromkeys(origins[name][0] if name in origins else name for name in [*chosen, *reserved])
    return Selection(
        tuple(chosen),
        tuple(outputs),
        weight,
        left_out,
        converted={name: _stored(columns[name]) for name in read if columns[name].types != ("double",)},
        vectors=origins,
        categoricals=tuple(categoricals),
        model_columns=tuple(model_columns),
        model_outputs=model_outputs,
        named=frozenset(by_name),
        by=tuple(by),
        widest=max((columns[column].elements or 1 for column, _ in origins.values()), default=1),
    )


def _stored(column: Column) -> str:
    """The types that a column has in files, and what it counts if it is a time."""
    return " and ".join(column.types) + (f", in {column.unit}" if column.unit else "")


def _single_columns(columns: Mapping[str, Column]) -> dict[str, Column]:
    """The columns with every vector replaced by its elements."""
    found: dict[str, Column] = {}
    for name, column in columns.items():
        if column.elements is None:
            members = {name: column}
        else:
            members = {
                f"{name}[{i}]": replace(column, name=f"{name}[{i}]", elements=None) for i in range(column.elements)
            }
        for member, single in members.items():
            if member in found or (member in columns and member != name):
                raise SchemaError(
                    f"the lake has both a column '{member}' and a vector '{name}' with an element of that name; "
                    "rename one of them"
                )
            found[member] = single
    return found


def _elements_of(columns: Mapping[str, Column], features: str | Sequence[str] | None) -> list[str]:
    """Patterns with every vector replaced by its elements."""
    found = []
    for pattern in [features] if isinstance(features, str) else list(features or []):
        mark, name = ("!", pattern[1:]) if pattern.startswith("!") and pattern not in columns else ("", pattern)
        column = columns.get(name)
        if column is None or column.elements is None:
            found.append(pattern)
        else:
            found += [f"{mark}{name}[{i}]" for i in range(column.elements)]
    return found


def _origin(columns: Mapping[str, Column], element: str) -> tuple[str, int]:
    name, _, number = element.removesuffix("]").rpartition("[")
    assert name in columns, element
    return name, int(number)


def _require(
    columns: Mapping[str, Column], name: str, role: str, categories: bool = False, times: bool = False
) -> None:
    """Raise if a column cannot be used as a number, or as categories."""
    if name not in columns:
        raise SchemaError(f"column '{name}' ({role}) is not in the lake{nearest(name, columns)}")
    column = columns[name]
    if column.conflicts:
        raise SchemaError(column.conflicts[0])
    if column.elements is not None:
        raise SchemaError(
            f"column '{name}' ({role}) is a vector ({column.types[0]}); name one of its elements, such as '{name}[0]'"
        )
    if column.text and role in ("output", "weights"):
        raise SchemaError(
            f"column '{name}' ({role}) is {' and '.join(column.types)}: text or categories, not a number; write "
            + ("it as numbers, such as margins, or 0 and 1" if role == "output" else "one number per row")
        )
    if column.unusable and not times and not (categories and column.text):
        raise SchemaError(f"column '{name}' ({role}) is {' and '.join(column.types)}: {column.unusable}")


def _check_model_columns(columns: Mapping[str, Column], wanted: Sequence[str], any_type: Collection[str]) -> None:
    missing = [name for name in wanted if name not in columns]
    if missing:
        unknown = [name for name in columns if name not in wanted]
        raise SchemaError(
            f"the model needs {count(len(wanted), 'column')}, of which the lake lacks {len(missing)}: {listed(missing)}"
            f"{nearest(missing[0], unknown)}; the lake has {count(len(unknown), 'column')} that the model does not use"
            + (f": {listed(unknown)}" if unknown else "")
        )
    for name in wanted:
        if name not in any_type or columns[name].conflicts or columns[name].encrypted:
            _require(columns, name, "model")


def _match(
    columns: Mapping[str, Column], patterns: Sequence[str], reserved: Sequence[str], default: list[str]
) -> tuple[list[str], set[str]]:
    """Names that match (plain names first, as given, then in lake order), and those that were given as plain names."""
    include = [pattern for pattern in patterns if not pattern.startswith("!")]
    exclude = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    plain = [pattern for pattern in include if pattern in columns or not any(mark in pattern for mark in "*?[")]
    for name in plain:
        if name not in columns:
            raise SchemaError(f"column '{name}' (features) is not in the lake{nearest(name, columns)}")
        if name in reserved:
            raise UsageError(f"column '{name}' is both a feature and an output or the weights; choose one")
    globs = [pattern for pattern in include if pattern not in plain]
    for pattern in [*globs, *exclude]:
        if pattern not in columns and not any(fnmatchcase(name, pattern) for name in columns):
            raise SchemaError(f"the pattern '{pattern}' (features) matches no column{nearest(pattern, columns)}")
    if include:
        names = list(dict.fromkeys([*plain, *(n for n in columns if any(fnmatchcase(n, glob) for glob in globs))]))
    else:
        names = default
    exact = {pattern for pattern in exclude if pattern in columns}  # a column name may contain brackets
    others = [pattern for pattern in exclude if pattern not in exact]
    dropped = {n for n in names if n in exact or any(fnmatchcase(n, pattern) for pattern in others)}
    return [n for n in names if n not in dropped and n not in reserved], set(plain) - dropped
