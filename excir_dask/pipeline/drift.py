"""How far features and outputs have moved between two saved explanations, without reading a row."""

from __future__ import annotations

import os
from dataclasses import fields
from typing import TYPE_CHECKING

from excir_dask.graph.lake_state import check_alike
from excir_dask.kernels.drift import Drift
from excir_dask.kernels.drift import drift as measure
from excir_dask.results.explanation import Explanation

if TYPE_CHECKING:
    import pandas as pd


def drift(before: str | os.PathLike[str] | Explanation, after: str | os.PathLike[str] | Explanation) -> pd.DataFrame:
    """How far every feature and output has moved between two explanations, from their states alone.

    Parameters
    ----------
    before, after : path or Explanation
        With the same features, outputs and centring, seen from the same reference: ``after`` was computed with
        ``reference=before``, or both with that of a third one.

    Returns
    -------
    DataFrame
        A row per column, the largest ``psi`` first in each ``kind``, feature or output. ``psi`` is the population
        stability index over up to 16 cells (below 0.1 is usually called stable, above 0.25 a large change),
        ``psi_chance`` about what it is by chance with so many rows. ``ks`` is the Kolmogorov-Smirnov distance at the
        edges of cells: the exact one lies from there to ``ks_high``, and ``ks_p`` is its p-value. ``wasserstein`` is
        how far values have moved on average, in units of ``spread`` (the interquartile range before), and lies from
        ``wasserstein_low`` to ``wasserstein_high``. ``q25_shift``, ``center_shift`` and ``q75_shift`` are in the same
        units, NaN where the reference does not cover them. ``missing_before`` and ``missing_after`` are shares of the
        rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from excir_dask import drift, explain
    >>> days = [pd.DataFrame({"a": [1.0, 2, 3, 4], "b": [i, 2.0 + i, 5, 7], "pred": [1.0, 2, 4, 3]}) for i in (0, 9)]
    >>> first = explain(days[0], output="pred")
    >>> drift(first, explain(days[1], output="pred", reference=first))[["kind", "column", "ks"]]
          kind column   ks
    0  feature      b  0.5
    1  feature      a  0.0
    2   output   pred  0.0
    """
    import numpy as np
    import pandas as pd

    found = [given if isinstance(given, Explanation) else Explanation.load(given) for given in (before, after)]
    names = [
        name if isinstance(given, Explanation) else os.fspath(given)
        for given, name in zip((before, after), ("before", "after"), strict=True)
    ]
    one, two = lakes = [explanation.state for explanation in found]
    check_alike(lakes, names, "then compare them")
    references, indicators = one.references, (one.span.indicators.columns, two.span.indicators.columns)
    parts = [
        ("feature", one.features, (one.state.columns, two.state.columns), references.features),
        ("feature", one.names[len(one.features) :], indicators, references.indicators),
        ("output", tuple(found[0].outputs["output"]), (one.span.outputs, two.span.outputs), references.outputs),
    ]
    tables = []
    for kind, columns, states, reference in parts:
        moved = measure(*states, reference, one.centering)
        figures = {field.name: np.asarray(getattr(moved, field.name)) for field in fields(Drift)}
        tables.append(pd.DataFrame({"kind": kind, "column": list(columns), **figures}))
    table = pd.concat(tables, ignore_index=True)
    return table.sort_values(["kind", "psi"], ascending=[True, False], kind="stable").reset_index(drop=True)
