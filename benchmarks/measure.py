"""Timing contestants alternately in one process: on a shared machine only the ratios within a run mean anything."""

from __future__ import annotations

import gc
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import excir_dask

RESULTS = Path(__file__).parent / "results"

PACKAGES = ("dask", "distributed", "pyarrow", "numpy", "numba", "crick", "duckdb", "polars")


@dataclass
class Timing:
    """Seconds of one contestant, per round."""

    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    """seconds of all threads: what counts on a machine that others keep busy"""

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def best(self) -> float:
        return min(self.seconds)

    def over(self, other: Timing) -> tuple[float, float]:
        """How many times as long as another one: by the medians and by the minima."""
        return self.median / other.median, self.best / other.best

    def cpu_over(self, other: Timing) -> float:
        """How many times as much processor time, by the minima."""
        return min(self.cpu) / min(other.cpu)


def alternate(
    contestants: Mapping[str, Callable[[], Any]], repeats: int, warm_up: bool = True, say: bool = True
) -> tuple[dict[str, Timing], dict[str, Any]]:
    """Run every contestant once per round; return their timings, and what each returned last.

    The first round warms the page cache, compiles and imports. It is not counted.
    """
    timings = {name: Timing() for name in contestants}
    values: dict[str, Any] = {}
    for round_ in range(-1 if warm_up else 0, repeats):
        for name, contestant in contestants.items():
            gc.collect()
            began, cpu = time.perf_counter(), time.process_time()
            values[name] = contestant()
            took, worked = time.perf_counter() - began, time.process_time() - cpu
            if round_ >= 0:
                timings[name].seconds.append(took)
                timings[name].cpu.append(worked)
            if say:
                print(f"  {'warm-up' if round_ < 0 else f'round {round_ + 1}'}: {name} {took:.3f} s", flush=True)
    return timings, values


def conditions() -> dict[str, Any]:
    """What a figure depends on: date, version, machine and packages. Nothing here names the machine."""
    return {
        "date": date.today().isoformat(),
        "version": excir_dask.__version__,
        "commit": _commit(),
        "machine": {
            "cores": os.cpu_count(),
            "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
            "python": platform.python_version(),
        },
        "packages": {name: version(name) for name in PACKAGES if importlib.util.find_spec(name) is not None},
    }


def _commit() -> str | None:
    """The commit that was measured, or None outside a checkout."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    try:
        found = subprocess.run(command, cwd=RESULTS.parent, capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return found.stdout.strip() or None


def save(name: str, results: Mapping[str, Any]) -> Path:
    """Append a benchmark's figures, with the conditions they hold for, to those of earlier runs."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.jsonl"
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({**conditions(), **results}) + "\n")
    print(f"appended to benchmarks/results/{path.name}")
    return path
