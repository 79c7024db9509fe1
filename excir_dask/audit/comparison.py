"""Two explanations side by side: what checks look at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from excir_dask.audit.findings import KINDS
from excir_dask.audit.score_errors import difference_degrees, scores_of, t_limit
from excir_dask.kernels.agreement import top_size
from excir_dask.results.explanation import Explanation

if TYPE_CHECKING:
    import pandas as pd

PAIRED = {
    **dict.fromkeys(["output", "kind", "name"], "str"),
    **dict.fromkeys(["cir_was", "cir_now", "shift", "error", "reach", "error_was", "error_now"], "float64"),
    **dict.fromkeys(["degrees_was", "degrees_now"], "float64"),
    **dict.fromkeys(["null_was", "null_now", "strength_was", "strength_now"], "float64"),
    **dict.fromkeys(["dependence_was", "dependence_now", "dependence_error_was", "dependence_error_now"], "float64"),
    **dict.fromkeys(["rank_was", "rank_now", "n_was", "n_now", "missing_was", "missing_now"], "int64"),
}
"""columns of a run's changes.parquet, and their types"""


@dataclass(frozen=True)
class Table:
    """Scores of one output and kind in both runs."""

    output: str
    kind: str
    """features or groups"""
    pairs: pd.DataFrame
    """a row per name, with the columns of :data:`PAIRED`"""
    k: int
    """size of the top"""


@dataclass(frozen=True)
class Comparison:
    """A run and its baseline."""

    now: Explanation
    was: Explanation | None
    """None: there is no baseline"""
    pairs: pd.DataFrame
    """from :func:`all_pairs`"""
    k: int = 8
    """size of the top"""
    false_alarm: float = 0.001
    """probability that noise alone makes any feature or group exceed its error, for each check"""
    series: str | None = None
    """name of the audit with the keys of its window"""

    @property
    def baseline(self) -> Explanation:
        """For checks that only run where there is one."""
        assert self.was is not None
        return self.was

    @property
    def outputs(self) -> list[str]:
        """Outputs of both runs, in the baseline's order."""
        return common_outputs(self.now, self.was)

    @property
    def tables(self) -> Iterator[Table]:
        """Scores by kind and output."""
        for (kind, output), some in self.pairs.groupby(["kind", "output"], sort=False):
            yield Table(str(output), str(kind), some, top_size(self.k, len(some)))


def common_outputs(now: Explanation, was: Explanation | None) -> list[str]:
    """Outputs of both runs, in the baseline's order."""
    known = set(now.outputs["output"])
    return [] if was is None else [name for name in was.outputs["output"] if name in known]


def all_pairs(now: Explanation, was: Explanation | None, false_alarm: float) -> pd.DataFrame:
    """Names that both runs have, for every output and kind, with the ``reach`` that a shift must exceed to count.

    Without a baseline the table is empty. A group with other members is another group, and is not compared.
    """
    import pandas as pd

    outputs = common_outputs(now, was)
    if was is None or not outputs:
        return pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in PAIRED.items()})
    tables = [
        paired(scores_of(now, output, kind), scores_of(was, output, kind)).assign(output=output, kind=kind)
        for kind in KINDS
        for output in outputs
    ]
    found = pd.concat(tables, ignore_index=True)
    found = found[(found["kind"] != "groups") | ~found["name"].isin(list(changed_members(now, was)))]
    comparisons = found.groupby("kind")["name"].transform("size").to_numpy()
    found = found.assign(reach=t_limit(found["degrees"], false_alarm, comparisons) * found["error"])
    return found[list(PAIRED)].astype(PAIRED)  # runs without groups would leave objects


def paired(now: pd.DataFrame, was: pd.DataFrame) -> pd.DataFrame:
    """Names of both runs in the baseline's order, with the error of the difference and its degrees of freedom."""
    pairs = was.merge(now, on="name", suffixes=("_was", "_now"))
    spreads = (pairs[f"{part}_{run}"] for run in ("was", "now") for part in ("error", "degrees"))
    return pairs.assign(
        shift=pairs["cir_now"] - pairs["cir_was"],
        error=np.hypot(pairs["error_was"], pairs["error_now"]),
        degrees=difference_degrees(*spreads),
    )


def members(explanation: Explanation) -> dict[str, list[str]]:
    """Members of each group; they are the same for every output."""
    groups = explanation.groups.drop_duplicates("group")
    return {str(name): list(inside) for name, inside in zip(groups["group"], groups["members"], strict=True)}


def changed_members(now: Explanation, was: Explanation) -> dict[str, tuple[list[str], list[str]]]:
    """Groups of both runs that have other members now: the baseline's members, and those of this run.

    Categories of a column come and go, so the group of a column's own categories counts as the same.
    """
    one, other = members(was), members(now)
    return {
        name: (one[name], other[name])
        for name in one
        if name in other
        and set(one[name]) != set(other[name])
        and not all(member.startswith(f"{name}=") for member in (*one[name], *other[name]))
    }
