"""Rankings of eleven methods on six real sets: agreement with mean |SHAP|, sufficiency of the top features, time."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from evidence.fit import Floats, fit, margins, quality, split
from evidence.methods import METHODS
from evidence.page import table
from evidence.real_sets import REAL_SETS, RealSet
from evidence.scores import scored
from excir_dask.kernels.agreement import kendall, spearman

OURS = {
    "cir, as the paper ranks": lambda found: found["cir"],
    "|2 cir - 1|": lambda found: (2 * found["cir"] - 1).abs(),
    "strength, our default": lambda found: -found["rank"],  # features that chance explains are last
    "dependence": lambda found: found["dependence"],
}
"""orders that one run gives"""
PAPER, SIGNLESS, DEFAULT, DEPENDENCE = OURS
REFERENCE = "mean |SHAP|"
TOPS = (3, 5, 8)
"""8 is the paper's"""
NEAR = 0.02


@dataclass(frozen=True)
class Compared:
    """One set."""

    features: tuple[str, ...]
    rows: int
    """that every method sees: those the model is fitted to"""
    quality: float
    """accuracy or R2 of the held-out rows"""
    scores: Mapping[str, Floats]
    """score per feature of each method"""
    seconds: Mapping[str, float]
    refit: Mapping[int, Mapping[str, float]]
    """k -> method -> accuracy or R2 of the held-out rows of a model fitted to the first k features only"""


def compared(made: RealSet) -> Compared:
    """Every method on the rows that the model is fitted to; refits are measured on the rows held out."""
    frame, y = made
    X, X_out, y_fit, y_out = split(frame, y)
    model = fit(X, y_fit)
    scored(X, margins(model, X))  # compiles
    began = time.process_time()
    found = scored(X, margins(model, X))
    seconds = {DEFAULT: time.process_time() - began}
    scores = {name: order(found).to_numpy(dtype=np.float64) for name, order in OURS.items()}
    for name, method in METHODS.items():
        began = time.process_time()
        scores[name] = method(model, X, y_fit)
        seconds[name] = time.process_time() - began
    known: dict[tuple[int, ...], float] = {}

    def refit(values: Floats, k: int) -> float:
        top = tuple(sorted(np.argsort(-values, kind="stable")[:k]))
        if top not in known:
            known[top] = quality(fit(X.iloc[:, list(top)], y_fit), X_out.iloc[:, list(top)], y_out)
        return known[top]

    return Compared(
        features=tuple(frame.columns),
        rows=len(X),
        quality=quality(model, X_out, y_out),
        scores=scores,
        seconds=seconds,
        refit={k: {name: refit(values, k) for name, values in scores.items()} for k in TOPS},
    )


@cache
def all_sets() -> dict[str, Compared]:
    """The six sets of the page; about two minutes."""
    return {name: compared(make()) for name, make in REAL_SETS.items()}


def correlations(found: Mapping[str, Compared], method: str) -> list[tuple[float, float]]:
    """(Spearman, Kendall) of a method with mean |SHAP|, set by set."""
    pairs = [(one.scores[method], one.scores[REFERENCE]) for one in found.values()]
    return [(spearman(*pair), kendall(*pair)) for pair in pairs]


def near(found: Mapping[str, Compared], method: str, k: int) -> int:
    """Sets on which the first k features of a method are as good as those of SHAP, or less than 0.02 worse."""
    return sum(one.refit[k][method] >= one.refit[k][REFERENCE] - NEAR for one in found.values())


def summary(found: Mapping[str, Compared]) -> str:
    """The first paragraph of the page."""
    order = {name: np.mean(correlations(found, name), axis=0)[0] for name in found[next(iter(found))].scores}
    refit = {name: np.mean([one.refit[8][name] for one in found.values()]) for name in order}
    better = sorted((name for name in METHODS if name != REFERENCE and order[name] > order[DEFAULT]), key=order.get)
    ahead = f"all {len(better)}" if len(better) == len(METHODS) - 1 else f"{len(better)} of the {len(METHODS) - 1}"
    return (
        f"**CIR is not a measure of importance.** On {len(found)} real sets its order by strength agrees with mean "
        f"\\|SHAP\\| by {order[DEFAULT]:.2f} (Spearman; {order[PAPER]:.2f} if ranked by CIR itself, as the paper "
        f"does), and {ahead} other methods tried agree better ({better[0]} {order[better[0]]:.2f} to {better[-1]} "
        f"{order[better[-1]]:.2f}). Models that are fitted to its first 8 features reach {refit[DEFAULT]:.3f} on "
        f"average, those of mean \\|SHAP\\| {refit[REFERENCE]:.3f}. The column `dependence`, which comes from the same "
        f"pass, agrees by {order[DEPENDENCE]:.2f} and reaches {refit[DEPENDENCE]:.3f}. CIR says something else, "
        "and says it well: in which direction a feature goes with the output, and how purely."
    )


def section(found: Mapping[str, Compared]) -> str:
    """Agreement and sufficiency."""
    others = [name for name in METHODS if name != REFERENCE]
    rows = []
    for method in (*OURS, *others):
        pairs = correlations(found, method)
        means = np.mean(pairs, axis=0)
        cells = [*(f"{pair[0]:.2f}" for pair in pairs), f"**{means[0]:.2f}**", f"{means[1]:.2f}"]
        rows.append([_escaped(method), *cells])
    sizes = [f"{name}, {len(one.features)} features" for name, one in found.items()]
    parts = ["Spearman correlation with mean \\|SHAP\\|, and the mean of Kendall's tau:", ""]
    parts += [table(["method", *sizes, "mean", "mean tau"], rows), ""]
    rows = []
    for method in (*OURS, *METHODS):
        refits = [one.refit[8][method] for one in found.values()]
        counts = [f"{near(found, method, k)} of {len(found)}" for k in TOPS]
        cells = [*(f"{value:.3f}" for value in refits), f"**{np.mean(refits):.3f}**", *counts]
        rows.append([_escaped(method), *cells])
    whole = [one.quality for one in found.values()]
    rows.append(["*all features*", *(f"{value:.3f}" for value in [*whole, np.mean(whole)]), *[""] * len(TOPS)])
    parts += [
        "Accuracy (adult, compas) or R2 of the 30% held out, of a model that is fitted to the first 8 features only;",
        f"and on how many sets the first k are at most {NEAR} worse than those of mean \\|SHAP\\|:",
        "",
    ]
    titles = ["method", *(f"{name}, 8 of {len(one.features)}" for name, one in found.items()), "mean"]
    return "\n".join([*parts, table([*titles, *(f"near, k = {k}" for k in TOPS)], rows)])


def times(found: Mapping[str, Compared]) -> str:
    """Processor seconds per method; they depend on the machine."""
    rows = [
        ["all of ours, at once" if method in OURS else _escaped(method), *_seconds(found, method)]
        for method in (DEFAULT, *METHODS)
    ]
    return table(["processor seconds", *(f"{name}, {one.rows:,} rows" for name, one in found.items())], rows)


def _seconds(found: Mapping[str, Compared], method: str) -> list[str]:
    return [f"{one.seconds[method]:.2f}" for one in found.values()]


def _escaped(name: str) -> str:
    """A name in a cell of a table."""
    return name.replace("|", "\\|")
