"""How an explanation looks: as text with bars on a terminal, and as a small page in a notebook."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

from excir_dask.lake.sample import SAMPLINGS
from excir_dask.render.terminal import bar, cells, fill, fit, short

if TYPE_CHECKING:
    import pandas as pd

    from excir_dask.results.explanation import Explanation
    from excir_dask.results.metadata import AutoSampling

TOP, TARGET = 8, 0.9
"""what a sample is asked for: the probability that of its top 8, those of all rows have this Jaccard"""

RISKY = 2.0
"""times the error of independent rows from which on it is said that row groups differ"""

_ARROWS = {1: "▲", -1: "▼", 0: "·"}
NAME, GROUP, MEMBER = 40, 26, 24
"""cells of a name that are shown: a feature's, a group's, and a member's beside it"""
MEMBERS = 8
"""members of a group that are shown, the strongest ones"""
LINE = 80
"""cells that the lines of groups keep to"""
_MEANING = {
    "members cancel": "members move against each other and cancel (compare strength with unsigned)",
    "scales differ": "members' scales differ more than tenfold, and the largest decides cir (scaled weighs all alike)",
}


def text(explanation: Explanation, k: int = 15, width: int = 24) -> str:
    """Ranking of every output as a table with bars, then groups, then what was left out."""
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
        lines.append("")
    lines += ["▲ moves with the output, ▼ against it; the bar is strength = |2 cir - 1|."]
    lines += notes(explanation)
    return "\n".join(lines)


def html(explanation: Explanation, k: int = 15) -> str:
    """The same as a fragment of HTML that inherits the notebook's colours."""
    parts = [f"<div style='font-size:90%'><p>{escape(headline(explanation))}</p>"]
    for output in explanation.outputs["output"]:
        features = explanation.of(output)
        groups = explanation.groups[explanation.groups["output"] == output]
        parts.append(_html_table(features, None, str(output), k))
        if len(groups):
            parts.append(_html_table(groups, features, str(output), k))
    parts.append("<p>▲ moves with the output, ▼ against it; the bar is strength = |2 cir − 1|.</p>")
    parts += [f"<p>{escape(note)}</p>" for note in notes(explanation)]
    return "".join(parts) + "</div>"


def with_intervals(explanation: Explanation, output: str) -> pd.DataFrame:
    """Features of an output; for a sample, with limits of the scores of all rows, and the chance of their top.

    Columns ``low``, ``high`` and ``p_top``: the probability that a feature is among the first of all rows.
    """
    table = explanation.of(output)
    if explanation.facts.settings.fraction == 1:
        return table
    limits = explanation.intervals()
    found = table.merge(limits.loc[limits["output"] == output, ["feature", "low", "high"]], on="feature")
    return found.assign(p_top=explanation.stability(_goal(explanation)[0], output=output).inside)


def _goal(explanation: Explanation) -> tuple[int, float]:
    """Places of the top of a sample, and its Jaccard with that of all rows, that are asked for."""
    auto = explanation.facts.auto
    return (TOP, TARGET) if auto is None else (auto.k, auto.target_jaccard)


def headline(explanation: Explanation) -> str:
    """One line: how much was read and explained."""
    rows, settings = explanation.facts.rows, explanation.facts.settings
    part = rows.sampled / rows.lake if rows.lake else 1.0
    share = "" if settings.fraction == 1 else f" ({part:.1%} sample of {rows.lake:,})"
    features = explanation.features["feature"].nunique()
    outputs = len(explanation.outputs)
    return f"ExCIR over {rows.used:,} rows{share}, {features:,} features, {outputs} output{'s' if outputs > 1 else ''}"


