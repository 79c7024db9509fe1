"""Checks of the data behind the scores: constant columns, rows, names, settings and missing values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from excir_dask.audit import messages
from excir_dask.audit.comparison import Comparison, changed_members
from excir_dask.audit.findings import EVERY, KINDS, Checked, Finding
from excir_dask.audit.limits import CheckLimits
from excir_dask.audit.score_errors import reach
from excir_dask.kernels.agreement import top_size
from excir_dask.results.explanation import Explanation

SETTINGS = ("centering", "rank_by", "weights", "where", "sampling", "categoricals")
"""settings that make scores incomparable, or nearly, where they differ"""

SURE = 1e9
"""rows that leave no doubt: the error of a share is the normal distribution's"""


def constant(comparison: Comparison, limits: CheckLimits) -> Iterator[Checked]:
    """Outputs and features that vary in the baseline and not in the window.

    A column that is rarely anything but one value may be so all day: that counts only where the rows that carried the
    baseline's score would have left some such rows today.
    """
    was, now = comparison.baseline, comparison.now
    varied = set(was.outputs.loc[was.outputs["flag"] == "", "output"])
    outputs = [name for name in now.outputs.loc[now.outputs["flag"] == "constant", "output"] if name in varied]
    yield _constant(limits, "outputs", len(varied), outputs, set(outputs))
    best = was.features.groupby("feature").agg(n=("n", "first"), n_eff=("n_eff", "max"), rank=("rank", "min"))
    today = now.features[now.features["flag"] == "constant"].drop_duplicates("feature").set_index("feature")["n"]
    both = best.join(today.rename("n_now"), how="inner")
    expected = both["n_eff"] * both["n_now"] / both["n"].clip(lower=1)
    both = both[expected > np.log(len(best) / comparison.false_alarm)]
    top = set(both.index[both["rank"] <= top_size(comparison.k, len(best))])
    yield _constant(limits, "features", len(best), list(both.sort_values("rank").index), top)


def _constant(limits: CheckLimits, kind: str, compared: int, names: Sequence[str], top: set[str]) -> Checked:
    findings = []
    for name in names:
        severity, _ = limits.judge_name(kind, name, 2.0 if name in top else 1.0)
        if severity != "ok":
            text = messages.constant(kind, name, name in top)
            findings.append(_event(limits, kind, name, "varies", severity, text, 1.0, 0.0))
    return Checked(limits.name, EVERY, kind, compared, float(len(names)), None, tuple(findings))


def rows(comparison: Comparison, limits: CheckLimits) -> Iterator[Checked]:
    """Rows of the window."""
    count = float(comparison.now.facts.rows.lake)
    before = None if comparison.was is None else float(comparison.was.facts.rows.lake)
    yield _counted(limits, "rows", count, partial(messages.few_rows, count), before, count)


def rows_ratio(comparison: Comparison, limits: CheckLimits) -> Iterator[Checked]:
    """Rows of the window over those of the baseline."""
    count, before = float(comparison.now.facts.rows.lake), float(comparison.baseline.facts.rows.lake)
    if not before:
        return
    sentence = partial(messages.rows_ratio, count, before, side="less" if limits.least else "more")
    yield _counted(limits, "rows_ratio", count / before, sentence, before, count)


def _counted(
    limits: CheckLimits, metric: str, value: float, sentence: Callable[[float | None], str], was: float | None,
    now: float,
) -> Checked:  # fmt: skip
    """``sentence`` says of a threshold that the value is beyond it; a check that is off has none."""
    severity, threshold = limits.judge(value)
    findings: tuple[Finding, ...] = ()
    if severity != "ok":
        finding = Finding(
            check=limits.name, output=EVERY, kind="rows", name=EVERY, metric=metric, value=value, threshold=threshold,
            uncertainty=None, severity=severity, was=was, now=now, description=sentence(threshold),
        )  # fmt: skip
        findings = (finding,)
    return Checked(limits.name, EVERY, "rows", 1, value, threshold, findings)


def new_names(comparison: Comparison, limits: CheckLimits) -> Iterator[Checked]:
    """Outputs, features and groups that the baseline lacks."""
    return _only_in(comparison.now, comparison.baseline, limits, messages.new_name, was=0.0)


def gone_names(comparison: Comparison, limits: CheckLimits) -> Iterator[Checked]:
    """Outputs, features and groups that only the baseline has."""
    return _only_in(comparison.baseline, comparison.now, limits, messages.gone_name, was=1.0)


def _only_in(
    one: Explanation, other: Explanation, limits: CheckLimits, sentence: Callable[[str, str], str], was: float
) -> Iterator[Checked]:
    for kind in ("outputs", *KINDS):
        names, known = _names(one, kind), set(_names(other, kind))
        only = [name for name in names if name not in known]
        judged = [(name, limits.judge_name(kind, name, 1.0)[0]) for name in only]
        findings = [
            _event(limits, kind, name, "present", severity, sentence(kind, name), was, 1.0 - was)
            for name, severity in judged
            if severity != "ok"
        ]
        yield Checked(limits.name, EVERY, kind, len(names), float(len(only)), None, tuple(findings))


