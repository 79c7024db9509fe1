"""Two explanations side by side, with the errors that decide whether a difference counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from excir_dask.audit.findings import KINDS
from excir_dask.kernels.scores import CHANCE
from excir_dask.results.explanation import Explanation
from excir_dask.results.tables import careful_errors

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]

FEW_ROW_GROUPS = 8
"""below which their spread shows likeness of rows only where it is strong"""

_HARDLY = 0.01
"""probability of so many features whose row groups differ, below which rows of the window count as alike"""

_SURE = 1e9
"""degrees of freedom of a difference that has no error"""

PAIRED = {
    **dict.fromkeys(["output", "kind", "name"], "str"),
    **dict.fromkeys(["cir_was", "cir_now", "shift", "error", "reach", "error_was", "error_now"], "float64"),
    **dict.fromkeys(["degrees_was", "degrees_now"], "float64"),
    **dict.fromkeys(["strength_was", "strength_now"], "float64"),
    **dict.fromkeys(["rank_was", "rank_now", "n_was", "n_now", "missing_was", "missing_now"], "int64"),
}
"""columns of a run's changes.parquet, and what they are"""


def scores_of(explanation: Explanation, output: str, kind: str) -> pd.DataFrame:
    """A row per feature or group of an output: ``name cir strength rank error degrees n missing``.

    Groups have no rows of their own to count, so their ``n`` and ``missing`` are 0.
    """
    table = explanation.features[explanation.features["output"] == output]
    row_groups = explanation.facts.rows.row_groups
    if kind == "features":
        errors, degrees = feature_errors(table, row_groups)
        found = table[["feature", "cir", "strength", "rank", "n", "missing"]].rename(columns={"feature": "name"})
        return found.assign(error=errors, degrees=degrees).reset_index(drop=True)
    groups = explanation.groups[explanation.groups["output"] == output]
    found = groups[["group", "cir", "strength", "rank"]].rename(columns={"group": "name"}).assign(n=0, missing=0)
    errors, degrees = group_errors(table, groups, row_groups)
    return found.assign(error=errors, degrees=degrees).reset_index(drop=True)


def feature_errors(table: pd.DataFrame, row_groups: int) -> tuple[Floats, Floats]:
    """Standard errors of a window's scores for one output, and their degrees of freedom.

    A column that does not vary has no error: that is a fact of the window. Errors by the spread between row groups are
    known as well as a spread of so many can be. Where more features have them than chance gives, rows of the window
    are alike, and a feature whose row groups agree by luck has the error that the others suggest.
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
    """Whether rows are alike, when the spread between row groups decides the errors of so many features.

    Few row groups show it for few features only, so one is enough; else it must be more than chance gives.

    >>> alike(1, 20, 50), alike(3, 20, 50), alike(1, 20, 4)
    (False, True, True)
    """
    from scipy.special import bdtrc

    return row_groups < FEW_ROW_GROUPS or bool(bdtrc(by_groups - 1, features, CHANCE) < _HARDLY)


def group_errors(features: pd.DataFrame, groups: pd.DataFrame, row_groups: int) -> tuple[Floats, Floats]:
    """Upper limits of the groups' standard errors, and the degrees of freedom of the members with the fewest.

    A group's CIR is the mean of its members', weighted by their denominators. How errors of members go together is not
    known, so they are added as if they all went the same way; the weights' own errors are at most 1 / sqrt(n_eff).
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


def paired(now: pd.DataFrame, was: pd.DataFrame) -> pd.DataFrame:
    """What both runs have, in the baseline's order, with the error of the difference and its degrees of freedom."""
    pairs = was.merge(now, on="name", suffixes=("_was", "_now"))
    return pairs.assign(
        shift=pairs["cir_now"] - pairs["cir_was"],
        error=np.hypot(pairs["error_was"], pairs["error_now"]),
        degrees=together(*(pairs[f"{part}_{run}"] for run in ("was", "now") for part in ("error", "degrees"))),
    )


def together(error: Any, degrees: Any, other_error: Any, other_degrees: Any) -> Floats:
    """Degrees of freedom of a difference, by Welch and Satterthwaite: a side without an error takes none away.

    >>> together(np.array([0.1, 0.1]), 10.0, np.array([0.1, 0.0]), np.array([10.0, 1.0]))
    array([20., 10.])
    """
    one, other = np.square(error, dtype=np.float64), np.square(other_error, dtype=np.float64)
    below = one**2 / degrees + other**2 / other_degrees
    found: Floats = np.full(np.shape(below), _SURE)
    np.divide((one + other) ** 2, below, out=found, where=np.asarray(below) > 0)
    return found


def members(explanation: Explanation) -> dict[str, list[str]]:
    """Members of each group; they are the same for every output."""
    groups = explanation.groups.drop_duplicates("group")
    return {str(name): list(inside) for name, inside in zip(groups["group"], groups["members"], strict=True)}


def other_members(now: Explanation, was: Explanation) -> dict[str, tuple[list[str], list[str]]]:
    """Groups of both runs that are not of the same features, with the baseline's members and those of now.

    Categories of a column come and go, so the group that they are by themselves is the same one all the same.
    """
    one, other = members(was), members(now)
    return {
        name: (one[name], other[name])
        for name in one
        if name in other
        and set(one[name]) != set(other[name])
        and not all(member.startswith(f"{name}=") for member in (*one[name], *other[name]))
    }


def all_pairs(now: Explanation, was: Explanation | None, false_alarm: float) -> pd.DataFrame:
    """What both runs have, for every output and kind, with the ``reach`` that a shift must exceed to count.

    Without a baseline there is nothing. A group that has other members is another group, and is not compared.
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
    found = found[(found["kind"] != "groups") | ~found["name"].isin(list(other_members(now, was)))]
    comparisons = found.groupby("kind")["name"].transform("size").to_numpy()
    return found.assign(reach=limit(found["degrees"], false_alarm, comparisons) * found["error"])[list(PAIRED)]


def reach(n_eff: Any, false_alarm: float, comparisons: Any) -> Floats:
    """Errors that a difference must exceed, so that noise does it in any of the comparisons with this probability.

    >>> reach(np.array([1e6, 30.0]), 0.01, 1).round(2)
    array([2.58, 2.76])
    """
    # never below four degrees, where one limit would be so wide that nothing is ever found
    return limit(np.maximum(np.asarray(n_eff, dtype=np.float64) - 1.0, 4.0), false_alarm, comparisons)


def limit(degrees: Any, false_alarm: float, comparisons: Any) -> Floats:
    """The same by degrees of freedom: Student's t, because the error itself is uncertain.

    >>> limit(np.array([1e6, 7.0]), 0.001, 10).round(2)
    array([3.89, 7.88])
    """
    from scipy.special import stdtrit

    level = 1.0 - false_alarm / (2.0 * np.maximum(comparisons, 1))
    return np.asarray(stdtrit(np.asarray(degrees, dtype=np.float64), level), dtype=np.float64)
