"""The facade from results up to :mod:`excir_dask.render`, so that a result can show itself.

Every other module imports downwards only. This one imports from a higher layer, inside functions: a result that nobody
looks at loads nothing of it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Displayed:
    """Base of results that terminals show as text and notebooks as HTML."""

    def __str__(self) -> str:
        return text(self)

    def __repr__(self) -> str:
        return text(self)

    def _repr_html_(self) -> str:
        return html(self)


def text(result: Any) -> str:
    """A result as text for a terminal."""
    from excir_dask.render.show import text

    return text(result)


def html(result: Any) -> str:
    """A result as a fragment of HTML for a notebook."""
    from excir_dask.render.show import html

    return html(result)


def verdict(sweep: Any) -> str:
    """The choice of a sweep in a plain sentence."""
    from excir_dask.render.text.sweep import verdict

    return verdict(sweep)


def report(result: Any, path: str | os.PathLike[str]) -> Path:
    """Write a result as one HTML file."""
    from excir_dask.render.show import report

    return report(result, path)


def add_report(result: Any, path: Path, wanted: bool | None) -> None:
    """Write a result's report if it is wanted; None: if the packages that reports need are installed."""
    from excir_dask.render.html.page import add

    add(result, path, wanted)


def ranking(explanation: Any, k: int, output: str | None, ax: Axes | None) -> Axes:
    """Bars of the best ranked features."""
    from excir_dask.render.plots.ranking import ranking

    return ranking(explanation, k, output, ax)


def profile(result: Any, ax: Axes | None) -> Axes:
    """An output along one feature."""
    from excir_dask.render.plots.profile import plot_profile

    return plot_profile(result, ax)


def heatmap(
    explanation: Any,
    shape: tuple[int, int],
    outputs: str | Sequence[str] | None,
    features: Sequence[str] | None,
    path: str | os.PathLike[str] | None,
) -> Figure:
    """Maps of features that form a grid."""
    from excir_dask.render.plots.heatmap import heatmap

    return heatmap(explanation, shape, outputs, features, path)


def sweep_picture(sweep: Any, path: str | os.PathLike[str] | None) -> Figure:
    """The plots of a sweep."""
    from excir_dask.render.plots.sweep import picture

    return picture(sweep, path)