def _names(explanation: Explanation, kind: str) -> list[str]:
    return list(dict.fromkeys(getattr(explanation, kind)[kind.removesuffix("s")]))


def settings(comparison: Comparison, limits: CheckLimits) -> Iterator[Checked]:
    """Settings, the model, members of groups and keys of the window that are not the baseline's."""
    was, now = comparison.baseline, comparison.now
    one, other = _described(was), _described(now)
    names = [name for name in one if name in other]
    differ = {name: messages.setting(name, one[name], other[name]) for name in names if one[name] != other[name]}
    for group, (before, after) in changed_members(now, was).items():
        differ[f"group {group}"] = messages.members(group, before, after)
    of_baseline, series = (was.provenance.audit or {}).get("audit"), comparison.series
    if series is not None and of_baseline is not None and keys_of(series) != keys_of(of_baseline):
        differ["window"] = messages.series(keys_of(of_baseline), keys_of(series))
    severity, _ = limits.judge(1.0)
    findings = [
        _event(limits, "settings", name, "differs", severity, text, None, None)
        for name, text in differ.items()
        if severity != "ok"
    ]
    yield Checked(limits.name, EVERY, "settings", len(names), float(len(differ)), None, tuple(findings))


def keys_of(series: str) -> str:
    """Keys of a window other than its date, from the name of a series of runs.

    >>> keys_of("credit,region=eu")
    'region=eu'
    """
    return series.partition(",")[2]


def _described(explanation: Explanation) -> dict[str, Any]:
    settings, model = explanation.facts.settings, explanation.provenance.model
    outputs = {f"output {name}": column for name, column in settings.outputs.items()}
    comparable = {name: getattr(settings, name) for name in SETTINGS}
    return {**comparable, "model": None if model is None else model.sha256, **outputs}


def missing(comparison: Comparison, limits: CheckLimits) -> Iterator[Checked]:
    """Rises of the share of missing values: of rows without an output, and of each feature."""
    was, now = comparison.baseline.facts.rows, comparison.now.facts.rows
    one, other = Missing(was.without_output, was.sampled), Missing(now.without_output, now.sampled)
    found = _risen(limits, "outputs", EVERY, one, other, comparison.false_alarm)
    yield Checked(
        limits.name, EVERY, "outputs", 1, other.share - one.share, limits.limits.first, tuple(found)
    )  # fmt: skip
    # values are missing whatever the output, so the first one stands for all
    table = next((table for table in comparison.tables if table.kind == "features"), None)
    if table is None:
        return
    findings, rises = [], [0.0]
    for row in table.pairs.to_dict("records"):
        one, other = (Missing(row[f"missing_{run}"], row[f"n_{run}"] + row[f"missing_{run}"]) for run in ("was", "now"))
        rises.append(other.share - one.share)
        findings += _risen(limits, "features", row["name"], one, other, comparison.false_alarm / len(table.pairs))
    yield Checked(
        limits.name, EVERY, "features", len(table.pairs), max(rises), limits.limits.first, tuple(findings)
    )  # fmt: skip


@dataclass(frozen=True)
class Missing:
    """How many of some rows lack a value."""

    missing: int
    rows: int

    @property
    def share(self) -> float:
        return float(self.missing / max(self.rows, 1))


def _risen(limits: CheckLimits, kind: str, name: str, was: Missing, now: Missing, level: float) -> list[Finding]:
    rise = now.share - was.share
    severity, threshold = limits.judge_name(kind, name, rise)
    pooled = (was.missing + now.missing) / max(was.rows + now.rows, 1)
    error = float(np.sqrt(pooled * (1.0 - pooled) * sum(1.0 / max(one.rows, 1) for one in (was, now))))
    if severity == "ok" or rise <= float(reach(SURE, level, 1)) * error:
        return []
    return [
        Finding(
            check=limits.name, output=EVERY, kind=kind, name=name, metric="missing", value=rise, threshold=threshold,
            uncertainty=error, severity=severity, was=was.share, now=now.share,
            description=messages.risen(kind, name, was.share, now.share, threshold, error),
        )
    ]  # fmt: skip


def _event(
    limits: CheckLimits, kind: str, name: str, metric: str, severity: str, text: str, was: float | None,
    now: float | None,
) -> Finding:  # fmt: skip
    """A finding of something that happened, which has no value."""
    return Finding(
        check=limits.name, output=EVERY, kind=kind, name=name, metric=metric, value=None, threshold=None,
        uncertainty=None, severity=severity, was=was, now=now, description=text,
    )  # fmt: skip
