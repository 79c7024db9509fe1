"""Segments on a terminal: the scores of the first features in the largest segments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from excir_dask.common.wording import count
from excir_dask.render.terminal import cells, fit, short

if TYPE_CHECKING:
    from excir_dask.results.explanation import Explanation

FEATURES, SEGMENTS = 8, 6
"""most features and segments that are shown"""
NAME, SEGMENT = 24, 12
"""most cells of their names"""


def lines(explanation: Explanation, output: str) -> list[str]:
    """A line per feature with its score in all rows and in each segment; none without segments."""
    if explanation.by is None:
        return []
    features = explanation.of(output)["feature"].head(FEATURES).tolist()
    names = explanation.by.names[:SEGMENTS]
    table = explanation.segments
    of_output = table[table["output"] == output].set_index(["feature", "segment"])["cir"]
    overall = explanation.of(output).set_index("feature")["cir"]
    width = min(max(cells(name) for name in ["feature", *features]), NAME)
    columns = [max(min(cells(name), SEGMENT), 6) for name in names]
    header = "  ".join(_right(name, size) for name, size in zip(names, columns, strict=True))
    found = [
        f"{output}: cir by {' and '.join(explanation.facts.settings.by)}",
        f"  {fit('feature', width)}  {'all':>6}  {header}",
    ]
    for feature in features:
        scores = "  ".join(
            f"{of_output[feature, name]:>{size}.4f}" for name, size in zip(names, columns, strict=True)
        )  # fmt: skip
        found.append(f"  {fit(feature, width)}  {overall[feature]:.4f}  {scores}")
    left = len(explanation.by.names) - len(names)
    return [*found, *([f"  ... and {count(left, 'more segment')}"] if left else []), ""]


def _right(name: str, size: int) -> str:
    """A name at the right of so many cells."""
    found = short(name, size)
    return " " * (size - cells(found)) + found