def notes(explanation: Explanation) -> list[str]:
    """What a reader must not overlook: rows dropped, columns left out, flags."""
    rows = explanation.facts.rows
    found = [f"note: {remark}" for remark in explanation.provenance.lake.remarks]
    if rows.without_output:
        found.append(f"note: {rows.without_output:,} rows were dropped because an output is missing")
    if rows.without_weight:
        found.append(f"note: {rows.without_weight:,} rows were dropped because their weight is missing or zero")
    left_out = explanation.facts.left_out
    encrypted = [name for name, reason in left_out.items() if reason.startswith("encrypted ")]
    others = [name for name in left_out if name not in encrypted]
    for names, one, several in ((others, "not a number", "not numbers"), (encrypted, "encrypted", "encrypted")):
        if names:
            shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
            what = f"1 column is {one} and was" if len(names) == 1 else f"{len(names)} columns are {several} and were"
            found.append(f"note: {what} left out: {shown}")
    wide = explanation.features["center_bound"].max()
    if wide > 1e-12:
        found.append(f"note: approximate centres changed no score by more than {wide:.1g} (certified)")
    found += _enough(explanation)
    found += _row_groups(explanation)
    flagged = explanation.features[explanation.features["flag"] != ""]
    for flag, table in flagged.groupby("flag"):
        names = list(dict.fromkeys(table["feature"]))
        shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
        found.append(f"note: {flag}: {shown}")
    for flag, meaning in _MEANING.items():
        if any(flag in flags for flags in explanation.groups["flag"]):
            found.append(f"note: [{flag}] {meaning}")
    return found


def _enough(explanation: Explanation) -> list[str]:
    """Whether a sample stands for all rows."""
    settings, auto = explanation.facts.settings, explanation.facts.auto
    if settings.fraction == 1:
        return [] if auto is None else [_all_rows(auto)]
    share, (k, target) = _percent(settings.fraction), _goal(explanation)
    if auto is not None:
        jaccard, probability = auto.steps[-1].jaccard, auto.steps[-1].probability
        steps = f"in {len(auto.steps)} steps" if len(auto.steps) > 1 else "in one step"
        begin = f"{share} of the rows were enough (sampling by {settings.sampling}, {steps})"
    else:
        sure = [explanation.stability(k, target, output) for output in explanation.outputs["output"]]
        k, jaccard = sure[0].k, min(each.jaccard for each in sure)
        probability = min(each.probability for each in sure)
        begin = f"this is a sample of {share} of the rows"
    return [
        f"note: {begin}: with that of all rows the top {k} has an expected Jaccard of {jaccard:.3f}, "
        f"and one of {target:g} or more with probability {probability:.2f}"
    ]


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"


def _all_rows(auto: AutoSampling) -> str:
    tried = ", ".join(f"{_percent(step.fraction)} ({step.probability:.2f})" for step in auto.steps[:-1])
    if not tried:
        return "note: all rows were taken, because there are too few to draw a sample from"
    return (
        "note: all rows were taken, because nothing less would have met the target; shares that were tried, with their "
        f"probabilities of meeting it: {tried}"
    )


def _row_groups(explanation: Explanation) -> list[str]:
    """Whether rows of a row group resemble each other, which makes errors larger."""
    table, settings = explanation.features, explanation.facts.settings
    alike = table[(table["stderr_by"] == "row groups") & (table["stderr_rows"] > 0)]
    found = []
    out_of_range = explanation.facts.out_of_range
    if out_of_range:
        found.append(
            f"note: row groups outside the sample reach far beyond those inside it ({', '.join(out_of_range)}), so "
            "that scores and intervals may mislead; sampling by rows does not"
        )
    if len(alike):
        times = float((alike["stderr"] / alike["stderr_rows"]).median())
        if SAMPLINGS[settings.sampling].whole_row_groups and settings.fraction < 1 and times > RISKY:
            found.append(
                f"note: row groups differ: errors are {times:.1f} times those of independent rows, so that a sample of "
                "whole row groups is risky; sampling by rows is not"
            )
        elif times > RISKY:
            found.append(
                f"note: rows of a row group resemble each other: for {len(alike)} scores the spread between row groups "
                f"decides the error, {times:.1f} times that of independent rows"
            )
    return found


