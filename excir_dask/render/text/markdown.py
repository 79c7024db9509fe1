"""An explanation as Markdown tables, for issues, wikis and pull requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from excir_dask.common.wording import printable, printable_lines
from excir_dask.render.text.explanation import ARROWS, headline
from excir_dask.render.text.notes import notes

if TYPE_CHECKING:
    from excir_dask.results.explanation import Explanation


def markdown(explanation: Explanation, k: int = 15) -> str:
    """A table of the ``k`` best ranked features per output, then notes."""
    lines = [headline(explanation), ""]
    for output in explanation.outputs["output"]:
        table = explanation.of(output)
        lines += [
            f"Output {code(output)}:",
            "",
            "| rank | feature | | cir | lift | stderr | dependence | flag |",
            "|--:|---|---|--:|--:|--:|--:|---|",
        ]
        lines += [
            f"| {row['rank']} | {code(row['feature'])} | {ARROWS[row['direction']]} | {row['cir']:.4f} "
            f"| {row['lift']:+.3f} | {row['stderr']:.4f} | {row['dependence']:.3f} | {row['flag']} |"
            for row in table.head(k).to_dict("records")
        ]
        lines += ["", *([f"... and {len(table) - k} more", ""] if len(table) > k else [])]
    return printable_lines([*lines, *(f"- {escaped(note)}" for note in notes(explanation))])


def code(name: str) -> str:
    """A name as a code span; one with a backtick is escaped instead.

    >>> code("oil_temp"), code("a|b"), code("`c`")
    ('`oil_temp`', '`a\\\\|b`', '\\\\`c\\\\`')
    """
    return escaped(name) if "`" in name else f"`{printable(name)}`".replace("|", r"\|")


def escaped(text: str) -> str:
    """A text that Markdown shows as it is; underscores inside words need no escape."""
    return "".join(f"\\{mark}" if mark in r"\`*{}[]<>#|~" else mark for mark in printable(text))
