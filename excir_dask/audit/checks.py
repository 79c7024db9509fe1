"""The checks: two explanations in, a list of what was checked out. Pure: nothing is read or written here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from excir_dask.audit import data_checks as guards
from excir_dask.audit import messages as words
from excir_dask.audit.findings import EVERY, KINDS, Checked, Finding
from excir_dask.audit.limits import Check
from excir_dask.audit.noise import measure, noise_floor
from excir_dask.kernels.agreement import DIGITS, top_size
from excir_dask.results.explanation import Explanation

if TYPE_CHECKING:
    import pandas as pd


def run_checks(
    now: Explanation,
    was: Explanation | None,
    pairs: pd.DataFrame,
    checks: Mapping[str, Check],
    k: int = 8,
    false_alarm: float = 0.001,
    series: str | None = None,
) -> list[Checked]:
    """All checks of a run against a baseline (without one, only those that need none).

    Parameters
    ----------
    now, was : Explanation
    pairs : DataFrame
        From :func:`~excir_dask.audit.scores.all_pairs`.
    checks : mapping name -> Check
    k : int
        Size of the top.
    false_alarm : float
        Probability that noise alone makes any feature or group exceed its error, for each check.
    series : str, optional
        Name of the audit with the keys of its window.
    """
    if was is None:
        return list(guards.rows(now, was, checks))
    # what is constant comes first, because it is the reason of much else
    found = list(guards.constant(now, was, checks, k, false_alarm))
    found += guards.rows(now, was, checks)
    outputs = [name for name in was.outputs["output"] if name in set(now.outputs["output"])]
    found += guards.columns(now, was, checks)
    found += guards.settings(now, was, checks, series)
    found += guards.output_missing(now, was, checks["missing_rate"], false_alarm)
    for (of_kind, of_output), some in pairs.groupby(["kind", "output"], sort=False):
        kind, output = str(of_kind), str(of_output)
        size = top_size(k, len(some))
        found += _order(now, output, kind, some, checks, size, false_alarm / (3 * len(KINDS) * len(outputs)))
        found.append(_shift(output, kind, some, checks["score_shift"]))
        found.append(_flip(output, kind, some, checks["sign_flip"]))
        found += _top(now, output, kind, some, checks, size)
        if kind == "features" and output == outputs[0]:  # values are missing whatever the output
            found.append(guards.missing(some, checks["missing_rate"], false_alarm))
    return found


def _order(
    now: Explanation, output: str, kind: str, pairs: pd.DataFrame, checks: Mapping[str, Check], k: int, level: float
) -> Iterator[Checked]:
    was, is_now, error_was, error_now, degrees_was, degrees_now = (
        pairs[f"{column}_{run}"].to_numpy(dtype=np.float64)
        for column in ("cir", "error", "degrees")
        for run in ("was", "now")
    )
    rank_by = now.facts.settings.rank_by
    if len(pairs) < 2:  # one name has only one order
        return
    for name in ("ndcg_min", "jaccard_min", "kendall_min"):
        value = measure(name, was, is_now, k, rank_by)
        severity, threshold = checks[name].limits.severity(value, least=True)
        findings: tuple[Finding, ...] = ()
        if severity != "ok":  # only then is it worth knowing what noise does: 20 ms for 20 features, seconds for 20,000

            def simulated(a: Any, b: Any, name: str = name) -> float:
                return measure(name, a, b, k, rank_by)

            floor = noise_floor(was, is_now, error_was, error_now, degrees_was, degrees_now, level, simulated)
            if value < floor:
                text = words.order(name, output, kind, value, threshold, floor)
                findings = (
                    Finding(name, output, kind, EVERY, name.removesuffix("_min"), value, threshold, floor, severity,
                            1.0, value, text),
                )  # fmt: skip
        yield Checked(name, output, kind, 1, value, threshold, findings)


def _shift(output: str, kind: str, pairs: pd.DataFrame, check: Check) -> Checked:
    size = pairs["shift"].abs().round(DIGITS).to_numpy()
    beyond = size > pairs["reach"].to_numpy()
    findings = []
    for at in np.flatnonzero(beyond):
        row = pairs.iloc[at]
        severity, threshold = check.of(kind, row["name"]).severity(float(size[at]), least=False)
        if severity != "ok":
            findings.append(_scored(check, output, kind, row, severity, float(row["shift"]), threshold))
    findings.sort(key=lambda finding: -abs(finding.value or 0.0))
    return Checked(check.name, output, kind, len(pairs), float(size.max()), check.shown, tuple(findings))


def _flip(output: str, kind: str, pairs: pd.DataFrame, check: Check) -> Checked:
    # each run by its own error, as many times as a shift must exceed the error of both
    reach, error, error_was, error_now = pairs[["reach", "error", "error_was", "error_now"]].to_numpy(np.float64).T
    limit = np.divide(reach, error, out=np.zeros(len(pairs)), where=error > 0)
    was, now = pairs["cir_was"].to_numpy() - 0.5, pairs["cir_now"].to_numpy() - 0.5
    clear = (np.abs(was) > limit * error_was) & (np.abs(now) > limit * error_now)
    distance = np.where(was * now < 0, np.minimum(np.abs(was), np.abs(now)), 0.0)
    findings = []
    for at in np.flatnonzero(clear & (distance > 0)):
        row = pairs.iloc[at]
        severity, threshold = check.of(kind, row["name"]).severity(float(distance[at]), least=False)
        if severity != "ok":
            findings.append(_scored(check, output, kind, row, severity, float(distance[at]), threshold))
    return Checked(check.name, output, kind, len(pairs), float(distance.max()), check.shown, tuple(findings))


def _top(
    now: Explanation, output: str, kind: str, pairs: pd.DataFrame, checks: Mapping[str, Check], k: int
) -> Iterator[Checked]:
    before = pairs["rank_was"].rank(method="first").to_numpy() <= k
    after = pairs["rank_now"].rank(method="first").to_numpy() <= k
    beyond = pairs["shift"].abs().to_numpy() > pairs["reach"].to_numpy()
    # what others pushed in or out has not changed itself
    by = now.facts.settings.rank_by
    rose = (pairs[f"{by}_now"] > pairs[f"{by}_was"]).to_numpy()
    for name, changed in (("entered_top", after & ~before & rose), ("left_top", before & ~after & ~rose)):
        findings = []
        for at in np.flatnonzero(changed & beyond):
            row = pairs.iloc[at]
            severity, _ = checks[name].of(kind, row["name"]).severity(1.0, least=False)
            if severity != "ok":
                findings.append(_scored(checks[name], output, kind, row, severity, float(row["shift"]), None, k))
        yield Checked(name, output, kind, len(pairs), float(changed.sum()), None, tuple(findings))


def _scored(
    check: Check, output: str, kind: str, row: Any, severity: str, value: float, threshold: float | None, k: int = 0
) -> Finding:
    was, now, error = float(row["cir_was"]), float(row["cir_now"]), float(row["error"])
    text = words.scored(check.name, output, kind, row["name"], was, now, error, threshold, k)
    return Finding(check.name, output, kind, row["name"], "cir", value, threshold, error, severity, was, now, text)
