"""The summary of a sweep: a row per fraction with its cost and its agreement with all rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from excir_dask.sweep.pareto import front, knee, smallest

if TYPE_CHECKING:
    import pandas as pd

HIGH = ("jaccard", "spearman", "kendall", "ndcg")
"""measures of agreement whose best value is 1"""
LOW = ("procrustes", "affine", "kl", "score_shift", "rank_shift")
"""measures whose best value is 0"""


def summarise(runs: pd.DataFrame) -> pd.DataFrame:
    """A row per kind (features, groups) and fraction.

    Costs are medians over the seeds. For measures of agreement each seed counts by its worst output; ``<measure>_mean``
    is the mean over seeds, ``<measure>_worst`` the worst seed.
    """
    import pandas as pd

    full = runs[runs["fraction"] == 1.0].drop_duplicates("seed")["seconds"].median()
    rows = []
    for (kind, fraction), table in runs.groupby(["kind", "fraction"], sort=True):
        single = table.drop_duplicates("seed")
        row = {
            "kind": kind,
            "fraction": fraction,
            "runs": len(single),
            "rows": round(single["rows"].median()),
            "bytes": round(single["bytes"].median()) if single["bytes"].notna().all() else None,
            "seconds": single["seconds"].median(),
            "speedup": full / single["seconds"].median(),
            "train_seconds": single["train_seconds"].median() if single["train_seconds"].notna().all() else None,
            "k": table["k"].iloc[0],
            "n": table["n"].iloc[0],
            "jaccard_chance": table["jaccard_chance"].iloc[0],
        }
        by_seed = table.groupby("seed")
        for name in HIGH:
            worst = by_seed[name].min()
            row |= {f"{name}_mean": worst.mean(), f"{name}_worst": worst.min()}
        for name in LOW:
            worst = by_seed[name].max()
            row |= {f"{name}_mean": worst.mean(), f"{name}_worst": worst.max()}
        rows.append(row)
    return pd.DataFrame(rows).astype({"bytes": "Int64", "train_seconds": "float64"})


def of_kind(summary: pd.DataFrame, kind: str = "features") -> pd.DataFrame:
    """The rows of features or of groups, the smallest fraction first."""
    return summary[summary["kind"] == kind].sort_values("fraction", ignore_index=True)


def front_of(summary: pd.DataFrame, metric: str = "jaccard") -> tuple[tuple[float, ...], float | None]:
    """Fractions on the Pareto front of seconds and the mean of a measure, and the one at its knee."""
    table = of_kind(summary)
    cost = table["seconds"].tolist()
    gain = (table[f"{metric}_mean"] * (-1 if metric in LOW else 1)).tolist()
    fractions = table["fraction"].tolist()
    bend = knee(cost, gain)
    return tuple(fractions[place] for place in front(cost, gain)), None if bend is None else fractions[bend]


def meets(table: pd.DataFrame, target: float, residual: float | None = None) -> pd.Series[bool]:
    """Which rows of a summary meet the targets with every seed and output."""
    enough: pd.Series[bool] = table["jaccard_worst"] >= target
    return enough if residual is None else enough & (table["procrustes_worst"] <= residual)


def choose(summary: pd.DataFrame, target: float, residual: float | None = None) -> float | None:
    """The smallest fraction below 1 whose worst Jaccard index, over seeds and outputs, meets the target.

    With ``residual``, its worst Procrustes residual must not be larger.
    """
    table = of_kind(summary)
    table = table[meets(table, target, residual)]
    return smallest(dict(zip(table["fraction"], table["jaccard_worst"], strict=True)), target)
