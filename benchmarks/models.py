"""What explaining with a model costs, compared with scoring the rows once plus explaining stored outputs.

All contestants run alternately in one process with the same number of threads. The model scores each row once, so an
explanation with it should take about as long as scoring plus an explanation of outputs that are in the lake already.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pyarrow.parquet as pq
import xgboost
from lakes import FOLDER, OUTPUT, lake
from measure import alternate, save

from excir_dask import explain

WANTED = 1.3
"""largest wanted ratio to scoring plus explaining stored outputs"""


def train(file: Path, trees: int, depth: int) -> xgboost.Booster:
    table = pq.read_table(file).slice(0, 200_000).to_pandas()
    data = xgboost.DMatrix(table.drop(columns=OUTPUT), table[OUTPUT])
    return xgboost.train({"max_depth": depth, "seed": 1}, data, trees)


def score(files: list[Path], booster: xgboost.Booster, threads: int) -> int:
    """One file per thread, row group by row group, as one would write it by hand; scores are dropped."""
    booster.set_param({"nthread": 1})
    names = booster.feature_names

    def one(file: Path) -> int:
        rows = 0
        with pq.ParquetFile(file) as source:
            for group in range(source.num_row_groups):
                table = source.read_row_group(group, columns=names, use_threads=False)
                matrix = np.empty((table.num_rows, len(names)), dtype=np.float32)
                for j, name in enumerate(names):
                    matrix[:, j] = table.column(name).to_numpy()
                rows += len(booster.inplace_predict(matrix, predict_type="margin", validate_features=False))
        return rows

    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(one, files))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--depth", type=int, default=6)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    asked = parser.parse_args()
    place = lake("speed", asked.folder, asked.rows)
    files = sorted(place.glob("*.parquet"))
    booster = train(files[0], asked.trees, asked.depth)

    def run(**options: Any) -> Any:
        with dask.config.set(num_workers=asked.threads):
            return explain(place, progress=False, **options)

    timings, _ = alternate(
        {
            "score": lambda: score(files, booster, asked.threads),
            "stored outputs": lambda: run(output=OUTPUT),
            "explain with the model": lambda: run(model=booster),
        },
        asked.repeats,
    )
    for name, timing in timings.items():
        print(f"{name:<24} {timing.median:7.3f} s (min {timing.best:.3f})")
    parts = [timings["score"], timings["stored outputs"]]
    whole = timings["explain with the model"]
    ratio = whole.median / sum(part.median for part in parts), whole.best / sum(part.best for part in parts)
    print(
        f"explain with the model / (score + explain stored outputs): {ratio[0]:.2f} "
        f"({ratio[1]:.2f} of the minima); wanted: {WANTED}"
    )
    figures = {name: {"median": round(t.median, 4), "min": round(t.best, 4)} for name, t in timings.items()}
    settings = {"rows": asked.rows, "threads": asked.threads, "trees": asked.trees, "depth": asked.depth}
    save("models", {**settings, "seconds": figures, "ratio": [round(r, 3) for r in ratio]})


if __name__ == "__main__":
    main()
