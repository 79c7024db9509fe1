"""A training on a terminal: what was learned from how many rows, and how well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from excir_dask.common.wording import count, listed, printable_lines

if TYPE_CHECKING:
    from excir_dask.training.result import Training


def text(training: Training) -> str:
    """Objective, features, rows and the metric of the best round."""
    found, rows = training.summary(), training.rows
    classes = f" ({len(training.classes)} classes: {listed(training.classes)})" if training.classes else ""
    dropped = {what: rows[f"without_{what}"] for what in ("label", "weight")}
    scores = [f"{found[part]:.6g} on {part} rows" for part in ("validation", "train") if part in found]
    lines = [
        f"objective   {training.objective}{classes}",
        f"features    {len(training.features):,}",
        f"rows        {rows['train']:,} to train, {rows['validation']:,} to validate",
        *(f"dropped     {count(number, 'row')} without a {what}" for what, number in dropped.items() if number),
        f"{training.metric:<11} {', '.join(scores)}",
        f"best round  {training.best_iteration + 1} of {found['rounds']}",
    ]
    return printable_lines(lines)
