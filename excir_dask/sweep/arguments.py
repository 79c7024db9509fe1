"""Arguments of a sweep, checked before any work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from excir_dask.errors import UsageError
from excir_dask.pipeline.option_kinds import Share
from excir_dask.pipeline.options import check_option

SET_BY_SWEEP = ("fraction", "seed")
"""options of explain and train that a sweep sets itself"""
MOST_SEEDS = 1000
"""samples per fraction; a mistyped number must not start millions of runs"""


def check_arguments(
    k: int, target: float, residual: float | None, retrain: Mapping[str, Any] | None, options: Mapping[str, Any]
) -> None:
    """Refuse arguments that contradict each other or make no sense."""
    check_option("k", k)
    check_option("target_jaccard", target)
    if residual is not None:
        Share().check("target_residual", residual)
    for name in SET_BY_SWEEP:
        if name in options or name in (retrain or {}):
            raise UsageError(f"{name} is set by the sweep itself; give {name}s=[...] instead")
    if retrain is None:
        return
    if not retrain.get("label"):
        raise UsageError("retrain needs the column to learn: retrain={'label': ...} (--label)")
    for name in ("output", "model"):
        if options.get(name) is not None:
            raise UsageError(f"{name} is given, but retrain trains the model to explain; leave out one of them")
    if options.get("where") is not None:
        raise UsageError("where is given, but retrain trains on all rows; leave out one of them")


def all_fractions(fractions: Sequence[float]) -> list[float]:
    """The fractions in order, with 1.0, which the others are compared with."""
    if isinstance(fractions, str):
        raise UsageError(f"fractions is '{fractions}'; give a list of numbers, such as [0.2, 0.5]")
    for fraction in fractions:
        Share().check("a fraction", fraction)
    found = sorted({float(fraction) for fraction in fractions} | {1.0})
    if len(found) < 2:
        raise UsageError("fractions has nothing below 1.0 to compare with all rows; give for instance [0.2, 0.5]")
    return found


def all_seeds(seeds: int | Sequence[int]) -> list[int]:
    """The seeds, from a list or their number."""
    if isinstance(seeds, int) and seeds > MOST_SEEDS:
        raise UsageError(f"seeds is {seeds}, a run for each of them; give at most {MOST_SEEDS:,}")
    if isinstance(seeds, str | float | bool):
        raise UsageError(f"seeds is {seeds!r}; give a whole number, or a list of them")
    found = list(range(seeds)) if isinstance(seeds, int) else list(dict.fromkeys(seeds))
    for seed in found:
        check_option("seed", seed)
    if not found:
        raise UsageError(f"seeds is {seeds}; give a list with at least one, or a number of at least 1")
    return found
