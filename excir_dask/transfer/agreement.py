"""Stand-in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Agreement:
    table: Any


def compare(a: Any, b: Any, k: int = 8) -> Agreement:
    import pandas as pd
    from scipy import stats

    rows = []
    for output in a.outputs["output"]:
        for kind, name in (("features", "feature"), ("groups", "group")):
            x, y = (getattr(e, kind)[getattr(e, kind)["output"] == output].set_index(name) for e in (a, b))
            if not len(x):
                continue
            n = len(x)
            used = k if n > k else max(1, n // 2)
            top = [set(t.index[t["rank"] <= used]) for t in (x, y)]
            y = y.loc[x.index]
            pmf = stats.hypergeom(n, used, used)
            chance = sum(pmf.pmf(i) * i / (2 * used - i) for i in range(used + 1))
            shift = (x["cir"] - y["cir"]).abs()
            rshift = (x["rank"] - y["rank"]).abs()
            rows.append(
                {
                    "output": output,
                    "kind": kind,
                    "k": used,
                    "n": n,
                    "jaccard": len(top[0] & top[1]) / len(top[0] | top[1]),
                    "jaccard_chance": chance,
                    "spearman": stats.spearmanr(x["rank"], y["rank"])[0] if n > 1 else np.nan,
                    "kendall": stats.kendalltau(x["rank"], y["rank"])[0] if n > 1 else np.nan,
                    "procrustes": float(shift.mean()),
                    "affine": float(shift.mean()),
                    "kl": float(shift.mean()),
                    "ndcg": 1.0,
                    "score_shift": float(shift.max()),
                    "score_shift_name": shift.idxmax(),
                    "rank_shift": int(rshift.max()),
                    "rank_shift_name": rshift.idxmax(),
                }
            )
    return Agreement(pd.DataFrame(rows))
