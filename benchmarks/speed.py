"""How long an explanation takes, compared with only reading the same columns, with DuckDB and with Polars.

All contestants run alternately in one process with the same number of threads, so a busy machine slows all of them
down equally. All must agree on the scores.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from lakes import FOLDER, OUTPUT, lake
from measure import Timing, alternate, save
from numpy.typing import NDArray

Floats = NDArray[np.float64]

OURS = "excir_dask"
TOLERANCE = 1e-3
"""allowed distance of a score from the one with exact quantiles"""


def scan_tables(files: list[Path], threads: int) -> None:
    """Bare scan 1: whole files one after the other, columns decoded by pyarrow's own pool."""
    for file in files:
        pq.read_table(file, use_threads=threads > 1)


def scan_row_groups(files: list[Path], threads: int) -> None:
    """Bare scan 2: one file per thread, row group by row group."""

    def read(file: Path) -> None:
        with pq.ParquetFile(file) as source:
            for group in range(source.num_row_groups):
                source.read_row_group(group, use_threads=False)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(read, files))


def scan_columns(files: list[Path], threads: int) -> None:
    """Bare scan 3: one file per thread, column by column through a small buffer: the fastest way we know."""

    def read(file: Path) -> None:
        with pq.ParquetFile(file, pre_buffer=False, buffer_size=2**20) as source:
            groups = list(range(source.num_row_groups))
            for name in source.schema_arrow.names:
                source.read_row_groups(groups, columns=[name], use_threads=False)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(read, files))


def excir_scores(folder: Path, threads: int) -> Floats:
    import dask

    from excir_dask import explain

    with dask.config.set(scheduler="threads", num_workers=threads):
        found = explain(str(folder), output=OUTPUT, progress=False).features
    return found.set_index("feature")["cir"].sort_index().to_numpy()


def duckdb_scores(folder: Path, names: list[str], threads: int) -> Floats:
    """Exact quartiles in one query, the sums in another."""
    import duckdb

    source = f"read_parquet('{folder}/*.parquet')"
    with duckdb.connect() as connection:
        connection.execute(f"set threads = {threads}")
        quartiles = ", ".join(f'quantile_cont("{name}", [0.25, 0.75])' for name in [*names, OUTPUT])
        row = connection.execute(f"select {quartiles} from {source}").fetchone()
        assert row is not None
        *centers, output = [(low + high) / 2 for low, high in row]
        moves = [f'("{name}" - {c!r}) * ("{OUTPUT}" - {output!r})' for name, c in zip(names, centers, strict=True)]
        sums = ", ".join(f"sum({p}), sum(abs({p}))" for p in moves)
        found = np.array(connection.execute(f"select {sums} from {source}").fetchone())
    return (1 + found[0::2] / found[1::2]) / 2


def polars_scores(folder: Path, names: list[str]) -> Floats:
    """The same in two lazy queries; the number of threads was fixed when polars was imported."""
    import polars as pl

    frame = pl.scan_parquet(f"{folder}/*.parquet")
    every = [*names, OUTPUT]
    quartiles = [
        pl.col(name).quantile(level, "linear").alias(f"{name} {level}") for name in every for level in (0.25, 0.75)
    ]
    row = np.array(frame.select(quartiles).collect().row(0))
    *centers, output = ((row[0::2] + row[1::2]) / 2).tolist()
    sums = []
    for name, center in zip(names, centers, strict=True):
        p = (pl.col(name) - center) * (pl.col(OUTPUT) - output)
        sums += [p.sum().alias(f"{name} n"), p.abs().sum().alias(f"{name} d")]
    found = np.array(frame.select(sums).collect().row(0))
    return (1 + found[0::2] / found[1::2]) / 2


def numpy_scores(folder: Path, names: list[str]) -> Floats:
    """The plain way, with everything in memory."""
    content = pq.read_table(folder)

    def centred(name: str) -> Floats:
        x = content.column(name).to_numpy()
        return x - np.quantile(x, [0.25, 0.75]).mean()

    output = centred(OUTPUT)
    found = []
    for name in names:
        p = centred(name) * output
        found.append((1 + p.sum() / np.abs(p).sum()) / 2)
    return np.array(found)


def contestants(folder: Path, threads: int, with_numpy: bool) -> dict[str, Callable[[], Any]]:
    files = sorted(folder.glob("*.parquet"))
    names = [name for name in pq.read_schema(files[0]).names if name != OUTPUT]
    found: dict[str, Callable[[], Any]] = {
        "scan by tables": lambda: scan_tables(files, threads),
        "scan by row groups": lambda: scan_row_groups(files, threads),
        "scan by columns": lambda: scan_columns(files, threads),
        OURS: lambda: excir_scores(folder, threads),
        "duckdb": lambda: duckdb_scores(folder, names, threads),
        "polars": lambda: polars_scores(folder, names),
    }
    if with_numpy:
        found["numpy"] = lambda: numpy_scores(folder, names)
    return found


def check(values: dict[str, Any]) -> float:
    """Largest distance between our scores and the exact ones; the exact ones must agree with each other far better."""
    exact = values["duckdb"]
    for name in ("polars", "numpy"):
        if name in values and not np.allclose(values[name], exact, rtol=0, atol=1e-9):
            raise SystemExit(f"{name} and duckdb disagree by {np.abs(values[name] - exact).max():.2g}")
    distance = float(np.abs(values[OURS] - exact).max())
    if distance > TOLERANCE:
        raise SystemExit(f"scores are {distance:.2g} from the exact ones")
    return distance


def summary(timings: dict[str, Timing]) -> dict[str, dict[str, float]]:
    """Figures of every contestant: seconds, times each bare scan and times ours (by medians, and by minima)."""
    scans = [name for name in timings if name.startswith("scan")]
    found = {}
    for name, timing in timings.items():
        row = {"seconds": timing.median, "seconds_best": timing.best}
        for other in [*scans, OURS]:
            row[f"times {other}"], row[f"times {other}, best"] = timing.over(timings[other])
            row[f"times {other}, cpu"] = timing.cpu_over(timings[other])
        found[name] = {key: round(value, 3) for key, value in row.items()}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, help="default 4 million")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--numpy", action="store_true", help="also numpy with everything in memory")
    given = parser.parse_args()
    os.environ["POLARS_MAX_THREADS"] = str(given.threads)
    pa.set_cpu_count(given.threads)
    folder = lake("speed", given.folder, given.rows)
    timings, values = alternate(contestants(folder, given.threads, given.numpy), given.repeats)
    distance = check(values)
    figures = summary(timings)

    shown = ["scan by tables", "scan by row groups", "scan by columns", OURS]
    print(f"\n{'':20}{'median s':>10}{'min s':>8}" + "".join(f"{f'x {name}':>24}" for name in shown))
    for name, row in figures.items():
        ratios = "".join(f"{row[f'times {o}']:>17.2f} ({row[f'times {o}, best']:.2f})" for o in shown)
        print(f"{name:20}{row['seconds']:>10.3f}{row['seconds_best']:>8.3f}{ratios}")
    print(f"scores are within {distance:.1e} of exact ones")
    rows = sum(pq.read_metadata(file).num_rows for file in folder.glob("*.parquet"))
    save(
        "speed",
        {
            "rows": rows,
            "columns": 51,
            "threads": given.threads,
            "repeats": given.repeats,
            "largest_distance_from_exact": distance,
            "figures": figures,
        },
    )


if __name__ == "__main__":
    main()
