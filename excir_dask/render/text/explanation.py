"""An explanation on a terminal: a ranking with bars for each output, its groups, and notes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from excir_dask.common.wording import count, percent, printable_lines
from excir_dask.render.terminal import bar, cells, fill, fit, short
from excir_dask.render.text import segments
from excir_dask.render.text.notes import goal, other_notes, sampled_share, unseen

if TYPE_CHECKING:
    import pandas as pd

    from excir_dask.results.explanation import Explanation

ARROWS = {1: "▲", -1: "▼", 0: "·"}
KEY = "▲ moves with the output, ▼ against it; lift: cir beyond chance; bar: |lift|."
SIZE_KEY = "depend: information about the output, in any direction."
NAME, GROUP, MEMBER = 40, 26, 24
"""most cells of the name of a feature, of a group, and of its members"""
MEMBERS = 8
"""members of a group that are shown: the strongest"""
LINE = 80
"""most cells of a line, where names and flags are not longer still"""
LEAST_BAR = 4
"""cells of a bar: it is left out where there is less room"""


def text(explanation: Explanation, k: int = 15, width: int = 24) -> str:
    """For every output the ranking with bars and the groups, then notes."""
    lines = [headline(explanation), ""]
    for output in explanation.outputs["output"]:
        table = with_intervals(explanation, output)
        lines.append(f"{output}: feature ranking by {explanation.facts.settings.rank_by}")
        lines += _rows(table.head(k), width)
        if len(table) > k:
            lines.append(f"  ... and {len(table) - k} more")
        lines += [line for note in unseen(explanation, output) for line in _wrapped(note)]
        groups = explanation.groups[explanation.groups["output"] == output]
        if len(groups):
            lines += ["", f"{output}: groups"]
            lines += _group_rows(groups.head(k), table, width)
            if len(groups) > k:
                lines.append(f"  ... and {len(groups) - k} more")
        lines += ["", *segments.lines(explanation, output)]
    keys = [KEY, *([SIZE_KEY] if explanation.facts.settings.dependence else [])]
    return printable_lines([*lines, *keys, *(f"note: {note}" for note in other_notes(explanation))])


def _wrapped(note: str) -> list[str]:
    first, *rest = fill(note.split(" "), LINE - 4, " ")
    return [f"  {first}", *(f"    {line}" for line in rest)]


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
    if settings.where is None:
        part = rows.sampled / rows.lake if rows.lake else 1.0
        share = "" if settings.fraction == 1 else f" ({percent(part)} sample of {rows.lake:,})"
    else:
        sample = "" if settings.fraction == 1 else f", {percent(sampled_share(explanation))} sample"
        share = f" (of {rows.lake:,}, where {settings.where}{sample})"
    features, outputs = explanation.features["feature"].nunique(), len(explanation.outputs)
    return f"ExCIR over {count(rows.used, 'row')}{share}, {count(features, 'feature')}, {count(outputs, 'output')}"


def _rows(table: pd.DataFrame, width: int) -> list[str]:
    """A line per feature: direction and purity (cir, lift), certainty, size (dependence), and flags."""
    longest = _longest(table["feature"], NAME)
    sampled, counted = "low" in table, bool(table["dependence"].notna().any())
    error = f"{'95% interval':>15}  in top" if sampled else f"{'stderr':>6}"
    head = f"  {'rank':>4}  {fit('feature', longest)}    {'cir':>6}  {'lift':>6}  {error}"
    head += f"  {'depend':>6}" if counted else ""
    flags = max((len(flag) + 4 for flag in table["flag"] if flag), default=0)
    room = min(width, LINE - cells(head) - 2 - flags)
    lines = [f"{head}  {'|lift|' if room >= LEAST_BAR else ''}".rstrip()]
    for row in table.to_dict("records"):
        error = f"{row['stderr']:>6.4f}"
        if sampled:
            error = f"{row['low']:.4f} - {row['high']:.4f}  {row['p_top']:>6.0%}"
        line = (
            f"  {row['rank']:>4}  {fit(row['feature'], longest)}  {ARROWS[row['direction']]} {row['cir']:>6.4f}  "
            f"{_signed(row['lift'])}  {error}"
        )
        line += f"  {_share(row['dependence'])}" if counted else ""
        line += f"  {bar(row['strength'], room)}" if room >= LEAST_BAR else ""
        lines.append(f"{line}  [{row['flag']}]" if row["flag"] else line.rstrip())
    return lines


def _signed(lift: float) -> str:
    """A lift, or a dash in results of earlier versions."""
    return f"{lift:>+6.3f}" if lift == lift else f"{'-':>6}"


def _share(dependence: float) -> str:
    return f"{dependence:>6.3f}" if dependence == dependence else f"{'-':>6}"


def _group_rows(table: pd.DataFrame, features: pd.DataFrame, width: int) -> list[str]:
    """A line per group, and its members below it."""
    longest = _longest(table["group"], GROUP)
    lines = [
        f"  {'rank':>4}  {fit('group', longest)}    {'cir':>6}  {'lift':>6}  {'scaled':>6}  {'unsigned':>8}  |lift|"
    ]
    width = min(width, LINE - 46 - longest)  # 46 cells are taken by the numbers
    for row, members in zip(table.to_dict("records"), members_of(table, features), strict=True):
        lines.append(
            f"  {row['rank']:>4}  {fit(row['group'], longest)}  {ARROWS[row['direction']]} {row['cir']:>6.4f}  "
            f"{_signed(row['lift'])}  {row['cir_scaled']:>6.4f}  {row['strength_unsigned']:>8.3f}  "
            f"{bar(row['strength'], width)}".rstrip()
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
