"""Agreement of two explanations: of a sample with the whole, of this month with the last, of two models."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from excir_dask.agreement.pairs import common, feature_pairs, have, paired, regrouped, without
from excir_dask.agreement.settings import differences
from excir_dask.errors import UsageError
from excir_dask.kernels import agreement as measures
from excir_dask.kernels.scores import group_ranking
from excir_dask.results.agreement import Agreement
from excir_dask.results.explanation import Explanation

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = [
    "output", "kind", "k", "n", "jaccard", "jaccard_chance", "spearman", "kendall", "procrustes", "affine", "kl",
    "ndcg", "score_shift", "score_shift_name", "rank_shift", "rank_shift_name",
]  # fmt: skip


def compare(a: Explanation | str | os.PathLike[str], b: Explanation | str | os.PathLike[str], k: int = 8) -> Agreement:
    """How far two explanations agree, in order, in shape and in scores.

    Parameters
    ----------
    a, b : Explanation or path
        Explanations, or the folders they were saved in. Where it matters, ``a`` is the reference.
    k : int
        Size of the top for Jaccard and nDCG. If there are no more than ``k`` features, it is half of them.

    Returns
    -------
    Agreement

    Examples
    --------
    >>> import pandas as pd
    >>> from excir_dask import compare, explain
    >>> frame = pd.DataFrame({"u": [1.0, 2, 3, 4], "v": [4.0, 1, 3, 2], "w": [4.0, 3, 2, 1], "y": [1.0, 2, 3, 4]})
    >>> found = compare(explain(frame, output="y"), explain(frame.head(3), output="y"))
    >>> found.table[["kind", "k", "n", "jaccard", "score_shift_name"]]
           kind  k  n  jaccard score_shift_name
    0  features  1  3      1.0                v
    """
    import pandas as pd

    if not isinstance(k, int | np.integer) or k < 1:
        raise UsageError(f"k is {k!r}; give the number of features in the top, an integer of at least 1")
    one, other = _loaded(a, "a"), _loaded(b, "b")
    outputs = common(one, other, "outputs")
    common(one, other, "features")
    rows, pairs = [], []
    for output in outputs:
        features = paired(one, other, output, "feature")
        rows.append({"output": output, "kind": "features", **_measure(one, other, features, k)})
        pairs.append(feature_pairs(output, features))
        groups = paired(one, other, output, "group")
        if len(groups):
            rows.append({"output": output, "kind": "groups", **_measure(one, other, groups, k)})
    kinds = ("outputs", "features", "groups")
    return Agreement(
        names=(_name(a, "a"), _name(b, "b")),
        k=int(k),
        table=pd.DataFrame(rows)[COLUMNS],
        features=pd.concat(pairs, ignore_index=True),
        only_in_a={kind: without(have(one, kind), have(other, kind)) for kind in kinds},
        only_in_b={kind: without(have(other, kind), have(one, kind)) for kind in kinds},
        regrouped=regrouped(one, other),
        settings=differences(one, other, outputs),
    )


def _loaded(given: Explanation | str | os.PathLike[str], which: str) -> Explanation:
    if isinstance(given, Explanation):
        return given
    if isinstance(given, str | os.PathLike):
        return Explanation.load(given)
    raise UsageError(f"{which} is a {type(given).__name__}; give an Explanation or the folder it was saved in")


def _name(given: Explanation | str | os.PathLike[str], otherwise: str) -> str:
    return otherwise if isinstance(given, Explanation) else os.fspath(given)


def _measure(a: Explanation, b: Explanation, pairs: pd.DataFrame, k: int) -> dict[str, Any]:
    """Measures of one output and kind."""
    cir_a, cir_b = pairs["cir_a"].to_numpy(dtype=np.float64), pairs["cir_b"].to_numpy(dtype=np.float64)
    rank_a, rank_b = pairs["rank_a"].to_numpy(), pairs["rank_b"].to_numpy()
    by_a, by_b = (
        each.facts.settings.rank_by if "dependence_a" in pairs else group_ranking(each.facts.settings.rank_by)
        for each in (a, b)
    )
    ranked_a, ranked_b = (pairs[name].to_numpy(dtype=np.float64) for name in (f"{by_a}_a", f"{by_b}_b"))
    size = measures.top_size(k, len(pairs))
    score_shift, score_at = measures.largest(cir_a, cir_b, rank_a)
    rank_shift, rank_at = measures.largest(rank_a, rank_b, rank_a)
    return {
        "k": size,
        "n": len(pairs),
        "jaccard": measures.jaccard(rank_a, rank_b, size),
        "jaccard_chance": measures.jaccard_chance(len(pairs), size),
        "spearman": measures.spearman(ranked_a, ranked_b),
        "kendall": measures.kendall(ranked_a, ranked_b),
        "procrustes": measures.procrustes(cir_a, cir_b),
        "affine": measures.affine(cir_a, cir_b),
        "kl": measures.symmetric_kl(cir_a, cir_b),
        "ndcg": measures.ndcg(ranked_a, rank_b, size),
        "score_shift": score_shift,
        "score_shift_name": "" if score_at is None else pairs["name"][score_at],
        "rank_shift": int(rank_shift),
        "rank_shift_name": "" if rank_at is None else pairs["name"][rank_at],
    }
