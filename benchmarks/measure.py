"""Timing things alternately in one process: on a shared machine only the ratios of such a run mean anything."""

from __future__ import annotations

import gc
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"

VERSIONS = ("excir-dask", "dask", "distributed", "pyarrow", "numpy", "numba", "crick", "duckdb", "polars")


@dataclass
class Timing:
    """Seconds of every repeat of one contestant."""

    seconds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def best(self) -> float:
        return min(self.seconds)

    def over(self, other: Timing) -> tuple[float, float]:
        """How many times as long as another one: by the medians and by the minima."""
        return self.median / other.median, self.best / other.best


def alternate(
    contestants: Mapping[str, Callable[[], Any]], repeats: int, warm_up: bool = True, say: bool = True
) -> tuple[dict[str, Timing], dict[str, Any]]:
    """Run every contestant once a round; their timings, and what each returned last.

    The first round warms the page cache, compiles, imports, and is not counted.
    """
    timings = {name: Timing() for name in contestants}
    values: dict[str, Any] = {}
    for round_ in range(-1 if warm_up else 0, repeats):
        for name, contestant in contestants.items():
            gc.collect()
            began = time.perf_counter()
            values[name] = contestant()
            took = time.perf_counter() - began
            if round_ >= 0:
                timings[name].seconds.append(took)
            if say:
                print(f"  {'warm-up' if round_ < 0 else f'round {round_ + 1}'}: {name} {took:.3f} s", flush=True)
    return timings, values


def conditions() -> dict[str, Any]:
    """What a figure depends on and may be told: versions and processors, nothing that names the machine."""
    found: dict[str, str] = {"python": platform.python_version()}
    for name in VERSIONS:
        try:
            found[name] = version(name)
        except ModuleNotFoundError:  # the package may run from its folder, without being installed
            continue
    return {"date": date.today().isoformat(), "cpus": os.cpu_count(), "versions": found}


def save(name: str, results: Mapping[str, Any]) -> Path:
    """Write a benchmark's figures beside those of the others."""
    RESULTS.mkdir(exist_ok=True)
    place = RESULTS / f"{name}.json"
    place.write_text(json.dumps({**conditions(), **results}, indent=2) + "\n")
    return place
