"""One pass over columns in memory, from the rows of a pilot to scores, and what plain numpy makes of all rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from excir_dask.graph.closer import OUTPUT_CELLS
from excir_dask.kernels.atoms import find_atoms
from excir_dask.kernels.brackets import CELLS, make_reference
from excir_dask.kernels.centers import CENTERINGS
from excir_dask.kernels.observe import observe, observe_outputs, output_side
from excir_dask.kernels.recenter import Sums, recentre
from excir_dask.kernels.reference import Reference
from excir_dask.kernels.scores import Scores, score
from excir_dask.kernels.settle import ColumnStats, settle
from excir_dask.kernels.state import ColumnState, State, merge_columns, merge_state
from excir_dask.kernels.summaries import summarise


def refer(
    columns: Sequence[np.ndarray],
    centering: str = "midhinge",
    complete: bool = True,
    weights: np.ndarray | None = None,
    cells: int = CELLS,
) -> Reference:
    """A reference from a pilot's rows."""
    atoms = [find_atoms(x).values for x in columns]
    return make_reference([summarise(x, weights) for x in columns], atoms, centering, complete, cells=cells)


def watch(
    columns: Sequence[np.ndarray],
    outputs: np.ndarray,
    references: tuple[Reference, Reference],
    weights: np.ndarray | None = None,
    edges: np.ndarray | None = None,
    totals: bool = False,
    joint: bool = False,
) -> tuple[State, ColumnState]:
    """States of one block of rows."""
    side = output_side(outputs, references[1], weights, edges, joint, totals)
    return observe(columns, side, references[0]), observe_outputs(side)


@dataclass(frozen=True)
class Passed:
    """What a pass found out about columns and one output."""

    references: tuple[Reference, Reference]
    state: State
    output_state: ColumnState
    features: ColumnStats
    outputs: ColumnStats
    sums: Sums
    scores: Scores


def settled(references: tuple[Reference, Reference], state: State, outputs: ColumnState, centering: str) -> Passed:
    features, output_stats = settle(state.columns, references[0], centering), settle(outputs, references[1], centering)
    sums = recentre(state, outputs, references, (features.center, output_stats.center))
    return Passed(
        references, state, outputs, features, output_stats, sums, score(sums, features, output_stats, units=1)
    )


def passed(
    columns: Sequence[np.ndarray],
    y: np.ndarray,
    centering: str = "midhinge",
    weights: np.ndarray | None = None,
    pilot: int | None = None,
    blocks: Sequence[np.ndarray] | int = 1,
) -> Passed:
    """A pass over blocks of rows, seen from what the first ``pilot`` rows say, all by default."""
    rows = slice(pilot)
    known = pilot is None or pilot >= y.size
    some = None if weights is None else weights[rows]
    references = (
        refer([x[rows] for x in columns], centering, known, some),
        refer([y[rows]], centering, known, some, OUTPUT_CELLS),
    )
    cut = np.array_split(np.arange(y.size), blocks) if isinstance(blocks, int) else blocks
    found = [
        watch(
            [x[part] for x in columns],
            y[None, part],
            references,
            None if weights is None else weights[part],
            totals=CENTERINGS[centering].needs_totals,
        )
        for part in cut
    ]
    state, outputs = merge_state([one for one, _ in found]), merge_columns([other for _, other in found])
    return settled(references, state, outputs, centering)


def weighted_quantiles(x: np.ndarray, weights: np.ndarray, levels: Sequence[float]) -> np.ndarray:
    """Linear quantiles: the mean over the ranks r to r + 1 with r = level (total - 1).

    Whole weights are repeated rows; others are scaled so that a row counts as one on average.
    """
    if np.all(weights == np.rint(weights)):
        return np.quantile(np.repeat(x, weights.astype(np.int64)), levels)
    order = np.argsort(x, kind="stable")
    middle = np.median(x)
    values, masses = x[order] - middle, weights[order] * (x.size / weights.sum())
    ends, totals = (np.append(0.0, np.cumsum(each)) for each in (masses, masses * values))
    first = np.asarray(levels) * (ends[-1] - 1.0)
    last = np.minimum(first + 1.0, ends[-1])
    found = middle + (np.interp(last, ends, totals) - np.interp(first, ends, totals)) / (last - first)
    # ranks inside the mass of one value have just that value, whatever sums round to
    low, high = (x[order][np.searchsorted(ends[1:], rank, side).clip(0, x.size - 1)] for rank, side in
                 ((first, "right"), (last, "left")))  # fmt: skip
    return np.where(low == high, low, found)


