"""Lakes of awkward shapes: 10,000 columns, 3,000 files; on threads and on a cluster of two processes.

It measures seconds and tasks, and fails if dask warns about a large graph.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask
from lakes import FOLDER, OUTPUT, lake
from measure import save

from excir_dask import explain
from excir_dask.graph.run import ClusterRunner, LocalRunner


@contextmanager
def counted() -> Iterator[list[int]]:
    """Count the tasks of every graph that runs inside."""
    found: list[int] = []
    originals = {kind: kind.run for kind in (LocalRunner, ClusterRunner)}

    def counting(kind: Any) -> Any:
        def run(self: Any, graph: Mapping[Any, Any], keys: Sequence[Any], *rest: Any) -> list[Any]:
            found.append(len(graph))
            return originals[kind](self, graph, keys, *rest)

        return run

    for kind in originals:
        kind.run = counting(kind)  # type: ignore[method-assign]
    try:
        yield found
    finally:
        for kind, original in originals.items():
            kind.run = original  # type: ignore[method-assign]


def timed(folder: Path, scheduler: Any = None) -> dict[str, Any]:
    """One explanation: seconds, slices, tasks of each scan, and warnings about large graphs (there must be none)."""
    with warnings.catch_warnings(record=True) as said, counted() as tasks:
        warnings.simplefilter("always")
        began = time.perf_counter()
        explanation = explain(str(folder), output=OUTPUT, scheduler=scheduler, progress=False)
        seconds = time.perf_counter() - began
    large = [str(warning.message) for warning in said if "large graph" in str(warning.message).lower()]
    if large:
        raise SystemExit(f"{folder.name}: {large[0]}")
    return {
        "seconds": round(seconds, 2),
        "features": len(explanation.features),
        "slices": explanation.provenance.slices,
        "tasks": tasks,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    given = parser.parse_args()
    from distributed import Client, LocalCluster

    lakes = {name: lake(name, given.folder) for name in ("wide", "many")}
    runs: dict[str, dict[str, list[dict[str, Any]]]] = {name: {"threads": [], "processes": []} for name in lakes}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        for round_ in range(given.repeats + 1):
            for name, folder in lakes.items():
                with dask.config.set(scheduler="threads", num_workers=given.threads):
                    runs[name]["threads"].append(timed(folder))
                runs[name]["processes"].append(timed(folder, client))
                for where, each in runs[name].items():
                    print(
                        f"  {'warm-up' if not round_ else f'round {round_}'}: {name}, {where}: {each[-1]}", flush=True
                    )
        client.close()

    figures = []
    for name, places in runs.items():
        for where, (cold, *each) in places.items():
            seconds = sorted(run["seconds"] for run in each) or [cold["seconds"]]
            row = {**cold, "lake": name, "where": where, "seconds": seconds[len(seconds) // 2]}
            figures.append({**row, "seconds_best": seconds[0], "seconds_first": cold["seconds"]})
            print(f"{name:6}{where:12}{row['seconds']:8.2f} s{row['slices']:6} slices, tasks {row['tasks']}")
    save("shapes", {"repeats": given.repeats, "figures": figures})


if __name__ == "__main__":
    main()
