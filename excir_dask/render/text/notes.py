"""The notes below an explanation: what a reader must not overlook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from excir_dask.common.wording import count, listed, percent
from excir_dask.lake.sample import SAMPLINGS
from excir_dask.results.tables import flagged

if TYPE_CHECKING:
    from excir_dask.results.explanation import Explanation
    from excir_dask.results.metadata import AutoSampling

TOP, TARGET = 8, 0.9
"""a sample is judged by the probability that its top 8 and that of all rows have at least this Jaccard index"""

RISKY = 2.0
"""errors this many times those of independent rows are worth a note"""

EXACT = 1e-12
"""bounds below this are rounding, not worth a note"""

LEAK = 0.95
"""dependence above which a feature may be the output itself"""

_UNSEEN = {
    "bends": "move the output up and down, so that cir and lift miss most of what dependence shows",
    "interacts": "change the output's spread rather than its level, as factors of a product do; cir and lift miss it",
}
"""flag -> what it says of features; these come first"""

_SAID = {
    "chance": "chance explains {number}: {names}",
    "saturated": "saturated: chance alone gives {names} a cir of nearly 0 or 1, which says nothing; see dependence, or "
    "centre on the mean",
}
"""flag -> the note on features that have it"""

_MEANING = {
    "members cancel": "members move against each other and cancel (compare |2 cir - 1| with unsigned)",
    "scales differ": "members' scales differ more than tenfold, so the largest dominates cir (scaled weighs all alike)",
}


def notes(explanation: Explanation) -> list[str]:
    """What CIR cannot see, then everything else."""
    return [*unseen(explanation), *other_notes(explanation)]


def unseen(explanation: Explanation, output: str | None = None) -> list[str]:
    """Sentences on features of which CIR shows little; of all outputs by default."""
    table = explanation.features if output is None else explanation.of(output)
    found = []
    for flag, meaning in _UNSEEN.items():
        some = table[flagged(table, flag)].sort_values("dependence", ascending=False, kind="stable")
        if len(some):
            names = list(dict.fromkeys(some["feature"]))
            found.append(f"{flag}: {listed(names)} {meaning if len(names) > 1 else _singular(meaning)}")
    return found


def _singular(meaning: str) -> str:
    verb, _, rest = meaning.partition(" ")
    return f"{verb}s {rest}"


def other_notes(explanation: Explanation) -> list[str]:
    """Sentences on dropped rows, columns left out, accuracy and flags."""
    rows = explanation.facts.rows
    found = list(explanation.provenance.lake.remarks)
    where = explanation.facts.settings.where
    if where is not None:
        found.append(f"{count(rows.filtered_out, 'row')} left out: only rows with {where} count")
    if rows.without_output:
        found.append(f"{count(rows.without_output, 'row')} without an output dropped")
    if rows.without_weight:
        found.append(f"{count(rows.without_weight, 'row')} with a missing or zero weight dropped")
    found += [*_left_out(explanation), *_times(explanation)]
    bound = explanation.features["center_bound"].max()
    if bound > EXACT:
        found.append(f"approximate centres changed no score by more than {bound:.1g} (certified)")
    return [*found, *_sample(explanation), *_row_groups(explanation), *_groups(explanation), *_flags(explanation)]


def goal(explanation: Explanation) -> tuple[int, float]:
    """Size of the top that a sample is judged by, and the Jaccard index that it should have."""
    auto = explanation.facts.auto
    return (TOP, TARGET) if auto is None else (auto.k, auto.target_jaccard)


def sampled_share(explanation: Explanation) -> float:
    """The share of the rows in a sample: of whole row groups it may be far from the fraction that was asked for."""
    rows, settings = explanation.facts.rows, explanation.facts.settings
    if not SAMPLINGS[settings.sampling].whole_row_groups or not rows.lake:
        return settings.fraction
    return (rows.sampled + rows.filtered_out) / rows.lake


def _left_out(explanation: Explanation) -> list[str]:
    """Columns that were not explained, by reason."""
    reasons = explanation.facts.left_out
    encrypted = [name for name, reason in reasons.items() if reason.startswith("encrypted ")]
    others = [name for name in reasons if name not in encrypted]
    return [
        f"{count(len(names), f'{what} column')} left out: {listed(names)}"
        for what, names in (("non-numeric", others), ("encrypted", encrypted))
        if names
    ]


def _times(explanation: Explanation) -> list[str]:
    """Times that were explained as numbers, by unit."""
    units: dict[str, list[str]] = {}
    for name, kinds in explanation.facts.converted.items():
        if unit := kinds.partition(", in ")[2]:
            units.setdefault(unit, []).append(name)
    return [f"explained as {unit}: {listed(names)}" for unit, names in units.items()]


def _sample(explanation: Explanation) -> list[str]:
    """How well a sample stands for all rows."""
    settings, auto = explanation.facts.settings, explanation.facts.auto
    if settings.fraction == 1:
        return [] if auto is None else [_all_rows(auto)]
    share, (k, target) = percent(sampled_share(explanation)), goal(explanation)
    if auto is not None:
        jaccard, probability = auto.steps[-1].jaccard, auto.steps[-1].probability
        start = f"{share} of the rows are enough (sampled by {settings.sampling}, {count(len(auto.steps), 'step')})"
    else:
        tops = [explanation.stability(k, target, output) for output in explanation.outputs["output"]]
        k, jaccard = tops[0].k, min(top.jaccard for top in tops)
        probability = min(top.probability for top in tops)
        start = f"this is a sample of {share} of the rows"
    return [
        f"{start}: its top {k} and that of all rows have an expected Jaccard index of {jaccard:.3f}, and at least "
        f"{target:g} with probability {probability:.2f}"
    ]


def _all_rows(auto: AutoSampling) -> str:
    tried = [f"{percent(step.fraction)} ({step.probability:.2f})" for step in auto.steps[:-1]]
    if not tried:
        return "all rows were used, because there are too few to draw a sample from"
    return (
        "all rows were used, because no smaller sample was expected to meet the target; tried, with the probability of "
        "meeting it: "
        f"{', '.join(tried)}"
    )


def _row_groups(explanation: Explanation) -> list[str]:
    """Whether rows of a row group are alike, which makes errors larger."""
    table, settings = explanation.features, explanation.facts.settings
    found = []
    if explanation.facts.out_of_range:
        found.append(
            "values outside the sampled row groups reach far beyond those inside "
            f"({listed(explanation.facts.out_of_range)}), so scores and intervals may mislead; sample by rows instead"
        )
    by_groups = table[(table["stderr_by"] == "row groups") & (table["stderr_rows"] > 0)]
    times = float((by_groups["stderr"] / by_groups["stderr_rows"]).median()) if len(by_groups) else 0.0
    if times > RISKY and SAMPLINGS[settings.sampling].whole_row_groups and settings.fraction < 1:
        found.append(
            f"row groups differ: standard errors are {times:.1f} times those of independent rows, so a sample of whole "
            "row groups is risky; sample by rows instead"
        )
    elif times > RISKY:
        found.append(
            f"rows of a row group are alike: for {count(len(by_groups), 'score')} the standard error comes from the "
            f"spread between row groups, {times:.1f} times that of independent rows"
        )
    return found


def _groups(explanation: Explanation) -> list[str]:
    threshold = explanation.facts.settings.group_correlated
    if threshold is None or len(explanation.groups):
        return []
    return [f"no groups were found: no two features have a rank correlation of {threshold:g} or more; try a lower one"]


def _flags(explanation: Explanation) -> list[str]:
    """Features by flag, and what the flags of groups mean."""
    table = explanation.features
    words = dict.fromkeys(flag for flags in table["flag"] if flags for flag in flags.split(", "))
    found = []
    for flag in sorted(set(words) - set(_UNSEEN)):
        names = list(dict.fromkeys(table.loc[flagged(table, flag), "feature"]))
        said = _SAID.get(flag, f"{flag}: {{names}}")
        found.append(said.format(number=count(len(names), "feature"), names=listed(names)))
    leaks = list(dict.fromkeys(table.loc[table["dependence"] > LEAK, "feature"]))
    if leaks:
        found.append(f"{listed(leaks)} tells nearly all of an output: is it the output itself, or made from it?")
    found += [
        f"[{flag}] {meaning}"
        for flag, meaning in _MEANING.items()
        if any(flag in flags for flags in explanation.groups["flag"])
    ]
    return found