def exact_center(x: np.ndarray, centering: str, weights: np.ndarray | None = None) -> float:
    w = np.ones(x.size) if weights is None else weights
    q25, q50, q75 = weighted_quantiles(x, w, [0.25, 0.5, 0.75])
    middle = q25 + (q75 - q25) / 2
    if centering == "trimmed":
        inside = (x >= q25) & (x <= q75)
        return float(middle + np.average(x[inside] - middle, weights=w[inside]) if inside.any() else middle)
    mean = q50 + np.average(x - q50, weights=w)
    return float({"midhinge": middle, "median": q50, "mean": mean}[centering])


def exact_cir(
    x: np.ndarray,
    y: np.ndarray,
    centering: str = "midhinge",
    weights: np.ndarray | None = None,
    centers: tuple[float, float] | None = None,
) -> float:
    """CIR of one feature; every row has an output. ``centers`` are the exact ones, if they are known already."""
    there = np.isfinite(x)
    w = np.ones(y.size) if weights is None else weights
    x, masses = x[there], w[there]
    if not x.size or np.ptp(x) == 0 or np.ptp(y) == 0:
        return 0.5
    mx, my = centers or (exact_center(x, centering, masses), exact_center(y, centering, w))
    p = masses * (x - mx) * (y[there] - my)
    moves = np.abs(p).sum()
    return float((1 + p.sum() / moves) / 2) if moves else 0.5


def awkward_columns(rng: np.random.Generator, z: np.ndarray) -> dict[str, np.ndarray]:
    """Columns of the kinds that lakes have; ``z`` is what moves some of them together."""
    n = z.size

    def some(share: float) -> np.ndarray:
        return rng.random(n) < share

    columns = {
        "normal": rng.normal(size=n) + 0.3 * z,
        "lognormal": rng.lognormal(size=n) * np.exp(0.2 * z),
        "heavy": rng.lognormal(0, 3, size=n),
        "cauchy": rng.standard_cauchy(n),
        "bimodal": rng.normal(size=n) + np.where(some(0.3), 6, -2) + z,
        "poisson": rng.poisson(20, n) + z.round(),
        "whole numbers": rng.integers(0, 3000, n),
        "60% zeros": np.where(some(0.6), 0, rng.exponential(size=n)),
        "25% zeros": np.where(some(0.25), 0, rng.exponential(size=n) + z**2),
        "far from zero": 1e9 + z + rng.normal(size=n),
        "flag": some(0.25),
        "rare flag": some(0.001),
        "gap at a quartile": np.where(some(0.25), 0.0, 100.0) + rng.random(n),
        "constant": np.full(n, 0.1),
        "tiny": rng.normal(size=n) * 1e-160,
        "rounded": np.round(rng.normal(size=n), 2),
        "90% missing": np.where(some(0.9), np.nan, z + rng.normal(size=n)),
        "infinite": np.where(some(0.1), np.inf, np.where(some(0.1), -np.inf, z)),
        "prices": np.where(some(0.6), 0, np.round(rng.lognormal(3, 1, n), 2)),
    }
    return {name: np.asarray(x, dtype=np.float64) for name, x in columns.items()}


def awkward_outputs(rng: np.random.Generator, z: np.ndarray) -> dict[str, np.ndarray]:
    return {
        "linear": 2 * z + rng.normal(size=z.size),
        "leaves": np.round(z, 1),
        "skewed": np.exp(z),
        "binary": np.asarray(z > 0.7, dtype=np.float64),
    }
