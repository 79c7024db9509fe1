"""Standard errors of the scores of a run, and how far a difference must exceed them to count."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from excir_dask.kernels.scores import CHANCE
from excir_dask.results.explanation import Explanation
from excir_dask.results.tables import careful_errors

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]

FEW_ROW_GROUPS = 8
"""with fewer row groups, their spread shows dependence between rows only if it is strong"""

_HARDLY = 0.01
"""rows count as alike if so many features whose row groups differ have a smaller probability than this"""

_SURE = 1e9
"""degrees of freedom of a difference without error"""


def scores_of(explanation: Explanation, output: str, kind: str) -> pd.DataFrame:
    """A row per feature or group of an output: ``name cir null strength dependence dependence_error rank error degrees
    n missing``.

    Groups have no rows of their own to count, so their ``n`` and ``missing`` are 0, and their ``dependence`` is NaN.
    """
    table = explanation.features[explanation.features["output"] == output]
    row_groups = explanation.facts.rows.row_groups
    if kind == "features":
        errors, degrees = feature_errors(table, row_groups)
        columns = ["feature", "cir", "null", "strength", "dependence", "dependence_stderr", "rank", "n", "missing"]
        found = table[columns].rename(columns={"feature": "name", "dependence_stderr": "dependence_error"})
        return _with_errors(found, errors, degrees)
    groups = explanation.groups[explanation.groups["output"] == output]
    found = groups[["group", "cir", "null", "strength", "rank"]].rename(columns={"group": "name"})
    found = found.assign(n=0, missing=0, dependence=np.nan, dependence_error=np.nan)
    return _with_errors(found, *group_errors(table, groups, row_groups))


def _with_errors(found: pd.DataFrame, errors: Floats, degrees: Floats) -> pd.DataFrame:
    """With what order checks need; results of earlier versions do not know what chance gives."""
    null = found["null"].fillna(0.5)
    return found.assign(null=null, error=errors, degrees=degrees).reset_index(drop=True)


def feature_errors(table: pd.DataFrame, row_groups: int) -> tuple[Floats, Floats]:
    """Standard errors of a window's scores for one output, and their degrees of freedom.

    A constant column has no error: that is a fact of the window. Errors from the spread between row groups have the
    degrees of freedom of that many groups. If more features have such errors than chance gives, rows are alike, and a
    feature whose row groups agree by luck gets the error that the others suggest.
    """
    n_eff, rows, stderr = (table[name].to_numpy(dtype=np.float64) for name in ("n_eff", "stderr_rows", "stderr"))
    by_groups = (table["stderr_by"] == "row groups").to_numpy() & (rows > 0)
    moves = n_eff > 0
    if by_groups.any() and alike(int(by_groups.sum()), int(moves.sum()), row_groups):
        stderr = np.maximum(stderr, rows * float(np.median(stderr[by_groups] / rows[by_groups])))
        by_groups = moves
    errors = np.where(moves, careful_errors(table.assign(stderr=stderr)), 0.0)
    return errors, np.maximum(np.where(by_groups, np.minimum(n_eff, row_groups), n_eff) - 1.0, 1.0)


def alike(by_groups: int, features: int, row_groups: int) -> bool:
    """Whether rows are alike, given the number of features whose errors come from the spread between row groups.

    With few row groups it shows for few features only, so one is enough; else it must be more than chance gives.

    >>> alike(1, 20, 50), alike(3, 20, 50), alike(1, 20, 4)
    (False, True, True)
    """
    from scipy.special import bdtrc

    return row_groups < FEW_ROW_GROUPS or bool(bdtrc(by_groups - 1, features, CHANCE) < _HARDLY)


def group_errors(features: pd.DataFrame, groups: pd.DataFrame, row_groups: int) -> tuple[Floats, Floats]:
    """Upper limits of the groups' standard errors, and the degrees of freedom of the members with the fewest.

    A group's CIR is the mean of its members', weighted by their denominators. The correlation of their errors is
    unknown, so they are added as if it were 1; the relative errors of the weights are at most 1 / sqrt(n_eff).
    """
    places = {name: place for place, name in enumerate(features["feature"])}
    errors, degrees = feature_errors(features, row_groups)
    cir, weight, n_eff, rows = features[["cir", "denominator", "n_eff", "stderr_rows"]].to_numpy(dtype=np.float64).T
    spread = np.divide(errors, rows, out=np.ones_like(errors), where=rows > 0)
    weight_error = np.maximum(spread, 1.0) / np.sqrt(np.maximum(n_eff, 1.0))
    found, freedom = [], []
    for score, members in zip(groups["cir"], groups["members"], strict=True):
        inside = np.array([places[name] for name in members])
        inside = inside[weight[inside] > 0]
        if inside.size == 0:
            found.append(0.0)
            freedom.append(1.0)
            continue
        share = weight[inside] / weight[inside].sum()
        apart = np.abs(cir[inside] - float(score)) * weight_error[inside]
        found.append(float(np.sum(share * (errors[inside] + apart))))
        freedom.append(float(degrees[inside].min()))
    return np.array(found), np.array(freedom)


def difference_degrees(error: Any, degrees: Any, other_error: Any, other_degrees: Any) -> Floats:
    """Degrees of freedom of a difference (Welch-Satterthwaite); a side without error takes none away.

    >>> difference_degrees(np.array([0.1, 0.1]), 10.0, np.array([0.1, 0.0]), np.array([10.0, 1.0]))
    array([20., 10.])
    """
    one, other = np.square(error, dtype=np.float64), np.square(other_error, dtype=np.float64)
    below = one**2 / degrees + other**2 / other_degrees
    found: Floats = np.full(np.shape(below), _SURE)
    np.divide((one + other) ** 2, below, out=found, where=np.asarray(below) > 0)
    return found


def reach(n_eff: Any, false_alarm: float, comparisons: Any) -> Floats:
    """How many errors a difference must exceed, so that noise does so in any comparison with this probability.

    >>> reach(np.array([1e6, 30.0]), 0.01, 1).round(2)
    array([2.58, 2.76])
    """
    # at least four degrees of freedom: with fewer the limit would be so wide that nothing is ever found
    return t_limit(np.maximum(np.asarray(n_eff, dtype=np.float64) - 1.0, 4.0), false_alarm, comparisons)


def t_limit(degrees: Any, false_alarm: float, comparisons: Any) -> Floats:
    """The same by degrees of freedom: a quantile of Student's t, because the error itself is uncertain.

    >>> t_limit(np.array([1e6, 7.0]), 0.001, 10).round(2)
    array([3.89, 7.88])
    """
    from scipy.special import stdtrit

    level = 1.0 - false_alarm / (2.0 * np.maximum(comparisons, 1))
    return np.asarray(stdtrit(np.asarray(degrees, dtype=np.float64), level), dtype=np.float64)
