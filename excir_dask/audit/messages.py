"""Sentences of an audit: the description of each finding, and notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from excir_dask.common.wording import percent


def order(title: str, kind: str, output: str, value: float, threshold: float | None, floor: float) -> str:
    return (
        f"{title} of the {kind} of {output} is {value:.3f}, below {threshold:g}; "
        f"noise alone would leave it at {floor:.3f} or more"
    )


def named(kind: str, name: str, output: str) -> str:
    """One feature or group of an output.

    >>> named("features", "rpm", "risk")
    "feature 'rpm' of risk"
    """
    return f"{kind.removesuffix('s')} '{name}' of {output}"


def moved(was: float, now: float, error: float) -> str:
    """How a score changed.

    >>> moved(0.7, 0.4, 0.01)
    'CIR 0.700 -> 0.400, -0.300 with standard error 0.010'
    """
    return f"CIR {was:.3f} -> {now:.3f}, {now - was:+.3f} with standard error {error:.3f}"


def shifted(what: str, moved: str, threshold: float | None) -> str:
    return f"{what} shifted by more than {threshold:g}: {moved}"


def flipped(what: str, moved: str) -> str:
    return f"{what} changed sides of what chance gives: {moved}"


def moved_top(what: str, moved: str, verb: str, k: int) -> str:
    """``verb`` is "entered" or "left"."""
    return f"{what} {verb} the top {k}: {moved}"


def risen(kind: str, name: str, was: float, now: float, threshold: float | None, error: float) -> str:
    what = "rows without an output" if kind == "outputs" else f"missing values of '{name}'"
    most = percent(threshold or 0.0)
    return f"{what}: {was:.2%} -> {now:.2%}, a rise of more than {most} (standard error {error:.2%})"


def few_rows(rows: float, threshold: float | None) -> str:
    return f"the window has {rows:,.0f} rows, fewer than {threshold:,.0f}"


def rows_ratio(now: float, was: float, threshold: float | None, side: str) -> str:
    """``side`` is "less" or "more"."""
    return f"the window has {now:,.0f} rows, {side} than {threshold:g} times the {was:,.0f} of the baseline"


def new_name(kind: str, name: str) -> str:
    return f"{kind.removesuffix('s')} '{name}' is new; the baseline does not have it"


def gone_name(kind: str, name: str) -> str:
    return f"{kind.removesuffix('s')} '{name}' is gone; the baseline has it"


def constant(kind: str, name: str, first: bool) -> str:
    """``first``: the feature is in the baseline's top."""
    if kind == "outputs":
        return f"output '{name}' no longer varies, so its scores mean nothing: all are 0.5"
    of_top = " of the baseline's top" if first else ""
    return f"feature '{name}'{of_top} no longer varies; in the baseline it does"


def setting(name: str, was: Any, now: Any) -> str:
    return f"{name} was {was} in the baseline and is {now}; scores may differ for that reason alone"


def members(group: str, was: Sequence[str], now: Sequence[str]) -> str:
    """The members that a group lost and gained."""
    gone, new = (
        ", ".join(name for name in one if name not in other) or "none" for one, other in ((was, now), (now, was))
    )
    return f"group '{group}' has other members (gone: {gone}; new: {new}), so it is not compared"


def series(was: str, now: str) -> str:
    return (
        f"the baseline is of {was or 'a window without keys'}, this run of {now or 'a window without keys'}; give each "
        "its own baseline, with the keys in its name, such as  prod-{{ region }}"
    )


def missing_members(missing: Mapping[str, Sequence[str]]) -> list[str]:
    """Notes on groups with missing members."""
    return [
        f"group '{group}' is scored without missing members: {', '.join(names)}" for group, names in missing.items()
    ]


def few_row_groups(row_groups: Mapping[str, int]) -> str:
    """A note that dependence between rows cannot be seen, or not well.

    >>> few_row_groups({"the window": 1})
    'standard errors assume independent rows: the window has only 1 row group, too few to see whether rows are alike'
    """
    have = " and ".join(f"{name} has only {count} row group{'s'[: count != 1]}" for name, count in row_groups.items())
    return f"standard errors assume independent rows: {have}, too few to see whether rows are alike"
