"""Checks of scores: their order, shifts, flips, and the top."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from excir_dask.audit import messages
from excir_dask.audit.comparison import Comparison, Table
from excir_dask.audit.findings import EVERY, KINDS, Checked, Finding
from excir_dask.audit.limits import CheckLimits
from excir_dask.audit.noise import Measure, Order, noise_floor
from excir_dask.kernels.agreement import DIGITS
from excir_dask.kernels.scores import RANKINGS, group_ranking

Mask = NDArray[np.bool_]

_RANKED = {
    "cir": ("cir", "error", "degrees", "null"),
    "dependence": ("dependence", "dependence_error", "n"),
}
"""what ranks are made of -> columns with it, its error, degrees of freedom of that, and what chance gives if not 0"""

ORDERS = 3
"""checks of an order, which share the level of a false alarm"""


def order(comparison: Comparison, limits: CheckLimits, *, measure: Measure, title: str) -> Iterator[Checked]:
    """Agreement of the two orders by one measure, where noise alone would leave more of it."""
    level = comparison.false_alarm / (ORDERS * len(KINDS) * max(len(comparison.outputs), 1))
    for table in comparison.tables:
        if len(table.pairs) < 2:  # a single name has only one order
            continue
        by = _rank_by(comparison, table)
        columns = _RANKED[RANKINGS[by].of]
        was, now, error_was, error_now, degrees_was, degrees_now, *nulls = (
            table.pairs[f"{column}_{run}"].to_numpy(dtype=np.float64) for column in columns for run in ("was", "now")
        )
        null_was, null_now = nulls or (np.zeros_like(was), np.zeros_like(now))
        ranked = Order(by, null_was, null_now)

        def measured(a: Any, b: Any, k: int = table.k, ranked: Order = ranked) -> float:
            return measure(a, b, k, ranked)

        value = measured(was, now)
        severity, threshold = limits.judge(value)
        findings: tuple[Finding, ...] = ()
        if severity != "ok":  # only then simulate noise: 20 ms for 20 features, seconds for 20,000
            null = (null_was + null_now) / 2.0
            floor = noise_floor(was, now, error_was, error_now, degrees_was, degrees_now, level, measured, null=null)
            if value < floor:
                finding = Finding(
                    check=limits.name, output=table.output, kind=table.kind, name=EVERY,
                    metric=limits.name.removesuffix("_min"), value=value, threshold=threshold, uncertainty=floor,
                    severity=severity, was=1.0, now=value,
                    description=messages.order(title, table.kind, table.output, value, threshold, floor),
                )  # fmt: skip
                findings = (finding,)
        yield Checked(limits.name, table.output, table.kind, 1, value, threshold, findings)


def shift(comparison: Comparison, limits: CheckLimits) -> Iterator[Checked]:
    """Changes of scores beyond their errors, the largest first."""
    for table in comparison.tables:
        sizes = table.pairs["shift"].abs().round(DIGITS).to_numpy()
        findings = []
        for at in np.flatnonzero(sizes > table.pairs["reach"].to_numpy()):
            row = table.pairs.iloc[at]
            severity, threshold = limits.judge_name(table.kind, row["name"], float(sizes[at]))
            if severity != "ok":
                text = messages.shifted(*_words(table, row), threshold)
                findings.append(_finding(limits, table, row, severity, float(row["shift"]), threshold, text))
        findings.sort(key=lambda finding: -abs(finding.value or 0.0))
        yield _checked(limits, table, float(sizes.max()), findings)


def flip(comparison: Comparison, limits: CheckLimits) -> Iterator[Checked]:
    """Scores on the other side of what chance gives, clear of it in both runs."""
    for table in comparison.tables:
        pairs = table.pairs
        # each run by its own error, as many times as a shift must exceed the error of both
        reach, error, error_was, error_now = pairs[["reach", "error", "error_was", "error_now"]].to_numpy(np.float64).T
        times = np.divide(reach, error, out=np.zeros(len(pairs)), where=error > 0)
        was, now = ((pairs[f"cir_{run}"] - pairs[f"null_{run}"]).to_numpy() for run in ("was", "now"))
        clear = (np.abs(was) > times * error_was) & (np.abs(now) > times * error_now)
        distance = np.where(was * now < 0, np.minimum(np.abs(was), np.abs(now)), 0.0)
        findings = []
        for at in np.flatnonzero(clear & (distance > 0)):
            row = pairs.iloc[at]
            severity, threshold = limits.judge_name(table.kind, row["name"], float(distance[at]))
            if severity != "ok":
                text = messages.flipped(*_words(table, row))
                findings.append(_finding(limits, table, row, severity, float(distance[at]), threshold, text))
        yield _checked(limits, table, float(distance.max()), findings)


def entered_top(comparison: Comparison, limits: CheckLimits) -> Iterator[Checked]:
    """Names that rose into the top."""
    for table in comparison.tables:
        before, after, rose = _places(comparison, table)
        yield _moved(limits, table, after & ~before & rose, "entered")


def left_top(comparison: Comparison, limits: CheckLimits) -> Iterator[Checked]:
    """Names that fell out of the top."""
    for table in comparison.tables:
        before, after, rose = _places(comparison, table)
        yield _moved(limits, table, before & ~after & ~rose, "left")


def _places(comparison: Comparison, table: Table) -> tuple[Mask, Mask, Mask]:
    """Whether each name was in the top, is in it, and rose itself: others may have pushed it in or out."""
    pairs, by = table.pairs, _rank_by(comparison, table)
    before, after = (pairs[rank].rank(method="first").to_numpy() <= table.k for rank in ("rank_was", "rank_now"))
    return before, after, (pairs[f"{by}_now"] > pairs[f"{by}_was"]).to_numpy()


def _rank_by(comparison: Comparison, table: Table) -> str:
    by = comparison.now.facts.settings.rank_by
    return group_ranking(by) if table.kind == "groups" else by


def _moved(limits: CheckLimits, table: Table, changed: Mask, verb: str) -> Checked:
    beyond = table.pairs["shift"].abs().to_numpy() > table.pairs["reach"].to_numpy()
    findings = []
    for at in np.flatnonzero(changed & beyond):
        row = table.pairs.iloc[at]
        severity, _ = limits.judge_name(table.kind, row["name"], 1.0)
        if severity != "ok":
            text = messages.moved_top(*_words(table, row), verb, table.k)
            findings.append(_finding(limits, table, row, severity, float(row["shift"]), None, text))
    return Checked(limits.name, table.output, table.kind, len(changed), float(changed.sum()), None, tuple(findings))


def _checked(limits: CheckLimits, table: Table, value: float, findings: list[Finding]) -> Checked:
    first = limits.limits.first
    return Checked(limits.name, table.output, table.kind, len(table.pairs), value, first, tuple(findings))


def _words(table: Table, row: Any) -> tuple[str, str]:
    """What moved, and from where to where."""
    was, now, error = float(row["cir_was"]), float(row["cir_now"]), float(row["error"])
    return messages.named(table.kind, row["name"], table.output), messages.moved(was, now, error)


def _finding(
    limits: CheckLimits, table: Table, row: Any, severity: str, value: float, threshold: float | None, text: str
) -> Finding:
    return Finding(
        check=limits.name, output=table.output, kind=table.kind, name=row["name"], metric="cir", value=value,
        threshold=threshold, uncertainty=float(row["error"]), severity=severity, was=float(row["cir_was"]),
        now=float(row["cir_now"]), description=text,
    )  # fmt: skip
