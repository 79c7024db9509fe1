"""Guards of the data behind the scores: rows, missing values, columns and settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from excir_dask.audit import messages as words
from excir_dask.audit.findings import EVERY, KINDS, Checked, Finding
from excir_dask.audit.limits import CHECKS, Check
from excir_dask.audit.scores import other_members, reach
from excir_dask.kernels.agreement import top_size
from excir_dask.results.explanation import Explanation

if TYPE_CHECKING:
    import pandas as pd

SETTINGS = ("centering", "rank_by", "weights", "sampling", "categoricals")
"""that make scores incomparable, or nearly, where they differ"""


def missing(pairs: pd.DataFrame, check: Check, false_alarm: float) -> Checked:
    findings, rises = [], [0.0]
    for row in pairs.to_dict("records"):
        rows_was, rows_now = row["n_was"] + row["missing_was"], row["n_now"] + row["missing_now"]
        shares = row["missing_was"] / max(rows_was, 1), row["missing_now"] / max(rows_now, 1)
        rises.append(shares[1] - shares[0])
        limits = check.of("features", row["name"])
        findings += _risen(
            check, limits, EVERY, "features", row["name"], shares, (rows_was, rows_now), false_alarm / len(pairs)
        )
    return Checked(check.name, EVERY, "features", len(pairs), float(max(rises)), check.shown, tuple(findings))


def output_missing(now: Explanation, was: Explanation, check: Check, false_alarm: float) -> Iterator[Checked]:
    rows_was, rows_now = was.facts.rows, now.facts.rows
    shares = tuple(rows.without_output / max(rows.sampled, 1) for rows in (rows_was, rows_now))
    sizes = rows_was.sampled, rows_now.sampled
    findings = _risen(check, check.limits, EVERY, "outputs", EVERY, shares, sizes, false_alarm)
    yield Checked(check.name, EVERY, "outputs", 1, shares[1] - shares[0], check.shown, tuple(findings))


def _risen(
    check: Check, limits: Any, output: str, kind: str, name: str, shares: Any, sizes: Any, level: float
) -> list[Finding]:
    rise = float(shares[1] - shares[0])
    severity, threshold = limits.severity(rise, least=False)
    pooled = (shares[0] * sizes[0] + shares[1] * sizes[1]) / max(sum(sizes), 1)
    error = float(np.sqrt(pooled * (1.0 - pooled) * sum(1.0 / max(size, 1) for size in sizes)))
    if severity == "ok" or rise <= float(reach(1e9, level, 1)) * error:
        return []
    text = words.risen(name, kind, shares, threshold, error)
    was, now = float(shares[0]), float(shares[1])
    return [Finding(check.name, output, kind, name, "missing", rise, threshold, error, severity, was, now, text)]


def constant(
    now: Explanation, was: Explanation, checks: Mapping[str, Check], k: int, false_alarm: float
) -> Iterator[Checked]:
    """Outputs and features that vary in the baseline and not in the window.

    A column that is rarely anything but one value may be so all day: that counts only where the rows that carried the
    baseline's score would have left some such rows today.
    """
    check = checks["became_constant"]
    of_outputs = set(was.outputs.loc[was.outputs["flag"] == "", "output"])
    still = [name for name in now.outputs.loc[now.outputs["flag"] == "constant", "output"] if name in of_outputs]
    yield _constant(check, "outputs", len(of_outputs), still, set(still))
    best = was.features.groupby("feature").agg(n=("n", "first"), n_eff=("n_eff", "max"), rank=("rank", "min"))
    today = now.features[now.features["flag"] == "constant"].drop_duplicates("feature").set_index("feature")["n"]
    both = best.join(today.rename("n_now"), how="inner")
    expected = both["n_eff"] * both["n_now"] / both["n"].clip(lower=1)
    both = both[expected > np.log(len(best) / false_alarm)]
    first = set(both.index[both["rank"] <= top_size(k, len(best))])
    yield _constant(check, "features", len(best), list(both.sort_values("rank").index), first)


def _constant(check: Check, kind: str, compared: int, names: Sequence[str], first: set[str]) -> Checked:
    findings = []
    for name in names:
        severity, _ = check.of(kind, name).severity(2.0 if name in first else 1.0, least=False)
        if severity != "ok":
            text = words.constant(kind, name, name in first)
            findings.append(
                Finding(check.name, EVERY, kind, name, "varies", None, None, None, severity, 1.0, 0.0, text)
            )
    return Checked(check.name, EVERY, kind, compared, float(len(names)), None, tuple(findings))


def rows(now: Explanation, was: Explanation | None, checks: Mapping[str, Check]) -> Iterator[Checked]:
    count = float(now.facts.rows.lake)
    before = None if was is None else float(was.facts.rows.lake)
    for name in ("rows_min", "rows_ratio_min", "rows_ratio_max"):
        if name != "rows_min" and not before:
            continue
        value = count if name == "rows_min" else count / float(before or 1.0)
        severity, threshold = checks[name].limits.severity(value, least=CHECKS[name].least)
        findings: tuple[Finding, ...] = ()
        if severity != "ok":
            text = words.rows(name, count, before, threshold)
            metric = "rows" if name == "rows_min" else "rows_ratio"
            findings = (
                Finding(name, EVERY, "rows", EVERY, metric, value, threshold, None, severity, before, count, text),
            )
        yield Checked(name, EVERY, "rows", 1, value, threshold, findings)


def columns(now: Explanation, was: Explanation, checks: Mapping[str, Check]) -> Iterator[Checked]:
    for kind in ("outputs", *KINDS):
        one = list(dict.fromkeys(getattr(was, kind)[kind.removesuffix("s")]))
        other = list(dict.fromkeys(getattr(now, kind)[kind.removesuffix("s")]))
        for check, names, known in (("columns_new", other, set(one)), ("columns_gone", one, set(other))):
            changed = [name for name in names if name not in known]
            findings = []
            for name in changed:
                severity, _ = checks[check].of(kind, name).severity(1.0, least=False)
                if severity != "ok":
                    text = words.column(check, kind, name)
                    findings.append(
                        Finding(check, EVERY, kind, name, "present", None, None, None, severity,
                                float(check == "columns_gone"), float(check == "columns_new"), text)
                    )  # fmt: skip
            yield Checked(check, EVERY, kind, len(names), float(len(changed)), None, tuple(findings))


def settings(
    now: Explanation, was: Explanation, checks: Mapping[str, Check], series: str | None = None
) -> Iterator[Checked]:
    """``series`` is the name of the audit with the keys of its window."""
    one, other = _described(was), _described(now)
    names = [name for name in one if name in other]
    differ = {name: words.setting(name, one[name], other[name]) for name in names if one[name] != other[name]}
    for group, (before, after) in other_members(now, was).items():
        differ[f"group {group}"] = words.members(group, before, after)
    of_baseline = (was.provenance.audit or {}).get("audit")
    if series is not None and of_baseline is not None and keys_of(series) != keys_of(of_baseline):
        differ["window"] = words.series(keys_of(of_baseline), keys_of(series))
    severity, _ = checks["settings"].limits.severity(1.0, least=False)
    findings = [
        Finding("settings", EVERY, "settings", name, "differs", None, None, None, severity, None, None, text)
        for name, text in differ.items()
        if severity != "ok"
    ]
    yield Checked("settings", EVERY, "settings", len(names), float(len(differ)), None, tuple(findings))


def keys_of(series: str) -> str:
    """Keys of a window other than its date, of which the name of a series consists beside the audit's.

    >>> keys_of("credit,region=eu")
    'region=eu'
    """
    return series.partition(",")[2]


def _described(explanation: Explanation) -> dict[str, Any]:
    settings, model = explanation.facts.settings, explanation.provenance.model
    outputs = {f"output {name}": column for name, column in settings.outputs.items()}
    comparable = {name: getattr(settings, name) for name in SETTINGS}
    return {**comparable, "model": None if model is None else model.sha256, **outputs}
