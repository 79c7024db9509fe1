"""The registry of checks. A new check is one entry here, and a function that finds what is beyond its limits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from excir_dask.audit import data_checks, noise, score_checks
from excir_dask.audit.comparison import Comparison
from excir_dask.audit.findings import EVERY, Checked
from excir_dask.audit.limits import FAIL, OFF, WARN, CheckLimits, Limits

INFINITE = float("inf")


@dataclass(frozen=True)
class Check:
    """One check."""

    name: str
    """in configurations and results"""
    compares: str
    """what its value is, for messages and reports"""
    default: Limits
    find: Callable[[Comparison, CheckLimits], Iterable[Checked]]
    least: bool = False
    """the value must be at least the threshold; else at most"""
    event: bool = False
    """it happens or does not: the configuration names a severity in place of thresholds"""
    named: bool = True
    """it is about single features and groups, which may have limits of their own"""
    most: float = 1.0
    """largest threshold that makes sense"""
    about_data: bool = False
    """it is about the data behind the scores, not about scores"""
    needs_baseline: bool = True


# fmt: off
_CHECKS = (
    # a constant column comes first, because it is the reason for much else
    Check("became_constant", "names that vary in the baseline and no longer do",
          Limits(warn=0.0, fail=1.0), data_checks.constant, event=True, about_data=True),
    Check("rows_min", "rows of the window", OFF, data_checks.rows, least=True, named=False, most=INFINITE,
          about_data=True, needs_baseline=False),
    Check("rows_ratio_min", "rows over those of the baseline, at least", Limits(0.5, 0.1), data_checks.rows_ratio,
          least=True, named=False, about_data=True),
    Check("rows_ratio_max", "rows over those of the baseline, at most", Limits(2.0, 10.0), data_checks.rows_ratio,
          named=False, most=INFINITE, about_data=True),
    Check("columns_new", "names that the baseline lacks", WARN, data_checks.new_names, event=True, about_data=True),
    Check("columns_gone", "names that only the baseline has", FAIL, data_checks.gone_names, event=True,
          about_data=True),
    Check("settings", "settings that differ from the baseline's", WARN, data_checks.settings, event=True, named=False,
          about_data=True),
    Check("missing_rate", "rise of the share of missing values", Limits(0.02, 0.1), data_checks.missing,
          about_data=True),
    Check("ndcg_min", "nDCG of the top k, gain |2 CIR - 1|", Limits(0.9, 0.8),
          partial(score_checks.order, measure=noise.ndcg, title="nDCG"), least=True, named=False),
    Check("jaccard_min", "Jaccard index of the two tops", Limits(0.5, 0.25),
          partial(score_checks.order, measure=noise.jaccard, title="Jaccard index of the top"), least=True,
          named=False),
    Check("kendall_min", "Kendall's tau-b of what ranks follow", Limits(0.5, 0.2),
          partial(score_checks.order, measure=noise.kendall, title="Kendall's tau"), least=True, named=False),
    Check("score_shift", "change of CIR", Limits(0.05, 0.15), score_checks.shift),
    Check("sign_flip", "distance of both scores from 0.5, on opposite sides", Limits(fail=0.02), score_checks.flip,
          most=0.5),
    Check("entered_top", "names that rose into the top k", WARN, score_checks.entered_top, event=True),
    Check("left_top", "names that fell out of the top k", WARN, score_checks.left_top, event=True),
)
# fmt: on

CHECKS: Mapping[str, Check] = {check.name: check for check in _CHECKS}
"""in the order of results and reports"""


def run_checks(comparison: Comparison, limits: Mapping[str, CheckLimits]) -> list[Checked]:
    """All checks of a run against its baseline; without one, only those that need none.

    Checks of the whole run come first, then those of scores, output by output.
    """
    found: list[Checked] = []
    for check in CHECKS.values():
        if comparison.was is not None or not check.needs_baseline:
            found += check.find(comparison, limits[check.name])
    place = {(table.kind, table.output): number for number, table in enumerate(comparison.tables)}
    return sorted(found, key=lambda one: -1 if one.output == EVERY else place[one.kind, one.output])
