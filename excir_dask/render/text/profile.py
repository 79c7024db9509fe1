"""A profile on a terminal: a line per cell with its share of the rows, and the output's quartiles as a box."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from excir_dask.common.wording import percent, printable_lines
from excir_dask.render.terminal import bar, cells, fit

if TYPE_CHECKING:
    from excir_dask.results.profile import Profile

NAME, SHARE, BOX = 26, 6, 26
"""cells of a name at most, of the bar of a share, and of a box"""
KEY = "the box reaches from the output's q25 to its q75, ┃ is its median."
UPPER = "the bar and 'upper' are the share of rows with the output's larger value."


def text(profile: Profile) -> str:
    """Scores, a line per cell, and what the signs mean."""
    table = profile.table
    if table.empty:
        return printable_lines([headline(profile), "  no row has a value"])
    two = "upper" in table
    width = min(max(map(cells, ["cell", *table["cell"]])), NAME)
    last = f"{'upper':>7}" if two else f"{'q25':>9} {'q50':>9} {'q75':>9}"
    lines = [headline(profile), "", f"  {fit('cell', width)}  {'rows':>11}  {fit('share', SHARE + 6)}  {last}"]
    boxes = [bar(share, BOX) for share in table["upper"].fillna(0.0)] if two else _boxes(profile)
    for row, box in zip(table.to_dict("records"), boxes, strict=True):
        figures = f"{row['upper']:>7.4f}" if two else " ".join(f"{row[name]:>9.4g}" for name in ("q25", "q50", "q75"))
        lines.append(
            f"  {fit(row['cell'], width)}  {row['rows']:>11,.6g}  {bar(row['share'], SHARE)} {row['share']:>5.1%}  "
            f"{figures}  {box}".rstrip()
        )
    return printable_lines([*lines, "", UPPER if two else KEY])


def headline(profile: Profile) -> str:
    """What it is of, its scores and its missing share."""
    scores, said = profile.scores, [f"{profile.output} along {profile.feature}"]
    if scores:
        said.append(f"cir {scores['cir']:.4f}, strength {scores['strength']:.3f}, rank {scores['rank']}")
    if profile.missing:
        said.append(f"{percent(profile.missing)} of the rows have no value")
    return "; ".join(said) + (f"  [{scores['flag']}]" if scores.get("flag") else "")


def _boxes(profile: Profile) -> list[str]:
    """Quartiles on one scale for all cells."""
    figures = profile.table[["q25", "q50", "q75"]].to_numpy()
    low, high = float(np.nanmin(figures)), float(np.nanmax(figures))
    found = []
    for row in figures:
        line = [" "] * BOX
        if np.isfinite(row).all():
            first, middle, last = (round((value - low) / ((high - low) or 1.0) * (BOX - 1)) for value in row)
            line[first : last + 1] = "─" * (last + 1 - first)
            line[middle] = "┃"
        found.append("".join(line).rstrip())
    return found
