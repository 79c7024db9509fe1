"""Two explanations side by side, with the errors that decide whether a difference counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from excir_dask.explanation import Explanation

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]


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
    """Standard errors of a window's scores; one that all rows agree on is taken to be wrong by one effective row."""
    errors = table["stderr"].to_numpy(dtype=np.float64)
    n_eff = table["n_eff"].to_numpy(dtype=np.float64)
    unanimous = (errors < 1e-12) & (table["strength"].to_numpy() > 0.5) & (n_eff > 0)
    return np.where(unanimous, 1.0 / np.maximum(n_eff, 1.0), errors)


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


def reach(n_eff: Any, false_alarm: float, comparisons: int) -> Floats:
    """Errors that a difference must exceed, so that noise does it in any of the comparisons with this probability.

    >>> reach(np.array([1e6, 30.0]), 0.01, 1).round(2)
    array([2.58, 2.76])
    """
    from scipy.special import stdtrit

    # Student's t, because few effective rows leave the error itself uncertain; never below four degrees, where
    # one limit would be so wide that nothing is ever found
    degrees = np.maximum(np.asarray(n_eff, dtype=np.float64) - 1.0, 4.0)
    return np.asarray(stdtrit(degrees, 1.0 - false_alarm / (2.0 * max(comparisons, 1))), dtype=np.float64)
