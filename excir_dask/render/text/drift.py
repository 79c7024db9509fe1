"""A table of drift on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from excir_dask.common.wording import printable_lines
from excir_dask.render.terminal import bar, cells, fit

if TYPE_CHECKING:
    import pandas as pd

NAME, BAR = 34, 12
"""cells of a name at most, and of a bar that is full at 1"""
KEY = (
    "psi: below 0.1 is usually called stable, above 0.25 a large change; chance gives about the figure behind it.",
    "ks: largest difference of the distributions, up to the figure behind it; moved: mean distance in quartile ranges.",
)


def text(table: pd.DataFrame, top: int) -> str:
    """For features and outputs, the columns that moved most."""
    width = min(max(map(cells, ["feature", *table["column"]])), NAME)
    lines: list[str] = []
    for kind, part in table.groupby("kind", sort=False):
        lines.append(
            f"  {fit(str(kind), width)}  {'psi':>7} {'chance':>7} {fit('', BAR)}  {'ks':>6} {'to':>6} {'p':>8}  "
            f"{'moved':>8}  {'missing':>17}"
        )
        lines += [_line(row, width) for row in part.head(top).to_dict("records")]
        lines += [f"  ... and {len(part) - top:,} more"] if len(part) > top else []
        lines.append("")
    return printable_lines([*lines, *KEY])


def _line(row: Mapping[Any, Any], width: int) -> str:
    missing = f"{row['missing_before']:.2%} -> {row['missing_after']:.2%}"
    if row["psi"] != row["psi"]:
        return f"  {fit(row['column'], width)}  no value on one side {missing:>{BAR + 41}}"
    return (
        f"  {fit(row['column'], width)}  {row['psi']:>7.4f} {row['psi_chance']:>7.4f} "
        f"{bar(min(row['psi'], 1.0), BAR)}  {row['ks']:>6.4f} {row['ks_high']:>6.4f} "
        f"{row['ks_p']:>8.2g}  {row['wasserstein']:>8.4g}  {missing:>17}"
    )
