"""The notes below an explanation: what a reader must not overlook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from excir_dask.common.wording import percent
from excir_dask.lake.sample import SAMPLINGS

if TYPE_CHECKING:
    from excir_dask.results.explanation import Explanation
    from excir_dask.results.metadata import AutoSampling

TOP, TARGET = 8, 0.9
"""what a sample is asked for: the probability that of its top 8, those of all rows have this Jaccard"""

RISKY = 2.0
"""times the error of independent rows from which on it is said that row groups differ"""

_MEANING = {
    "members cancel": "members move against each other and cancel (compare strength with unsigned)",
    "scales differ": "members' scales differ more than tenfold, and the largest decides cir (scaled weighs all alike)",
}


def goal(explanation: Explanation) -> tuple[int, float]:
    """Places of the top of a sample, and its Jaccard with that of all rows, that are asked for."""
    auto = explanation.facts.auto
    return (TOP, TARGET) if auto is None else (auto.k, auto.target_jaccard)


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
    share, (k, target) = percent(settings.fraction), goal(explanation)
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


def _all_rows(auto: AutoSampling) -> str:
    tried = ", ".join(f"{percent(step.fraction)} ({step.probability:.2f})" for step in auto.steps[:-1])
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
