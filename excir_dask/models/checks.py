"""Does a model fit a lake? Asked before any row is shown to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from excir_dask.common.wording import listed
from excir_dask.errors import ModelError, nearest

if TYPE_CHECKING:
    from excir_dask.models.scoring import Model


def known_categories(model: Model) -> dict[str, tuple[Any, ...]]:
    """Categorical columns of a model whose values it knows."""
    return {column: values for column, values in model.categories if values is not None}


def columns_of_any_type(model: Model) -> set[str]:
    """Columns that a model takes as the lake has them; the others must be numbers."""
    if model.wants == "frame" and not model.categories:
        return set(model.columns or ())
    return set(known_categories(model))


def check_columns(model: Model, is_text: Mapping[str, bool]) -> None:
    """Refuse a lake that has text where the model knows numbers as categories, or the other way round."""
    for column, values in known_categories(model).items():
        wants_text = any(isinstance(value, str) for value in values)
        if column in is_text and wants_text != is_text[column]:
            shape = ("text", "numbers") if wants_text else ("numbers", "text")
            raise ModelError(
                f"column '{column}' holds categories for {model.source}, and they are {shape[0]} "
                f"({listed(values)}), but in the lake it holds {shape[1]}; write it as it was in training"
            )


def check_categories(model: Model, found: Mapping[str, Mapping[str, int] | None]) -> None:
    """Refuse a lake with categories that the model does not know.

    Parameters
    ----------
    model : Model
    found : mapping column -> category -> rows
        None in place of the categories where there are too many to count.
    """
    for column, values in known_categories(model).items():
        text = any(isinstance(value, str) for value in values)
        known = {str(value) if text else _number(value) for value in values}
        if column not in found:
            continue
        counts = found[column]
        if counts is None:
            raise ModelError(
                f"column '{column}' has more different values in the lake than can be counted; {model.source} knows "
                f"{len(known)}: {listed(values)}"
            )
        unknown = {value: rows for value, rows in counts.items() if (value if text else _number(value)) not in known}
        if unknown:
            first, rows = next(iter(unknown.items()))
            raise ModelError(
                f"column '{column}' holds {len(unknown)} categories that {model.source} does not know, for instance "
                f"'{first}' in {rows:,} rows{nearest(first, known)}; it knows {len(known)}: {listed(values)}. "
                "Leave those rows out, or train the model with them"
            )


def _number(value: Any) -> str:
    """A number as text, the same whether it is stored as whole or as floating.

    >>> _number(10), _number("10.0"), _number("2.5")
    ('10', '10', '2.5')
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        return str(value)
    return str(int(number)) if number.is_integer() else str(number)
