"""Draws the picture of the README.

Run ``excir demo``, then::

    python -m excir_dask.render.plots.readme_picture excir-demo/explanation docs/ranking.svg
"""

from __future__ import annotations

import sys
from pathlib import Path

from excir_dask.errors import ExcirError, UsageError
from excir_dask.render.plots.ranking import ranking
from excir_dask.results.explanation import Explanation


def draw(folder: str | Path, target: str | Path) -> None:
    """Write a saved explanation's ranking as an SVG file, byte for byte the same for the same explanation."""
    figure = ranking(Explanation.load(folder), k=14).get_figure(root=True)
    assert figure is not None
    import matplotlib.pyplot as plt  # ranking() has said what to install if it is missing

    # Without a salt the ids inside the file are random, and the date changes it every second.
    with plt.rc_context({"svg.hashsalt": "excir", "svg.fonttype": "path"}):
        figure.savefig(target, format="svg", metadata={"Date": None, "Creator": None})
    plt.close(figure)


def main(arguments: list[str]) -> None:
    if len(arguments) != 2:
        raise UsageError("usage: python -m excir_dask.render.plots.readme_picture EXPLANATION OUT.svg")
    draw(*arguments)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except ExcirError as error:
        print(f"excir: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
