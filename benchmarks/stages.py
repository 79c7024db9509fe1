"""Where the time of a run goes: its stages, timed alternately, in nanoseconds per value and thread.

Wall time is what a user waits. CPU time and page faults tell work apart from waiting and from new memory.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from lakes import FOLDER, OUTPUT, lake
from measure import save
from speed import scan_columns

from excir_dask.graph.pass_scan import PassRequest, References, pass_slice
from excir_dask.graph.pilot_scan import pilot_slice, reference_of
from excir_dask.graph.states import SliceState
from excir_dask.kernels.brackets import make_reference
from excir_dask.kernels.reference import concatenate_references
from excir_dask.lake.blocks import Layout
from excir_dask.lake.locate import locate
from excir_dask.lake.plan import Slice, make_plan
from excir_dask.lake.read import read_slice
from excir_dask.lake.sample import Sample
from excir_dask.lake.schema import describe_columns
from excir_dask.lake.select import select
from excir_dask.lake.snapshot import take_snapshot


def stages(folder: Path, budget: int) -> tuple[dict[str, Callable[[Slice], Any]], list[Slice]]:
    """The work of each stage on a slice, and the slices."""
    snapshot = take_snapshot(locate(str(folder), None))
    selection = select(describe_columns(snapshot), (OUTPUT,), None, None)
    plan = make_plan(snapshot, selection, budget)
    layout = Layout(snapshot.location.filesystem, selection.features, (OUTPUT,), None, Sample())
    slices = list(plan.slices())
    references, request = _references(plan.blocks, layout), PassRequest(False, False, 0, 0)

    def read(piece: Slice) -> None:
        for block in read_slice(piece, layout):
            for _ in block.columns:
                pass

    def first_look(piece: Slice) -> None:
        """Touch every value once: the least that any method does."""
        for block in read_slice(piece, layout):
            for x in block.columns:
                x.min()

    def in_order(piece: Slice) -> None:
        for block in read_slice(piece, layout):
            for x in block.columns:
                np.sort(x.astype(np.float32))

    found: dict[str, Callable[[Slice], Any]] = {
        "read": read,
        "read, min": first_look,
        "read, float32 sort": in_order,
        "pilot": lambda piece: pilot_slice(piece, None, None, layout, None),
        "pass": lambda piece: pass_slice(piece, None, None, layout, references, None, (), request),
    }
    return found, slices


def _references(blocks: tuple[tuple[tuple[Slice, ...], ...], ...], layout: Layout) -> References:
    """What the first span says, good enough to time with."""
    states: list[SliceState[Any, Any]] = [
        pilot_slice(piece, None, None, layout, None) for spans in blocks for piece in spans[0]
    ]
    (span,) = [state.span for state in states if state.span is not None]
    features = concatenate_references([reference_of(state.columns, "midhinge", False) for state in states])
    return References(features, reference_of(span.outputs, "midhinge", False), make_reference([], [], "midhinge", True))


def measured(job: Callable[[], Any]) -> dict[str, float]:
    before, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    job()
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
    system = after.ru_stime - before.ru_stime
    return {
        "wall": wall,
        "cpu": after.ru_utime - before.ru_utime + system,
        "system": system,
        "faults": after.ru_minflt - before.ru_minflt,
    }


def over_slices(do: Callable[[Slice], Any], slices: list[Slice], threads: int) -> None:
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(do, slices))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--budget", type=int, default=128, help="MiB of a slice")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    given = parser.parse_args()
    folder = lake("speed", given.folder, given.rows)
    files = sorted(folder.glob("*.parquet"))
    found, slices = stages(folder, given.budget * 2**20)
    values = sum(piece.rows * (piece.stop - piece.start + piece.lead) for piece in slices)
    jobs: dict[tuple[str, int], Callable[[], Any]] = {}
    for threads in given.threads:
        jobs["scan by columns", threads] = lambda threads=threads: scan_columns(files, threads)
        for name, do in found.items():
            jobs[name, threads] = lambda do=do, threads=threads: over_slices(do, slices, threads)
    runs: dict[tuple[str, int], list[dict[str, float]]] = {key: [] for key in jobs}
    for round_ in range(given.repeats + 1):
        for key, job in jobs.items():
            run = measured(job)
            if round_:  # the first warms up
                runs[key].append(run)

    print(f"{len(slices)} slices, {values / 1e6:.0f} million values, {os.cpu_count()} processors")
    heads = "".join(f"{head:>8}" for head in ("threads", "wall", "(min)", "cpu", "(min)", "system"))
    print(f"{'ns/value/thread':22}{heads}{'faults':>9}")
    figures = []
    for (name, threads), each in runs.items():
        middle = {key: statistics.median(run[key] for run in each) for key in each[0]}
        best = {key: min(run[key] for run in each) for key in each[0]}
        row = {
            "stage": name,
            "threads": threads,
            "wall": middle["wall"] * threads / values * 1e9,
            "wall_best": best["wall"] * threads / values * 1e9,
            "cpu": middle["cpu"] / values * 1e9,
            "cpu_best": best["cpu"] / values * 1e9,
            "system": middle["system"] / values * 1e9,
            "faults": middle["faults"],
        }
        numbers = "".join(f"{row[key]:8.2f}" for key in ("wall", "wall_best", "cpu", "cpu_best", "system"))
        print(f"{name:22}{threads:8}{numbers}{row['faults']:9.0f}")
        figures.append({key: round(value, 2) if isinstance(value, float) else value for key, value in row.items()})
    save("stages", {"rows": given.rows, "slices": len(slices), "repeats": given.repeats, "ns_per_value": figures})


if __name__ == "__main__":
    main()
