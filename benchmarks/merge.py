"""Merging saved results: seconds per day, and whether memory grows with the number of days.

Days have 1,000 features and 20,000 rows. They are explained once, from the reference of the first, and kept.
"""

from __future__ import annotations

import argparse
import resource
import shutil
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields, is_dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from lakes import FOLDER, OUTPUT, table
from measure import alternate, save

from excir_dask import Explanation, explain, merge


def results(folder: Path, days: int, rows: int, features: int) -> list[Path]:
    """Saved explanations of so many days, those that are missing made first."""
    folder = folder / f"days-{rows}-{features}"
    found = [folder / f"{day:03d}" for day in range(days)]
    for day, out in enumerate(found):
        if not out.exists():
            reference = None if day == 0 else found[0]
            frame = table(5, day, rows, features).to_pandas()
            explain(frame, output=OUTPUT, reference=reference, progress=False).save(out, report=False)
            print(f"  explained day {day + 1} of {days}", flush=True)
    return found


def size_in_memory(state: Any) -> int:
    """Bytes of all arrays of a state."""
    if isinstance(state, np.ndarray):
        return state.nbytes
    return sum(size_in_memory(getattr(state, field.name)) for field in fields(state)) if is_dataclass(state) else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--days", type=int, default=100)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--features", type=int, default=1_000)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    given = parser.parse_args()
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:  # so that peaks are those of merging
        saved = pool.submit(results, given.folder, given.days, given.rows, given.features).result()
    some, disk = size_in_memory(Explanation.load(saved[-1]).state), (saved[-1] / "state.bin").stat().st_size
    print(f"a state takes {disk / 1e6:.1f} MB on disk, {some / 1e6:.1f} MB in memory")
    merge(saved[:2])  # imports and compiles
    figures = []
    for days in sorted({min(10, given.days), min(30, given.days), given.days}):  # peaks only grow: few days first
        timings, values = alternate({"merge": partial(merge, saved[:days])}, given.repeats, warm_up=False)
        taken = timings["merge"]
        row = {"days": days, "seconds": round(taken.median, 3), "seconds_best": round(taken.best, 3)}
        row["cpu_per_day"] = round(min(taken.cpu) / days, 4)
        row["peak_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)
        figures.append(row)
        print(row, flush=True)
    again = merge(saved[::-1])
    if again.to_json() != values["merge"].to_json():
        raise SystemExit("merging in another order gave another result")
    out = given.folder / "merged"
    shutil.rmtree(out, ignore_errors=True)
    timings, _ = alternate({"save": partial(again.save, out, overwrite=True, report=False)}, 1, warm_up=False)
    shutil.rmtree(out)
    save(
        "merge",
        {
            "repeats": given.repeats,
            "rows": given.rows,
            "features": given.features,
            "state_mb": {"disk": round(disk / 1e6, 1), "memory": round(some / 1e6, 1)},
            "save_seconds": round(timings["save"].best, 3),
            "figures": figures,
        },
    )


if __name__ == "__main__":
    main()
