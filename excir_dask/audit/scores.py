"""Two explanations side by side, with the errors that decide whether a difference counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from excir_dask.audit.findings import KINDS
from excir_dask.explanation import Explanation
from excir_dask.tables import careful_errors

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]

PAIRED = {
    **dict.fromkeys(["output", "kind", "name"], "str"),
    **dict.fromkeys(["cir_was", "cir_now", "shift", "error", "reach", "error_was", "error_now"], "float64"),
    **dict.fromkeys(["strength_was", "strength_now"], "float64"),
    **dict.fromkeys(["rank_was", "rank_now", "n_was", "n_now", "missing_was", "missing_now"], "int64"),
}
"""columns of a run's changes.parquet, and what they are"""


def scores_of(explanation: Explanation, output: str, kind: str) -> pd.DataFrame:
    """A row per feature or group of an output: ``name cir strength rank error n_eff n missing``.

    Groups have no rows of their own to count, so their ``n`` and ``missing`` are 0.
    """
    table = explanation.features[explanation.features["output"] == output]
    features = table[["feature", "cir", "strength", "rank", "n_eff", "n", "missing"]].rename(
        columns={"feature": "name"}
    )
    features["error"] = feature_errors(table)
    if kind == "features":
        return features.reset_index(drop=True)
    groups = explanation.groups[explanation.groups["output"] == output]
    found = groups[["group", "cir", "strength", "rank"]].rename(columns={"group": "name"}).assign(n=0, missing=0)
    errors, n_eff = group_errors(table, groups)
    return found.assign(error=errors, n_eff=n_eff).reset_index(drop=True)


def feature_errors(table: pd.DataFrame) -> Floats:
    """Standard errors of a window's scores. A column that does not vary has none: that is a fact of the window."""
    return np.where(table["n_eff"].to_numpy(dtype=np.float64) > 0, careful_errors(table), 0.0)


def group_errors(features: pd.DataFrame, groups: pd.DataFrame) -> tuple[Floats, Floats]:
    """Upper limits of the groups' standard errors, and the effective rows of the members with the fewest.

    A group's CIR is the mean of its members', weighted by their denominators. How errors of members go together is not
    known, so they are added as if they all went the same way; the weights' own errors are at most 1 / sqrt(n_eff).
    """
    places = {name: place for place, name in enumerate(features["feature"])}
    errors = feature_errors(features)
    cir, weight, n_eff, rows = features[["cir", "denominator", "n_eff", "stderr_rows"]].to_numpy(dtype=np.float64).T
    spread = np.divide(errors, rows, out=np.ones_like(errors), where=rows > 0)
    weight_error = np.maximum(spread, 1.0) / np.sqrt(np.maximum(n_eff, 1.0))
    found, effective = [], []
    for score, members in zip(groups["cir"], groups["members"], strict=True):
        inside = np.array([places[name] for name in members])
        inside = inside[weight[inside] > 0]
        if inside.size == 0:
            found.append(0.0)
            effective.append(0.0)
            continue
        share = weight[inside] / weight[inside].sum()
        apart = np.abs(cir[inside] - float(score)) * weight_error[inside]
        found.append(float(np.sum(share * (errors[inside] + apart))))
        effective.append(float(n_eff[inside].min()))
    return np.array(found), np.array(effective)


def paired(now: pd.DataFrame, was: pd.DataFrame) -> pd.DataFrame:
    """What both runs have, in the baseline's order, with the error of the difference."""
    pairs = was.merge(now, on="name", suffixes=("_was", "_now"))
    return pairs.assign(
        shift=pairs["cir_now"] - pairs["cir_was"],
        error=np.hypot(pairs["error_was"], pairs["error_now"]),
        n_eff=np.minimum(pairs["n_eff_was"], pairs["n_eff_now"]),
    )


def all_pairs(now: Explanation, was: Explanation | None, false_alarm: float) -> pd.DataFrame:
    """What both runs have, for every output and kind, with the ``reach`` that a shift must exceed to count.

    Without a baseline there is nothing.
    """
    import pandas as pd

    outputs = [] if was is None else [name for name in was.outputs["output"] if name in set(now.outputs["output"])]
    if was is None or not outputs:
        return pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in PAIRED.items()})
    tables = [
        paired(scores_of(now, output, kind), scores_of(was, output, kind)).assign(output=output, kind=kind)
        for kind in KINDS
        for output in outputs
    ]
    found = pd.concat(tables, ignore_index=True)
    comparisons = found.groupby("kind")["name"].transform("size").to_numpy()
    return found.assign(reach=reach(found["n_eff"], false_alarm, comparisons) * found["error"])[list(PAIRED)]


def reach(n_eff: Any, false_alarm: float, comparisons: Any) -> Floats:
    """Errors that a difference must exceed, so that noise does it in any of the comparisons with this probability.

    >>> reach(np.array([1e6, 30.0]), 0.01, 1).round(2)
    array([2.58, 2.76])
    """
    from scipy.special import stdtrit

    # Student's t, because few effective rows leave the error itself uncertain; never below four degrees, where
    # one limit would be so wide that nothing is ever found
    degrees = np.maximum(np.asarray(n_eff, dtype=np.float64) - 1.0, 4.0)
    return np.asarray(stdtrit(degrees, 1.0 - false_alarm / (2.0 * np.maximum(comparisons, 1))), dtype=np.float64)
