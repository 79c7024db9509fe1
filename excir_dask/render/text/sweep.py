"""A sweep on a terminal: a table for features and one for groups, and the choice in a plain sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from excir_dask.common.wording import count, percent, printable_lines, size
from excir_dask.sweep.summary import meets, of_kind

if TYPE_CHECKING:
    from excir_dask.results.sweep import Sweep

COLUMNS: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("share", "fraction", lambda value: percent(value)),
    ("rows", "rows", lambda value: f"{value:,}"),
    ("read", "bytes", lambda value: size(value)),
    ("training s", "train_seconds", lambda value: f"{value:.3f}"),
    ("seconds", "seconds", lambda value: f"{value:.3f}"),
    ("speed-up", "speedup", lambda value: f"{value:.1f}x"),
    ("jaccard", "jaccard_mean", lambda value: f"{value:.3f}"),
    ("lowest", "jaccard_worst", lambda value: f"{value:.3f}"),
    ("spearman", "spearman_mean", lambda value: f"{value:.3f}"),
    ("kendall", "kendall_mean", lambda value: f"{value:.3f}"),
    ("residual", "procrustes_worst", lambda value: f"{value:.4f}"),
    ("mark", "mark", str),
)
"""title, column of the summary, and the format of its values"""
COSTS = ("rows", "bytes", "train_seconds", "seconds", "speedup")
"""columns that are the same for features and groups; shown with features only"""


def text(sweep: Sweep) -> str:
    """Tables of features and groups, then the choice."""
    lines = [headline(sweep), ""]
    for kind in sweep.summary["kind"].unique():
        lines.append(title(sweep, kind))
        cells = table_of(sweep, kind)
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for row in cells:
            padded = (cell.rjust(width) for cell, width in zip(row[:-1], widths[:-1], strict=True))
            lines.append(f"  {'  '.join(padded)}  {row[-1]}".rstrip())
        lines.append("")
    return printable_lines([*lines, verdict(sweep)])


def headline(sweep: Sweep) -> str:
    """One line: what was swept."""
    seeds, rows = len(sweep.settings["seeds"]), sweep.settings["rows"]
    outputs = sweep.runs["output"].nunique()
    model = "one model" if sweep.settings["retrain"] is None else "a model trained at each fraction"
    return (
        f"Sweep over {rows:,} rows, {model}, {count(outputs, 'output')}, {count(seeds, 'seed')} per fraction: "
        "agreement with the ranking of all rows"
    )


def title(sweep: Sweep, kind: str) -> str:
    """What the overlap of one kind means, and what chance gives."""
    first = of_kind(sweep.summary, kind).iloc[0]
    return (
        f"{kind}: overlap (Jaccard index) of the top {first['k']} of {first['n']:,}; "
        f"chance gives {first['jaccard_chance']:.3f}"
    )


def verdict(sweep: Sweep) -> str:
    """The choice in a plain sentence, with any doubts about it."""
    table = of_kind(sweep.summary)
    target, k = sweep.settings["target_jaccard"], table["k"].iloc[0]
    residual = sweep.settings.get("target_residual")
    limit = "" if residual is None else f" with a Procrustes residual of at most {residual:g}"
    each = f"each of {count(len(sweep.settings['seeds']), 'seed')} and {_outputs(sweep)}"
    if sweep.chosen is None:
        below = table[table["fraction"] < 1.0]
        best = below.sort_values(["jaccard_worst", "fraction"], ascending=[False, True]).iloc[0]
        return (
            f"No fraction below 1.0 reaches a Jaccard@{k} of {target:g}{limit} for {each}; the best is "
            f"{_reached(best, residual)} at {percent(best['fraction'])} of the rows. Use all rows, or a lower target."
        )
    row = table[table["fraction"] == sweep.chosen].iloc[0]
    said = (
        f"{percent(sweep.chosen)} of the rows ({row['rows']:,}) is the smallest fraction tried whose Jaccard@{k} is at "
        f"least {target:g}{limit} for {each}: {_reached(row, residual)} at worst, in {row['seconds']:.3g} s "
        f"({row['speedup']:.1f} times as fast as all rows)."
    )
    missed = table[(table["fraction"] > sweep.chosen) & ~meets(table, target, residual)]["fraction"]
    if len(missed):
        said += (
            f" But {', '.join(map(percent, missed))} of them fell short: more seeds would show whether this was luck."
        )
    if row["jaccard_chance"] > target:
        said += f" Chance alone gives {row['jaccard_chance']:.3f} here: use a smaller k."
    return said


def table_of(sweep: Sweep, kind: str) -> list[list[str]]:
    """The table of one kind as texts, the heading first."""
    table = of_kind(sweep.summary, kind)
    table = table.assign(mark=[_mark(sweep, fraction) if kind == "features" else "" for fraction in table["fraction"]])
    shown = [
        (head, name, write)
        for head, name, write in COLUMNS
        if table[name].notna().any()
        and (kind == "features" or name not in COSTS)
        and (name != "procrustes_worst" or sweep.settings.get("target_residual") is not None)
    ]
    return [
        ["" if name == "mark" else head for head, name, _ in shown],
        *([write(row[name]) for _, name, write in shown] for row in table.to_dict("records")),
    ]


def _mark(sweep: Sweep, fraction: float) -> str:
    marks = {"chosen": fraction == sweep.chosen, "front": fraction in sweep.front, "knee": fraction == sweep.knee}
    return ", ".join(name for name, holds in marks.items() if holds)


def _reached(row: Any, residual: float | None) -> str:
    """The worst agreement of a fraction, by the measures that have a target."""
    return f"{row['jaccard_worst']:.3f}" + ("" if residual is None else f" and {row['procrustes_worst']:.4f}")


def _outputs(sweep: Sweep) -> str:
    return count(sweep.runs["output"].nunique(), "output")
