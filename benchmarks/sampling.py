"""What a sample saves: all rows, a fifth of the rows drawn one by one, a fifth drawn as whole row groups, and "auto".

All contestants run alternately in one process with the same number of threads. Bytes are those of the column chunks
that were read.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import dask
from lakes import FOLDER, OUTPUT, lake
from measure import alternate, save

from excir_dask import explain


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, help="default 4 million")
    parser.add_argument("--fraction", type=float, default=0.2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    asked = parser.parse_args()
    place = lake("groups", asked.folder, asked.rows)

    def run(fraction: float | str, sampling: str | None) -> Any:
        with dask.config.set(num_workers=asked.threads):
            return explain(place, output=OUTPUT, fraction=fraction, sampling=sampling, progress=False)

    contestants = {
        "all rows": lambda: run(1.0, "rows"),
        "rows": lambda: run(asked.fraction, "rows"),
        "row-groups": lambda: run(asked.fraction, "row-groups"),
        "auto": lambda: run("auto", None),
    }
    timings, values = alternate(contestants, asked.repeats)
    figures = {}
    full = values["all rows"]
    for name, timing in timings.items():
        share = values[name].provenance.bytes_read / full.provenance.bytes_read
        times = timing.over(timings["all rows"])
        ratios = f"{times[0]:.2f} ({times[1]:.2f}) of the time, {share:.2f} of the bytes"
        taken = values[name].facts.settings.fraction
        print(f"{name:<12} {timing.median:6.3f} s  {ratios}, {taken:.2f} of the rows")
        figures[name] = {
            "seconds": timing.median,
            "times": times[0],
            "times_best": times[1],
            "bytes": share,
            "rows": taken,
        }
    save("sampling", {"fraction": asked.fraction, "threads": asked.threads, "figures": figures})


if __name__ == "__main__":
    main()
