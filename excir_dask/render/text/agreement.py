"""An agreement on a terminal: tables of measures, what they mean in words, and what was not compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from excir_dask.common.wording import count, listed, printable_lines
from excir_dask.render.terminal import cells, fill, fit, short

if TYPE_CHECKING:
    import pandas as pd

    from excir_dask.results.agreement import Agreement

NAME = 32
"""most cells of a name"""
LINE = 90
"""most cells of a line of words"""
BEYOND = 0.0455
"""share of shifts beyond two standard errors by chance"""

MEASURES = ["jaccard", "jaccard_chance", "spearman", "kendall", "ndcg", "procrustes", "affine", "kl"]
_MEANING = {
    "centering": "with another centring scores differ on the same rows too",
    "rank_by": "each explanation keeps its own ranking, and orders are compared by what each ranks by",
    "columns": "outputs of the same name come from different columns",
}
KEY = (
    "jaccard, spearman, kendall, ndcg: 1 for the same order; chance: jaccard of random orders; "
    "procrustes, affine, kl: 0 for the same shape"
)


def text(agreement: Agreement, top: int = 10) -> str:
    """Measures of every output and what they mean, the largest shifts, then what differs."""
    lines = [headline(agreement), *fill(differing(agreement), LINE), ""]
    for output, table in agreement.table.groupby("output", sort=False):
        lines += [f"{short(str(output), LINE)}: agreement", *_rows(table)]
        for row in table.to_dict("records"):
            lines += _folded(f"{row['kind']}: {verdict(agreement, row)}")
        lines.append("")
    shifts, several = agreement.shifts(n=top), agreement.features["output"].nunique() > 1
    lines += ["largest score shifts (*: more than two standard errors)", *_shift_rows(shifts, several), ""]
    lines += fill(KEY.split(" "), LINE, " ")
    return printable_lines([*lines, *notes(agreement)])


def notes(agreement: Agreement) -> list[str]:
    """What a reader must not overlook: names that only one of the two has, and settings that make scores differ."""
    found = []
    for side, only in (("A", agreement.only_in_a), ("B", agreement.only_in_b)):
        found += [
            f"note: {count(len(names), kind.removesuffix('s'))} only in {side}, not compared: {listed(names)}"
            for kind, names in only.items()
            if names
        ]
    if agreement.regrouped:
        found.append(f"note: groups whose members differ in A and B: {listed(agreement.regrouped)}")
    found += [f"note: {name} differs: {_MEANING[name]}" for name in _MEANING if name in agreement.settings]
    return found


def headline(agreement: Agreement) -> str:
    return f"Agreement of {agreement.names[0]} (A) and {agreement.names[1]} (B)"


def differing(agreement: Agreement) -> list[str]:
    return [f"{name}: {_value(a)} in A, {_value(b)} in B." for name, (a, b) in agreement.settings.items()]


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return listed([str(entry) for entry in value.values()])
    return f"{value:,}" if type(value) is int else "none" if value is None else short(str(value), 60)


def _rows(table: pd.DataFrame) -> list[str]:
    """Measures of one output: a line for features, and one for groups."""
    titles = ["chance" if name == "jaccard_chance" else name for name in MEASURES]
    lines = [f"  {'':<8} {'n':>6} {'k':>4}" + "".join(f" {title:>{max(len(title), 7)}}" for title in titles)]
    for row in table.to_dict("records"):
        measures = [f" {row[name]:>{max(len(title), 7)}.3f}" for name, title in zip(MEASURES, titles, strict=True)]
        lines.append(f"  {row['kind']:<8} {row['n']:>6} {row['k']:>4}" + "".join(measures))
    return lines


def verdict(agreement: Agreement, row: Mapping[Any, Any]) -> str:
    """One row of the table in words."""
    n, k, kind = row["n"], row["k"], row["kind"]
    if n == 1:
        parts = [f"there is only one {kind.removesuffix('s')}, so there is no order to compare"]
    else:
        same = round(2 * k * row["jaccard"] / (1 + row["jaccard"]))
        parts = [f"{same} of the top {k} are in both (by chance {k * k / n:.1f})"]
        if k < agreement.k:
            parts.append(f"k is {k}, because a top {agreement.k} of {n} would be all of them")
        shift, name = row["rank_shift"], short(row["rank_shift_name"], NAME)
        parts.append(f"{name} moves most, by {count(shift, 'place')}" if shift else "all are in the same order")
    name = short(row["score_shift_name"], NAME)
    parts.append(f"the largest score shift is {row['score_shift']:.4f} ({name})" if name else "no score differs")
    if kind == "features" and name:
        table = agreement.features[agreement.features["output"] == row["output"]]
        beyond = table[table["beyond"]]
        parts.append(f"{len(beyond):,} of {n:,} shifts are more than two standard errors (by chance {BEYOND * n:.1f})")
        turned = beyond[(beyond["cir_a"] - 0.5) * (beyond["cir_b"] - 0.5) < 0]
        if len(turned):
            parts.append(f"{count(len(turned), 'feature')} changed direction: {listed(list(turned['feature']))}")
    return "; ".join(parts)


def _shift_rows(shifts: pd.DataFrame, several: bool) -> list[str]:
    """A line per feature, with its output if there are several."""
    named = ["output", "feature"] if several else ["feature"]
    widths = {name: min(max([len(name), *map(cells, shifts[name])]), NAME) for name in named}
    head = "".join(f"  {fit(name, width)}" for name, width in widths.items())
    lines = [f"{head}  {'cir A':>7}  {'cir B':>7}    {'shift':>7}  {'stderr':>7}  {'rank A':>6}  {'rank B':>6}"]
    for row in shifts.to_dict("records"):
        names = "".join(f"  {fit(row[name], width)}" for name, width in widths.items())
        star = "*" if row["beyond"] else " "
        lines.append(
            f"{names}  {row['cir_a']:>7.4f}  {row['cir_b']:>7.4f}  {star} {row['shift']:>+7.4f}"
            f"  {row['stderr']:>7.4f}  {row['rank_a']:>6}  {row['rank_b']:>6}"
        )
    return lines


def _folded(sentence: str) -> list[str]:
    lines = fill(sentence.split(" "), LINE - 4, " ")
    return [f"  {lines[0]}", *(f"    {line}" for line in lines[1:])]
