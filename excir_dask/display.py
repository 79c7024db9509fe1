"""How an explanation looks: as text with bars on a terminal, and as a small page in a notebook."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from excir_dask.explanation import Explanation

_ARROWS = {1: "▲", -1: "▼", 0: "·"}
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def text(explanation: Explanation, k: int = 15, width: int = 24) -> str:
    """Ranking of every output as a table with bars, then groups, then what was left out."""
    lines = [headline(explanation), ""]
    for output in explanation.outputs["output"]:
        table = explanation.of(output)
        lines.append(f"{output}: feature ranking by {explanation.facts['settings']['rank_by']}")
        lines += _rows(table.head(k), "feature", width)
        if len(table) > k:
            lines.append(f"  ... and {len(table) - k} more")
        groups = explanation.groups[explanation.groups["output"] == output]
        if len(groups):
            lines += ["", f"{output}: groups"]
            lines += _rows(groups.head(k), "group", width)
            if len(groups) > k:
                lines.append(f"  ... and {len(groups) - k} more")
        lines.append("")
    lines += ["▲ moves with the output, ▼ against it; the bar is strength = |2 cir - 1|."]
    lines += notes(explanation)
    return "\n".join(lines)


def html(explanation: Explanation, k: int = 15) -> str:
    """The same as a fragment of HTML that inherits the notebook's colours."""
    parts = [f"<div style='font-size:90%'><p>{escape(headline(explanation))}</p>"]
    for output in explanation.outputs["output"]:
        for kind, table in (
            ("feature", explanation.of(output)),
            ("group", explanation.groups.query("output == @output")),
        ):
            if len(table):
                parts.append(_html_table(table, kind, str(output), k))
    parts.append("<p>▲ moves with the output, ▼ against it; the bar is strength = |2 cir − 1|.</p>")
    parts += [f"<p>{escape(note)}</p>" for note in notes(explanation)]
    return "".join(parts) + "</div>"


def headline(explanation: Explanation) -> str:
    """One line: how much was read and explained."""
    rows, settings = explanation.facts["rows"], explanation.facts["settings"]
    share = "" if settings["fraction"] == 1 else f" ({settings['fraction']:.0%} sample of {rows['lake']:,})"
    features = explanation.features["feature"].nunique()
    outputs = len(explanation.outputs)
    return (
        f"ExCIR over {rows['used']:,} rows{share}, {features:,} features, {outputs} output{'s' if outputs > 1 else ''}"
    )


def notes(explanation: Explanation) -> list[str]:
    """What a reader must not overlook: rows dropped, columns left out, flags."""
    rows, found = explanation.facts["rows"], []
    if rows["without_output"]:
        found.append(f"note: {rows['without_output']:,} rows were dropped because an output is missing")
    if rows["without_weight"]:
        found.append(f"note: {rows['without_weight']:,} rows were dropped because their weight is missing or zero")
    left_out = explanation.facts["left_out"]
    if left_out:
        shown = ", ".join(list(left_out)[:8]) + (", ..." if len(left_out) > 8 else "")
        what = (
            "1 column is not a number and was"
            if len(left_out) == 1
            else f"{len(left_out)} columns are not numbers and were"
        )
        found.append(f"note: {what} left out: {shown}")
    wide = explanation.features["center_bound"].max()
    if wide > 1e-12:
        found.append(f"note: approximate centres changed no score by more than {wide:.1g} (certified)")
    flagged = explanation.features[explanation.features["flag"] != ""]
    for flag, table in flagged.groupby("flag"):
        names = list(dict.fromkeys(table["feature"]))
        shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
        found.append(f"note: {flag}: {shown}")
    return found


def _rows(table: pd.DataFrame, kind: str, width: int) -> list[str]:
    longest = min(max([len(kind), *(len(name) for name in table[kind])]), 40)
    last = "stderr" if kind == "feature" else "scaled"
    lines = [f"  {'rank':>4}  {kind:<{longest}}    {'cir':>7}  {last:>7}  strength"]
    for row in table.to_dict("records"):
        name = row[kind] if len(row[kind]) <= longest else row[kind][: longest - 1] + "…"
        extra = row["stderr"] if kind == "feature" else row["cir_scaled"]
        flag = f"  [{row['flag']}]" if row.get("flag") else ""
        if row.get("strength_unsigned", 0.0) > row["strength"] + 0.05:
            flag = f"  [members cancel: {row['strength_unsigned']:.3f} unsigned]"
        lines.append(
            f"  {row['rank']:>4}  {name:<{longest}}  {_ARROWS[row['direction']]} {row['cir']:>7.4f}  {extra:>7.4f}  "
            f"{bar(row['strength'], width)} {row['strength']:.3f}{flag}"
        )
    return lines


def bar(share: float, width: int) -> str:
    """A bar of block characters, ``width`` wide at 1.

    >>> bar(0.5, 8)
    '████    '
    """
    full, rest = divmod(round(share * width * 8), 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(width)


def _html_table(table: pd.DataFrame, kind: str, output: str, k: int) -> str:
    last = "stderr" if kind == "feature" else "cir_scaled"
    left = "style='text-align:left'"
    head = "".join(f"<th {left}>{title}</th>" for title in ("rank", kind, "", "cir", last, "strength"))
    rows = []
    for row in table.head(k).to_dict("records"):
        colour = "#2b7bba" if row["direction"] >= 0 else "#d1603d"
        shape = f"background:{colour};height:0.8em;width:{row['strength'] * 12:.2f}em;display:inline-block"
        cells = [
            f"{row['rank']}",
            escape(row[kind]),
            _ARROWS[row["direction"]],
            f"{row['cir']:.4f}",
            f"{row[last]:.4f}",
            f"<div style='{shape}'></div> {row['strength']:.3f}",
        ]
        rows.append("<tr>" + "".join(f"<td {left}>{cell}</td>" for cell in cells) + "</tr>")
    more = f"<p>... and {len(table) - k} more</p>" if len(table) > k else ""
    title = "features" if kind == "feature" else "groups"
    return f"<p><b>{escape(output)}</b>: {title}</p><table><tr>{head}</tr>{''.join(rows)}</table>{more}"
