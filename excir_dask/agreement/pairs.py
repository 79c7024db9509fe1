"""Two explanations side by side: a row per feature or group that both have."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from excir_dask.common.wording import listed
from excir_dask.errors import UsageError
from excir_dask.kernels.agreement import DIGITS, dense_ranks
from excir_dask.results.explanation import Explanation
from excir_dask.results.tables import careful_errors

if TYPE_CHECKING:
    import pandas as pd


def have(explanation: Explanation, kind: str) -> list[str]:
    """Names of all outputs, features or groups, in the order of their tables."""
    table: pd.DataFrame = getattr(explanation, kind)
    return list(dict.fromkeys(table[kind.removesuffix("s")]))


def without(names: Iterable[str], others: Iterable[str]) -> list[str]:
    """The names that are not among the others."""
    known = set(others)
    return [name for name in names if name not in known]


def common(a: Explanation, b: Explanation, kind: str) -> list[str]:
    """Names that both have; an error if there are none."""
    in_a, in_b = have(a, kind), have(b, kind)
    known = set(in_b)
    both = [name for name in in_a if name in known]
    if not both:
        raise UsageError(
            f"the explanations have no {kind.removesuffix('s')} in common: {listed(in_a)} in a, {listed(in_b)} in b; "
            "explain both with the same names" + (" (output={'name': 'column'})" if kind == "outputs" else "")
        )
    return both


def paired(a: Explanation, b: Explanation, output: str, kind: str) -> pd.DataFrame:
    """A row per feature or group that both have, in A's order, with ranks among these."""
    tables = []
    for explanation in (a, b):
        table = explanation.features if kind == "feature" else explanation.groups
        columns = [kind, "cir", "strength", "rank", *(["stderr", "dependence"] if kind == "feature" else [])]
        table = table[table["output"] == output]
        tables.append((table.assign(stderr=careful_errors(table)) if kind == "feature" else table)[columns])
    pairs = tables[0].merge(tables[1], on=kind, suffixes=("_a", "_b")).rename(columns={kind: "name"})
    for side in ("rank_a", "rank_b"):
        pairs[side] = dense_ranks(pairs[side].to_numpy(dtype=np.int64))
    return pairs.sort_values("rank_a", ignore_index=True)


def feature_pairs(output: str, pairs: pd.DataFrame) -> pd.DataFrame:
    """Scores of each feature in A and B, their difference, and whether it is beyond their errors."""
    import pandas as pd

    shift = pairs["cir_b"] - pairs["cir_a"]
    stderr = np.hypot(pairs["stderr_a"], pairs["stderr_b"])
    return pd.DataFrame(
        {
            "output": output,
            "feature": pairs["name"],
            "cir_a": pairs["cir_a"],
            "cir_b": pairs["cir_b"],
            "shift": shift,
            "stderr": stderr,
            "beyond": shift.abs().round(DIGITS) > 2.0 * stderr,
            "rank_a": pairs["rank_a"],
            "rank_b": pairs["rank_b"],
        }
    )


def regrouped(a: Explanation, b: Explanation) -> list[str]:
    """Groups of the same name whose members differ in A and B."""
    members = {group: set(inside) for group, inside in zip(a.groups["group"], a.groups["members"], strict=True)}
    pairs = dict(zip(b.groups["group"], b.groups["members"], strict=True))
    return [group for group, inside in pairs.items() if members.get(group, set(inside)) != set(inside)]
