"""How much longer a run takes with segments than without: random ones, so that every slice has rows of all of them."""

from __future__ import annotations

import argparse
from pathlib import Path

import dask
from lakes import FOLDER, OUTPUT, REGION, lake
from measure import alternate, save

from excir_dask import Explanation, explain


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    asked = parser.parse_args()
    place = lake("segments", asked.folder, asked.rows)

    def run(by: str | None) -> Explanation:
        with dask.config.set(scheduler="threads", num_workers=asked.threads):
            return explain(place, output=OUTPUT, features=["x*"], by=by, progress=False)

    times, found = alternate({"without": lambda: run(None), "with segments": lambda: run(REGION)}, asked.repeats)
    if not found["without"].features.equals(found["with segments"].features):
        raise SystemExit("the scores of all rows depend on segments")
    median, best = times["with segments"].over(times["without"])
    cpu = times["with segments"].cpu_over(times["without"])
    by = found["with segments"]
    print(
        f"{len(by.by.names)} segments take {median:.2f} ({best:.2f}) times as long, {cpu:.2f} times the processor time"
    )
    print(f"largest center_bound of a segment: {by.segments['center_bound'].max():.4f}")
    ratio = {"median": round(median, 3), "best": round(best, 3), "cpu": round(cpu, 3)}
    seconds = {name: round(timing.best, 3) for name, timing in times.items()}
    size = {"rows": by.facts.rows.used, "threads": asked.threads, "segments": len(by.by.names)}
    save("segments", {**size, "seconds": seconds, "ratio": ratio})


if __name__ == "__main__":
    main()