def _rows(table: pd.DataFrame, width: int) -> list[str]:
    """Features, a line each."""
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
            f"  {row['rank']:>4}  {fit(row['feature'], longest)}  {_ARROWS[row['direction']]} {row['cir']:>7.4f}  "
            f"{error}  {bar(row['strength'], width)} {row['strength']:.3f}{flag}"
        )
    return lines


def _group_rows(table: pd.DataFrame, features: pd.DataFrame, width: int) -> list[str]:
    """Groups, a line each with its members under it."""
    longest = _longest(table["group"], GROUP)
    lines = [f"  {'rank':>4}  {fit('group', longest)}    {'cir':>7}  {'scaled':>7}  {'unsigned':>8}  strength"]
    width = min(width, LINE - 46 - longest)  # 46 cells are taken by the numbers
    for row, members in zip(table.to_dict("records"), _members(table, features), strict=True):
        lines.append(
            f"  {row['rank']:>4}  {fit(row['group'], longest)}  {_ARROWS[row['direction']]} {row['cir']:>7.4f}  "
            f"{row['cir_scaled']:>7.4f}  {row['strength_unsigned']:>8.3f}  {bar(row['strength'], width)} "
            f"{row['strength']:.3f}"
        )
        words = [f"{_ARROWS[direction]} {short(name, MEMBER)}" for name, direction in members[:MEMBERS]]
        words += [f"... and {len(members) - MEMBERS:,} more"] if len(members) > MEMBERS else []
        words += [f"[{row['flag']}]"] if row["flag"] else []
        lines += [" " * 8 + line for line in fill(words, LINE - 8)]
    return lines


def _members(groups: pd.DataFrame, features: pd.DataFrame) -> list[list[tuple[str, int]]]:
    """Of each group the members with their directions, the strongest first."""
    directions = dict(zip(features["feature"], features["direction"], strict=True))
    strengths = dict(zip(features["feature"], features["strength"], strict=True))
    return [
        [(name, directions[name]) for name in sorted(members, key=strengths.__getitem__, reverse=True)]
        for members in groups["members"]
    ]


def _longest(names: Iterable[str], most: int) -> int:
    return min(max([len("feature"), *map(cells, names)]), most)


def _html_table(table: pd.DataFrame, features: pd.DataFrame | None, output: str, k: int) -> str:
    """Features, or groups with their members if the features are given too."""
    kind, last = ("feature", "stderr") if features is None else ("group", "cir_scaled")
    titles = ["rank", kind, "", "cir", last, "strength"] + ([] if features is None else ["unsigned", "members"])
    left = "style='text-align:left'"
    head = "".join(f"<th {left}>{title}</th>" for title in titles)
    shown, rows = table.head(k), []
    members = [] if features is None else _members(shown, features)
    for place, row in enumerate(shown.to_dict("records")):
        colour = "#2b7bba" if row["direction"] >= 0 else "#d1603d"
        shape = f"background:{colour};height:0.8em;width:{row['strength'] * 12:.2f}em;display:inline-block"
        entries = [
            f"{row['rank']}",
            escape(row[kind]),
            _ARROWS[row["direction"]],
            f"{row['cir']:.4f}",
            f"{row[last]:.4f}",
            f"<div style='{shape}'></div> {row['strength']:.3f}",
        ]
        if members:
            words = [f"{_ARROWS[direction]}&nbsp;{escape(name)}" for name, direction in members[place][:MEMBERS]]
            words += [f"... and {row['size'] - MEMBERS:,} more"] if row["size"] > MEMBERS else []
            words += [f"<i>{row['flag']}</i>"] if row["flag"] else []
            entries += [f"{row['strength_unsigned']:.3f}", " ".join(words)]
        rows.append("<tr>" + "".join(f"<td {left}>{cell}</td>" for cell in entries) + "</tr>")
    more = f"<p>... and {len(table) - k} more</p>" if len(table) > k else ""
    return f"<p><b>{escape(output)}</b>: {kind}s</p><table><tr>{head}</tr>{''.join(rows)}</table>{more}"
