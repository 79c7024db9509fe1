"""Audits on a terminal: the result of a run, the list of runs, and scores from run to run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from excir_dask.audit.history import SERIES, days_of
from excir_dask.audit.slopes import slopes
from excir_dask.common.wording import count, printable_lines
from excir_dask.render.terminal import bar, fit

if TYPE_CHECKING:
    import pandas as pd

MARKS = {"ok": "ok", "warn": "WARN", "fail": "FAIL"}
FALSE_ALARM = 0.001
"""probability that noise alone is called a trend"""


def summary(run: Mapping[str, Any], violations: Sequence[Mapping[str, Any]]) -> str:
    """One run: its verdict, a line per violation, notes, and where it was saved."""
    against = f"against {run['baseline']}" if run["baseline"] else "without a baseline"
    lines = [f"{MARKS[run['status']]:<5} {run['window'] or run['audit']}: {count(run['checks'], 'check')} {against}"]
    lines += [
        f"  {MARKS[one['severity']]:<5} {one['constraint_check_type']}: {one['description']}" for one in violations
    ]
    lines += [f"  note: {note}" for note in run["notes"]]
    lines.append(f"  saved in {run['folder']}")
    return printable_lines(lines)


def tally(statuses: Sequence[str]) -> str:
    """How many windows of a backfill ended with each status.

    >>> tally(["ok", "fail", "ok"])
    '3 windows: 2 ok, 1 fail'
    """
    counts = [f"{statuses.count(status)} {status}" for status in dict.fromkeys(statuses)]
    return f"{count(len(statuses), 'window')}: {', '.join(counts)}"


def runs_text(runs: pd.DataFrame) -> str:
    """A line per run."""
    rows = [
        f"{row['day']:<12}{MARKS[row['status']]:<8}{row['rows']:>12,}  {row['run']}"
        for row in runs.assign(day=days_of(runs)).to_dict("records")
    ]
    return printable_lines([f"{'date':<12}{'status':<8}{'rows':>12}  run", *rows])


def trend_text(table: pd.DataFrame) -> str:
    """Scores of one feature or group: a block per series of runs and output, in it a line per run."""
    lines: list[str] = []
    table = table.assign(day=days_of(table))
    for (*series, output, kind, name), part in table.groupby([*SERIES, "output", "kind", "name"], sort=False):
        title = f"{str(kind).removesuffix('s')} {name} of {output}{series_label(table, series)}"
        lines += [*([""] if lines else []), title]
        lines.append(f"{'date':<12}{'cir':>7} {'± std error':>12} {'rank':>5}  {fit('0      0.5      1', 18)}status")
        for row in part.to_dict("records"):
            score = f"{row['cir']:>7.3f} {row['error']:>12.3f} {row['rank']:>5}"
            lines.append(f"{row['day']:<12}{score}  {bar(row['cir'], 16)}  {MARKS[row['status']]}")
        lines += _movement(part)
    return printable_lines(lines)


def series_label(table: pd.DataFrame, names: Iterable[object]) -> str:
    """The model and audit of one series of runs, each only if the table has several of them."""
    return "".join(
        f", {column} {name}" for column, name in zip(SERIES, names, strict=True) if table[column].nunique() > 1
    )


def _movement(part: pd.DataFrame) -> list[str]:
    """Whether a score moves steadily or jumped, beyond what noise explains."""
    (found,) = slopes(part, FALSE_ALARM).to_dict("records")
    if found["steady"]:
        return [f"steady: {found['slope']:+.4f} per run, standard error {found['slope_error']:.4f}"]
    return [f"jumped: another score since {day}" for day in part.loc[part["run"] == found["jumped"], "day"]]
