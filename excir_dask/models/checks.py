"""Check that a model fits a lake, before it scores any row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from excir_dask.common.wording import count, listed
from excir_dask.errors import ModelError, nearest

if TYPE_CHECKING:
    from excir_dask.models.scoring import Model


def known_categories(model: Model) -> dict[str, tuple[Any, ...]]:
    """Categorical columns of a model, with their values if it knows them."""
    return {column: values for column, values in model.categories if values is not None}


def columns_of_any_type(model: Model) -> set[str]:
    """Columns that a model takes in any type; the others must be numbers."""
    if model.input_type == "frame" and not model.categories:
        return set(model.columns or ())
    return set(known_categories(model))


def check_codes(model: Model, is_text: Mapping[str, bool]) -> None:
    """Raise if a column is text in the lake, and the model stores the codes of its categories alone."""
    for column, values in model.categories:
        if values is None and is_text.get(column):
            raise ModelError(
                f"{model.source} stores codes in place of the categories of column '{column}', but the column is text "
                "or a dictionary in the lake; write the codes that it was trained with as numbers, or train and save "
                "the model with XGBoost 3.1 or later, which stores categories"
            )


def check_columns(model: Model, is_text: Mapping[str, bool]) -> None:
    """Raise if the categories of a column are text in the lake and numbers in the model, or the reverse."""
    for column, values in known_categories(model).items():
        wants_text = any(isinstance(value, str) for value in values)
        if column in is_text and wants_text != is_text[column]:
            types = ("text", "numbers") if wants_text else ("numbers", "text")
            raise ModelError(
                f"the categories of column '{column}' are {types[0]} for {model.source} "
                f"({listed(values)}), but {types[1]} in the lake; write the column as it was in training"
            )


def check_categories(model: Model, found: Mapping[str, Mapping[str, int] | None]) -> None:
    """Raise if the lake has categories that the model does not know.

    Parameters
    ----------
    model : Model
    found : mapping column -> category -> rows
        None if a column has too many categories to count.
    """
    for column, values in known_categories(model).items():
        text = any(isinstance(value, str) for value in values)
        known = {str(value) if text else _number(value) for value in values}
        if column not in found:
            continue
        counts = found[column]
        if counts is None:
            raise ModelError(
                f"column '{column}' has too many distinct values in the lake to count; {model.source} knows "
                f"{len(known)}: {listed(values)}. Check that it is the same column"
            )
        unknown = {value: rows for value, rows in counts.items() if (value if text else _number(value)) not in known}
        if unknown:
            first, rows = next(iter(unknown.items()))
            raise ModelError(
                f"column '{column}' has {count(len(unknown), 'value')} that {model.source} does not know, for instance "
                f"'{first}' in {count(rows, 'row')}{nearest(first, known)}; it knows {len(known)}: {listed(values)}. "
                "Leave out those rows, or train the model with them"
            )


def _number(value: Any) -> str:
    """A number as text, the same for integers and floats.

    >>> _number(10), _number("10.0"), _number("2.5")
    ('10', '10', '2.5')
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        return str(value)
    return str(int(number)) if number.is_integer() else str(number)
