"""What every plot starts from: matplotlib if it is installed, common colours, and the path of the picture."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from excir_dask.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.layout_engine import ConstrainedLayoutEngine

INK, MUTED, GRID = "#222222", "#6b6b6b", "#e3e3e3"
FORMATS = (".png", ".svg", ".pdf")


def pyplot() -> Any:
    """matplotlib's pyplot, imported on use."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise UsageError("plots need matplotlib; install it with: pip install 'excir-dask[plot]'") from error
    return plt


def axes(ax: Axes | None, height: float, width: float = 7.4) -> Axes:
    """The axes given, or those of a new figure (inches)."""
    plt = pyplot()
    if ax is not None:
        return ax
    # Not by rc_context: the first plot of a notebook also sets how it is shown, which that would undo.
    found: Axes = plt.subplots(figsize=(width, height), layout=padded())[1]
    return found


def padded() -> ConstrainedLayoutEngine:
    """Constrained layout with some room around every plot."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    return ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12)


def check_path(path: str | os.PathLike[str] | None) -> None:
    """Refuse a path that is not a picture's before anything is drawn."""
    if path is not None and Path(path).suffix.lower() not in FORMATS:
        raise UsageError(f"{path} is not the name of a picture; end it in {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")
