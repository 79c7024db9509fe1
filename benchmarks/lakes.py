"""The lakes that the benchmarks read: the same values everywhere, written once and kept for later runs.

Benchmarks write the lakes they need. ``python benchmarks/lakes.py speed many`` writes those two beforehand.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

FOLDER = Path(__file__).parent / "data"
"""where lakes are kept unless --folder says otherwise; git ignores it"""

OUTPUT = "pred"

REGION = "region"

Tables = Iterator[tuple[pa.Table, int]]
"""for each file: its table and how many rows make a row group"""


def column(rng: np.random.Generator, j: int, rows: int) -> NDArray[np.float64]:
    """Values of column ``j``: of ten neighbours four are normal, two lognormal, two bimodal, two integer-valued."""
    kind = j % 10
    if kind < 4:
        return rng.normal(j, 1 + kind, rows)
    if kind < 6:
        return rng.lognormal(0.0, 0.5 + (kind == 5), rows)
    if kind < 8:
        return rng.normal(0.0, 1.0, rows) + np.where(rng.random(rows) < 0.3, 6.0, -2.0)
    if kind == 8:
        return rng.poisson(20, rows).astype(np.float64)
    return rng.integers(0, 100_000, rows).astype(np.float64)


def table(seed: int, part: int, rows: int, columns: int) -> pa.Table:
    """One part of a lake: ``columns`` features that an output follows more or less."""
    rng = np.random.default_rng([seed, part])
    arrays = [column(rng, j, rows) for j in range(columns)]
    output = rng.normal(0.0, 1.0, rows)
    for j in range(0, columns, max(columns // 10, 1)):
        x = arrays[j]
        output += (1.0 if j % 2 == 0 else -0.5) * (x - x.mean()) / x.std()
    return pa.table({**{f"x{j:05d}": x for j, x in enumerate(arrays)}, OUTPUT: output})


def _speed(rows: int) -> Tables:
    files = 8
    for part in range(files):
        size = rows * (part + 1) // files - rows * part // files
        yield table(1, part, size, 50), 2**20  # pyarrow's own row groups


def _segments(rows: int) -> Tables:
    names = np.array([f"region {i:02d}" for i in range(50)], dtype=object)
    for part, (content, group) in enumerate(_speed(rows)):
        codes = np.random.default_rng([5, part]).integers(0, names.size, content.num_rows)
        yield content.append_column(REGION, pa.array(names[codes], pa.string())), group


def _groups(rows: int) -> Tables:
    for content, _ in _speed(rows):
        yield content, 2**17


def _wide(rows: int) -> Tables:
    yield table(2, 0, rows, 10_000), 2**20


def _many(rows: int) -> Tables:
    for part in range(rows // 1_000):
        yield table(3, part, 1_000, 20), 2**20


def _large_groups(rows: int) -> Tables:
    each = 2_000_000  # x 20 columns of 8 bytes: 320 MB
    for part in range(rows // each):
        yield table(4, part, each, 19), each


LAKES: dict[str, tuple[Callable[[int], Tables], int]] = {
    "speed": (_speed, 4_000_000),
    "segments": (_segments, 4_000_000),
    "groups": (_groups, 4_000_000),
    "wide": (_wide, 20_000),
    "many": (_many, 3_000_000),
    "large-groups": (_large_groups, 16_000_000),
}
"""name -> generator and default number of rows

``speed``: 50 columns in 8 files; ``segments``: the same with a column of 50 values, mixed at random; ``groups``: the
same in smaller row groups, four per file; ``wide``: 10,000 columns in one file; ``many``: 20 columns in files of 1,000
rows; ``large-groups``: 20 columns in files that are single row groups of 320 MB.
"""


def lake(name: str, folder: Path = FOLDER, rows: int | None = None) -> Path:
    """Folder of a lake; writes the lake if it does not exist yet."""
    generate, default = LAKES[name]
    rows = rows or default
    place = folder / f"{name}-{rows}"
    if place.exists():
        return place
    unfinished = folder / f"{name}-{rows}.unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    for part, (content, group) in enumerate(generate(rows)):
        pq.write_table(content, unfinished / f"part-{part:05d}.parquet", row_group_size=group)
    unfinished.rename(place)
    return place


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*LAKES, []], default=list(LAKES))
    parser.add_argument("--folder", type=Path, default=FOLDER)
    given = parser.parse_args()
    for name in given.names:
        place = lake(name, given.folder)
        sizes = [file.stat().st_size for file in place.iterdir()]
        print(json.dumps({"lake": name, "files": len(sizes), "bytes": sum(sizes)}))


if __name__ == "__main__":
    main()
