"""Lakes of other kinds, each compared with the bare scan of the same files by columns; and how the time grows.

Kinds: float32, whole numbers, few distinct values (dictionaries), zstd, a fifth missing, 10 outputs, 1,000 files.
Growth: eight times the rows, 1,000 groups, 20 outputs. Both take turns in one process, with the same number of threads.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from lakes import FOLDER, OUTPUT, lake, table
from measure import alternate, save
from speed import scan_columns

from excir_dask import Explanation, explain

COLUMNS = 20
GROUPS = 1_000


@dataclass(frozen=True)
class Kind:
    """How a lake differs from the plain one."""

    column: Callable[[pa.ChunkedArray, int], pa.ChunkedArray] = lambda values, _: values
    """from a column and its number"""
    files: int = 4
    outputs: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)
    """of the writer"""


def _whole(values: pa.ChunkedArray, _: int) -> pa.ChunkedArray:
    return pc.round(pc.multiply(values, 1000.0)).cast(pa.int64())


def _few(values: pa.ChunkedArray, _: int) -> pa.ChunkedArray:
    """At most 200 distinct values, as a file's dictionary holds them."""
    x = values.to_numpy()
    steps = np.quantile(x[:10_000], np.linspace(0.0, 1.0, 200))
    return pa.chunked_array([steps[np.searchsorted(steps[1:-1], x)]])


def _missing(values: pa.ChunkedArray, number: int) -> pa.ChunkedArray:
    rng = np.random.default_rng([5, number])
    return pa.chunked_array([pa.array(values.to_numpy(), mask=rng.random(len(values)) < 0.2)])


KINDS = {
    "float64": Kind(),
    "float32": Kind(lambda values, _: values.cast(pa.float32())),
    "integers": Kind(_whole),
    "dictionary": Kind(_few),
    "zstd": Kind(options={"compression": "zstd"}),
    "20% missing": Kind(_missing),
    "10 outputs": Kind(outputs=10),
    "1,000 files": Kind(files=1_000),
    "20 outputs": Kind(outputs=20),
}


def written(name: str, folder: Path, rows: int) -> Path:
    """Folder of a lake of some kind; writes the lake if it does not exist yet."""
    kind = KINDS[name]
    place = folder / f"kind-{name.replace(' ', '-')}-{rows}"
    if place.exists():
        return place
    unfinished = place.with_suffix(".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    for part in range(kind.files):
        size = rows * (part + 1) // kind.files - rows * part // kind.files
        content = table(6, part, size, COLUMNS)
        names = [each for each in content.column_names if each != OUTPUT]
        columns = {each: kind.column(content.column(each), j) for j, each in enumerate(names)}
        noise = np.random.default_rng([7, part]).normal(size=(kind.outputs, size))
        outputs = content.column(OUTPUT).to_numpy() + noise
        columns |= {each: pa.chunked_array([y]) for each, y in zip(output_names(name), outputs, strict=True)}
        pq.write_table(pa.table(columns), unfinished / f"part-{part:05d}.parquet", **kind.options)
    unfinished.rename(place)
    return place


def output_names(name: str) -> list[str]:
    return [OUTPUT, *(f"{OUTPUT}{k}" for k in range(1, KINDS[name].outputs))]


def explained(folder: Path, outputs: list[str], threads: int, **options: Any) -> Explanation:
    with dask.config.set(scheduler="threads", num_workers=threads):
        return explain(str(folder), output=outputs if len(outputs) > 1 else outputs[0], progress=False, **options)


def compared(name: str, folder: Path, given: argparse.Namespace) -> dict[str, float]:
    """Times the bare scan, by medians and by minima, and the bytes that were read over those of the columns."""
    files = sorted(folder.glob("*.parquet"))
    timings, values = alternate(
        {
            "scan": lambda: scan_columns(files, given.threads),
            "ours": lambda: explained(folder, output_names(name), given.threads),
        },
        given.repeats,
        say=False,
    )
    median, best = timings["ours"].over(timings["scan"])
    stored = sum(
        group.column(i).total_compressed_size
        for metadata in map(pq.read_metadata, files)
        for group in map(metadata.row_group, range(metadata.num_row_groups))
        for i in range(group.num_columns)
    )
    read = values["ours"].provenance.bytes_read
    return {
        "times scan": median,
        "times scan, best": best,
        "times scan, cpu": timings["ours"].cpu_over(timings["scan"]),
        "seconds_best": timings["ours"].best,
        "bytes": read / stored,
    }


def grown(one: Callable[[], Any], more: Callable[[], Any], repeats: int) -> dict[str, float]:
    timings, _ = alternate({"one": one, "more": more}, repeats, say=False)
    median, best = timings["more"].over(timings["one"])
    return {"times": median, "times, best": best, "times, cpu": timings["more"].cpu_over(timings["one"])}


def growth(given: argparse.Namespace) -> dict[str, Callable[[], dict[str, float]]]:
    threads, repeats = given.threads, given.repeats
    small, large = (lake("speed", given.folder, rows) for rows in (given.rows // 2, given.rows * 4))
    several = written("20 outputs", given.folder, given.rows)
    names = [f"x{j:05d}" for j in range(50)]
    rng = np.random.default_rng(8)
    groups = {f"group {g}": rng.choice(names, 5, replace=False).tolist() for g in range(GROUPS)}
    return {
        "rows x 8": lambda: grown(
            lambda: explained(small, [OUTPUT], threads), lambda: explained(large, [OUTPUT], threads), repeats
        ),
        "1,000 groups": lambda: grown(
            lambda: explained(large, [OUTPUT], threads),
            lambda: explained(large, [OUTPUT], threads, groups=groups),
            repeats,
        ),
        "20 outputs": lambda: grown(
            lambda: explained(several, [OUTPUT], threads, features=names[:COLUMNS]),
            lambda: explained(several, output_names("20 outputs"), threads, features=names[:COLUMNS]),
            repeats,
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help=f"of {COLUMNS} columns")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    given = parser.parse_args()
    pa.set_cpu_count(given.threads)
    kinds, grows = {}, {}
    for name in KINDS:
        row = compared(name, written(name, given.folder, given.rows), given)
        kinds[name] = {key: round(value, 3) for key, value in row.items()}
        ratios = f"{row['times scan']:8.2f} ({row['times scan, best']:.2f}), CPU {row['times scan, cpu']:.2f}"
        print(f"{name:14}{ratios} x scan, {row['bytes']:.2f} x bytes", flush=True)
    for name, run in growth(given).items():
        row = run()
        grows[name] = {key: round(value, 3) for key, value in row.items()}
        ratios = f"{row['times']:8.2f} ({row['times, best']:.2f}), CPU {row['times, cpu']:.2f}"
        print(f"{name:14}{ratios} times as long", flush=True)
    save("kinds", {"rows": given.rows, "repeats": given.repeats, "kinds": kinds, "growth": grows})


if __name__ == "__main__":
    main()
