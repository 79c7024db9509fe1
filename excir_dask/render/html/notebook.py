"""Results as small fragments of HTML for a notebook, whose colours they inherit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from excir_dask.render.plots.ranking import COLOURS
from excir_dask.render.text import agreement as agreement_text
from excir_dask.render.text import explanation as explanation_text
from excir_dask.render.text import profile as profile_text
from excir_dask.render.text import sweep as sweep_text
from excir_dask.render.text.explanation import ARROWS, MEMBERS, members_of
from excir_dask.render.text.notes import notes

if TYPE_CHECKING:
    import pandas as pd

    from excir_dask.results.agreement import Agreement
    from excir_dask.results.explanation import Explanation
    from excir_dask.results.profile import Profile
    from excir_dask.results.sweep import Sweep

BAR = 12
"""em of a bar of strength 1"""


def explanation(result: Explanation, k: int = 15) -> str:
    """The ranking of every output, its groups, and notes."""
    parts = [_paragraph(explanation_text.headline(result))]
    for output in result.outputs["output"]:
        features = result.of(output)
        groups = result.groups[result.groups["output"] == output]
        parts += _ranking(str(output), "feature", features, _feature_rows(features.head(k)))
        if len(groups):
            parts += _ranking(str(output), "group", groups, _group_rows(groups.head(k), features))
    return _fragment(
        [
            *parts,
            *map(
                _paragraph,
                [explanation_text.KEY, explanation_text.SIZE_KEY, *(f"note: {note}" for note in notes(result))],
            ),
        ]
    )


def agreement(result: Agreement, top: int = 10) -> str:
    """Measures of every output and what they mean, the largest shifts, then what differs."""
    rows, titles = result.table.to_dict("records"), ["output", "kind", "n", "k", *agreement_text.MEASURES]
    shifts = result.shifts(n=top)
    return _fragment(
        [
            *map(_paragraph, [agreement_text.headline(result), *agreement_text.differing(result)]),
            _table(titles, [[_cell(row[title]) for title in titles] for row in rows]),
            *(
                f"<p>{_bold(row['output'])}, {row['kind']}: {escape(agreement_text.verdict(result, row))}</p>"
                for row in rows
            ),
            _paragraph("largest score shifts"),
            _table(map(str, shifts), [[_cell(value) for value in row] for row in shifts.to_numpy().tolist()]),
            *map(_paragraph, [agreement_text.KEY, *agreement_text.notes(result)]),
        ]
    )


def profile(result: Profile) -> str:
    """A row per cell."""
    table = result.table
    shares = [f"{share:.1%}" for share in table["share"]]
    rows = [
        [escape(cell), f"{rows:,.6g}", share, *(f"{figure:.4g}" for figure in figures)]
        for cell, rows, share, *figures in zip(
            table["cell"], table["rows"], shares, *(table[name] for name in table.columns[5:]), strict=True
        )
    ]
    titles = ["cell", "rows", "share", *table.columns[5:]]
    return _fragment([_paragraph(profile_text.headline(result)), _table(titles, rows)])


def sweep(result: Sweep) -> str:
    """Tables of features and groups, then the choice."""
    parts = [_paragraph(sweep_text.headline(result))]
    for kind in result.summary["kind"].unique():
        head, *body = sweep_text.table_of(result, kind)
        parts += [_paragraph(sweep_text.title(result, kind)), _table(head, [list(map(escape, row)) for row in body])]
    return _fragment([*parts, _paragraph(sweep_text.verdict(result))])


def _ranking(output: str, kind: str, table: pd.DataFrame, rows: Sequence[Sequence[str]]) -> list[str]:
    """The best of a table, and how many more there are."""
    last = (
        ["stderr", "dependence", "strength", "flag"]
        if kind == "feature"
        else ["cir_scaled", "strength", "unsigned", "members"]
    )
    more = len(table) - len(rows)
    return [
        f"<p>{_bold(output)}: {kind}s</p>",
        _table(["rank", kind, "", "cir", *last], rows),
        *([_paragraph(f"... and {more:,} more")] if more else []),
    ]


def _feature_rows(table: pd.DataFrame) -> list[list[str]]:
    rows = table.to_dict("records")
    return [
        [
            *_score(row, "feature"),
            f"{row['stderr']:.4f}",
            f"{row['dependence']:.3f}",
            _bar(row),
            f"<i>{row['flag']}</i>",
        ]
        for row in rows
    ]


def _group_rows(table: pd.DataFrame, features: pd.DataFrame) -> list[list[str]]:
    """Groups with their strongest members and flags."""
    rows = []
    for row, members in zip(table.to_dict("records"), members_of(table, features), strict=True):
        inside = [f"{ARROWS[direction]}&nbsp;{escape(name)}" for name, direction in members[:MEMBERS]]
        inside += [f"... and {len(members) - MEMBERS:,} more"] if len(members) > MEMBERS else []
        inside += [f"<i>{row['flag']}</i>"] if row["flag"] else []
        scores = [*_score(row, "group"), f"{row['cir_scaled']:.4f}", _bar(row), f"{row['strength_unsigned']:.3f}"]
        rows.append([*scores, " ".join(inside)])
    return rows


def _score(row: dict[Any, Any], kind: str) -> list[str]:
    return [f"{row['rank']}", escape(row[kind]), ARROWS[row["direction"]], f"{row['cir']:.4f}"]


def _bar(row: dict[Any, Any]) -> str:
    shape = f"height:0.8em;width:{BAR * row['strength']:.2f}em;display:inline-block"
    bar = f"<div style='background:{COLOURS[row['direction']]};{shape}'></div>"
    return f"<span style='white-space:nowrap'>{bar} {row['strength']:.3f}</span>"


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4f}" if isinstance(value, float) else escape(str(value))


def _fragment(parts: Iterable[str]) -> str:
    return f"<div style='font-size:90%'>{''.join(parts)}</div>"


def _paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>"


def _bold(text: object) -> str:
    return f"<b>{escape(str(text))}</b>"


def _table(titles: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose cells are HTML already."""
    left = "style='text-align:left'"
    head = "".join(f"<th {left}>{escape(title)}</th>" for title in titles)
    body = ("<tr>" + "".join(f"<td {left}>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{''.join(body)}</table>"
