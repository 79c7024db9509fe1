"""An explanation on a terminal: a ranking with bars for each output, its groups, and notes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from excir_dask.common.wording import count, percent, printable_lines
from excir_dask.render.terminal import bar, cells, fill, fit, short
from excir_dask.render.text import segments
from excir_dask.render.text.notes import goal, notes

if TYPE_CHECKING:
    import pandas as pd

    from excir_dask.results.explanation import Explanation

ARROWS = {1: "▲", -1: "▼", 0: "·"}
KEY = "▲ moves with the output, ▼ against it; the bar is strength = |2 cir - 1|."
NAME, GROUP, MEMBER = 40, 26, 24
"""most cells of the name of a feature, of a group, and of its members"""
MEMBERS = 8
"""members of a group that are shown: the strongest"""
LINE = 80
"""most cells of a line about groups"""


def text(explanation: Explanation, k: int = 15, width: int = 24) -> str:
    """For every output the ranking with bars and the groups, then notes."""
    lines = [headline(explanation), ""]
    for output in explanation.outputs["output"]:
        table = with_intervals(explanation, output)
        lines.append(f"{output}: feature ranking by {explanation.facts.settings.rank_by}")
        lines += _rows(table.head(k), width)
        if len(table) > k:
            lines.append(f"  ... and {len(table) - k} more")
        groups = explanation.groups[explanation.groups["output"] == output]
        if len(groups):
            lines += ["", f"{output}: groups"]
            lines += _group_rows(groups.head(k), table, width)
            if len(groups) > k:
                lines.append(f"  ... and {len(groups) - k} more")
        lines += ["", *segments.lines(explanation, output)]
    return printable_lines([*lines, KEY, *(f"note: {note}" for note in notes(explanation))])


def with_intervals(explanation: Explanation, output: str) -> pd.DataFrame:
    """Features of an output; for a sample also how sure their scores and places are.

    Columns ``low`` and ``high`` are limits of the score of all rows, ``p_top`` is the probability that the feature is
    in the top of all rows.
    """
    table = explanation.of(output)
    if explanation.facts.settings.fraction == 1:
        return table
    limits = explanation.intervals()
    found = table.merge(limits.loc[limits["output"] == output, ["feature", "low", "high"]], on="feature")
    return found.assign(p_top=explanation.stability(goal(explanation)[0], output=output).inside)


def headline(explanation: Explanation) -> str:
    """One line: how much was read and explained."""
    rows, settings = explanation.facts.rows, explanation.facts.settings
    part = rows.sampled / rows.lake if rows.lake else 1.0
    share = "" if settings.fraction == 1 else f" ({percent(part)} sample of {rows.lake:,})"
    features, outputs = explanation.features["feature"].nunique(), len(explanation.outputs)
    return f"ExCIR over {count(rows.used, 'row')}{share}, {count(features, 'feature')}, {count(outputs, 'output')}"


def _rows(table: pd.DataFrame, width: int) -> list[str]:
    """A line per feature."""
    longest = _longest(table["feature"], NAME)
    sampled = "low" in table
    error = f"{'95% interval':>15}  in top" if sampled else f"{'stderr':>7}"
    lines = [f"  {'rank':>4}  {fit('feature', longest)}    {'cir':>7}  {error}  strength"]
    for row in table.to_dict("records"):
        error = f"{row['stderr']:>7.4f}"
        if sampled:
            error = f"{row['low']:.4f} - {row['high']:.4f}  {row['p_top']:>6.0%}"
        flag = f"  [{row['flag']}]" if row["flag"] else ""
        lines.append(
            f"  {row['rank']:>4}  {fit(row['feature'], longest)}  {ARROWS[row['direction']]} {row['cir']:>7.4f}  "
            f"{error}  {bar(row['strength'], width)} {row['strength']:.3f}{flag}"
        )
    return lines


def _group_rows(table: pd.DataFrame, features: pd.DataFrame, width: int) -> list[str]:
    """A line per group, and its members below it."""
    longest = _longest(table["group"], GROUP)
    lines = [f"  {'rank':>4}  {fit('group', longest)}    {'cir':>7}  {'scaled':>7}  {'unsigned':>8}  strength"]
    width = min(width, LINE - 46 - longest)  # 46 cells are taken by the numbers
    for row, members in zip(table.to_dict("records"), members_of(table, features), strict=True):
        lines.append(
            f"  {row['rank']:>4}  {fit(row['group'], longest)}  {ARROWS[row['direction']]} {row['cir']:>7.4f}  "
            f"{row['cir_scaled']:>7.4f}  {row['strength_unsigned']:>8.3f}  {bar(row['strength'], width)} "
            f"{row['strength']:.3f}"
        )
        words = [f"{ARROWS[direction]} {short(name, MEMBER)}" for name, direction in members[:MEMBERS]]
        words += [f"... and {len(members) - MEMBERS:,} more"] if len(members) > MEMBERS else []
        words += [f"[{row['flag']}]"] if row["flag"] else []
        lines += [" " * 8 + line for line in fill(words, LINE - 8)]
    return lines


def members_of(groups: pd.DataFrame, features: pd.DataFrame) -> list[list[tuple[str, int]]]:
    """The members of each group with their directions, the strongest first."""
    directions = dict(zip(features["feature"], features["direction"], strict=True))
    strengths = dict(zip(features["feature"], features["strength"], strict=True))
    return [
        [(name, directions[name]) for name in sorted(members, key=strengths.__getitem__, reverse=True)]
        for members in groups["members"]
    ]


def _longest(names: Iterable[str], most: int) -> int:
    return min(max([len("feature"), *map(cells, names)]), most)
