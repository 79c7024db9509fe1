"""Arguments of a sweep, checked before any work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from excir_dask.errors import UsageError

SET_BY_SWEEP = ("fraction", "seed")
"""options of explain and train that a sweep sets itself"""
MOST_SEEDS = 1000
"""samples per fraction; a mistyped number must not start millions of runs"""


def check_arguments(k: int, target: float, retrain: Mapping[str, Any] | None, options: Mapping[str, Any]) -> None:
    """Refuse arguments that contradict each other or make no sense."""
    if k < 1:
        raise UsageError(f"k is {k}; the top of a ranking has at least 1 feature")
    if not 0.0 < target <= 1.0:
        raise UsageError(f"target_jaccard is {target}; it must be above 0 and at most 1")
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


def all_fractions(fractions: Sequence[float]) -> list[float]:
    """The fractions in order, with 1.0, which the others are compared with."""
    found = sorted({float(fraction) for fraction in fractions} | {1.0})
    for fraction in found:
        if not 0.0 < fraction <= 1.0:
            raise UsageError(f"a fraction is {fraction}; each must be above 0 and at most 1")
    if len(found) < 2:
        raise UsageError("fractions has nothing below 1.0 to compare with all rows; give for instance [0.2, 0.5]")
    return found


def all_seeds(seeds: int | Sequence[int]) -> list[int]:
    """The seeds, from a list or their number."""
    if isinstance(seeds, int) and seeds > MOST_SEEDS:
        raise UsageError(f"seeds is {seeds}, a run for each of them; give at most {MOST_SEEDS:,}")
    found = list(range(seeds)) if isinstance(seeds, int) else list(dict.fromkeys(seeds))
    if not found:
        raise UsageError(f"seeds is {seeds}; give a list with at least one, or a number of at least 1")
    return found
