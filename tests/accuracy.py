"""Compare scores of awkward lakes with numpy's on all rows.

``python -m tests.accuracy --lakes 4000`` tries random lakes. They are tiny, so pilots and slices are made small too: a
pilot reads a part of each, and the pass many slices. Each lake has a number, by which ``--lakes 1 --seed NUMBER``
repeats it with all of its scores. ``python -m tests.accuracy --kinds 10`` tries ten seeds of every named kind with all
centrings: in ``--rows`` rows with pilots as they are, in 12,000 rows with small ones, and in 1,500 rows.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from unittest import mock

import dask
import numpy as np
import pandas as pd
import pyarrow.parquet as pq

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from awkward_lakes import KINDS, ORDERS, AwkwardLake, kind_of_lake, random_lake  # noqa: E402
from one_pass import exact_cir  # noqa: E402

from excir_dask import explain  # noqa: E402
from excir_dask.graph import closer  # noqa: E402
from excir_dask.kernels.centers import CENTERINGS  # noqa: E402
from excir_dask.lake import pilot, plan  # noqa: E402

EXACT = 1e-5
"""no score of the named kinds of lakes is further from the exact one"""

ERROR = 1e-4
"""no score of a random lake is"""

BOUND = 1e-3
"""the largest bound of a score"""

ROUNDING = 1e-12
"""of the figures themselves, and the largest error in small tables"""

FAR, FAR_ROUNDING = "1e9 and noise", 1e-7
"""a kind of lakes whose figures themselves have 7 digits behind the point"""


@contextmanager
def small_pilots(rows: int = 1000, few_values: int = closer.FEW_VALUES) -> Iterator[None]:
    """Pilots that leave most of a tiny lake unread; ``few_values`` of 0 has it looked at as large lakes are."""
    with mock.patch.multiple(pilot, SMALL=rows, ROWS=rows), mock.patch.object(closer, "FEW_VALUES", few_values):
        yield


def column_bytes(lake: Path) -> int:
    """Compressed bytes of all columns."""
    footers = [pq.read_metadata(path) for path in lake.iterdir()]
    groups = [footer.row_group(i) for footer in footers for i in range(footer.num_row_groups)]
    return sum(group.column(i).total_compressed_size for group in groups for i in range(group.num_columns))


@dataclass(frozen=True)
class Accuracy:
    """Of the scores of a lake."""

    table: pd.DataFrame
    """a row per output and feature: ``exact``, ``error`` and ``center_bound``"""
    reading: float
    """bytes read, in bytes of the columns"""

    @property
    def error(self) -> float:
        return float(self.table["error"].max())

    @property
    def bound(self) -> float:
        return float(self.table["center_bound"].max())

    @property
    def beyond(self) -> int:
        """Scores further from the exact one than their bound."""
        return int((self.table["error"] > self.table["center_bound"] + ROUNDING).sum())


def accuracy(lake: AwkwardLake, folder: Path, centering: str = "midhinge", budget: str = "1MiB") -> Accuracy:
    """Scores of a lake beside those of numpy; call it in ``small_pilots``."""
    path = lake.write(folder)
    found = explain(path, output=list(lake.outputs), weights=lake.weights, centering=centering, budget=budget)
    table = found.features[["output", "feature", "cir", "center_bound"]].copy()
    weights = None if lake.weights is None else lake.values(lake.weights)
    # scores do not depend on an origin; numpy's quantiles are exact to more digits near zero
    anchored = {name: _anchored(lake.values(name)) for name in [*lake.features, *lake.outputs]}
    table["exact"] = [
        exact_cir(anchored[row.feature], anchored[row.output], centering, weights) for row in table.itertuples()
    ]
    table["error"] = (table["cir"] - table["exact"]).abs()
    return Accuracy(table, found.provenance.bytes_read / column_bytes(path))


def _anchored(x: np.ndarray) -> np.ndarray:
    finite = x[np.isfinite(x)]
    return x - np.sort(finite)[finite.size // 2] if finite.size else x


def try_lake(seed: int, folder: Path) -> Accuracy:
    """The lake of a number."""
    rng = np.random.default_rng([seed, 1])
    centering = str(rng.choice(list(CENTERINGS)))
    rows, budget = int(rng.choice([500, 1000, 2000, 4000])), str(rng.choice(["1MiB", "64MiB"]))
    few_values = closer.FEW_VALUES if rng.random() < 0.5 else 0
    with small_pilots(rows, few_values), dask.config.set(scheduler="synchronous"):
        return accuracy(random_lake(seed), folder, centering, budget)


def try_kinds(seeds: range, folder: Path, rows: int) -> Iterator[tuple[str, float, Accuracy]]:
    """All kinds, centrings and seeds: a name, the largest error that is allowed, and what was found."""
    for seed, kind, centering in product(seeds, KINDS, CENTERINGS):
        name, far = f"{kind}, {centering}, seed {seed}", kind == FAR
        large = kind_of_lake(kind, seed, rows=rows).laid_out(12, max(rows // 60, 1), ORDERS.get(kind))
        yield f"large: {name}", EXACT, accuracy(large, folder / f"large-{seed}-{kind}-{centering}", centering)
        with small_pilots(), mock.patch.object(plan, "MIN_BUDGET", 2**16):
            lake = kind_of_lake(kind, seed)
            found = accuracy(lake, folder / f"lake-{seed}-{kind}-{centering}", centering, "100KiB")
        yield f"lake: {name}", EXACT, found
        small = kind_of_lake(kind, seed, rows=1500)
        found = accuracy(small, folder / f"small-{seed}-{kind}-{centering}", centering)
        label = "small table far from zero" if far else "small table"
        yield f"{label}: {name}", FAR_ROUNDING if far else ROUNDING, found


def try_lakes(seeds: range, folder: Path) -> Iterator[tuple[str, float, Accuracy]]:
    """Random lakes, the same way."""
    for seed in seeds:
        yield f"lake {seed}", ERROR, try_lake(seed, folder / str(seed))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lakes", type=int, default=4000, help="how many random lakes")
    parser.add_argument("--kinds", type=int, default=0, help="how many seeds of every kind, in place of random lakes")
    parser.add_argument("--rows", type=int, default=150_000, help="of large lakes of the named kinds")
    parser.add_argument("--seed", type=int, default=0, help="number of the first")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    began, found, failed = time.monotonic(), {}, 0
    with tempfile.TemporaryDirectory() as folder, dask.config.set(scheduler="synchronous"):
        seeds = range(given.seed, given.seed + (given.kinds or given.lakes))
        tried = try_kinds(seeds, Path(folder), given.rows) if given.kinds else try_lakes(seeds, Path(folder))
        for name, limit, one in tried:
            found[name] = one
            for path in Path(folder).iterdir():
                shutil.rmtree(path)
            if one.beyond or one.error > limit or one.bound > BOUND:
                failed += 1
                print(f"{name}: error {one.error:.2g}, bound {one.bound:.2g}, {one.beyond} beyond theirs", flush=True)
    if len(found) == 1:
        print(one.table.to_string())
    print(f"{sum(len(one.table) for one in found.values())} scores, {time.monotonic() - began:.0f} s")
    for part in dict.fromkeys(name.split(":")[0] if given.kinds else "lake" for name in found):
        _summarise(part, {name: one for name, one in found.items() if name.split(":")[0] == part or not given.kinds})
    sys.exit(failed > 0)


def _summarise(part: str, found: Mapping[str, Accuracy]) -> None:
    errors, bounds = ([getattr(one, name) for one in found.values()] for name in ("error", "bound"))
    worst = max(found, key=lambda name: found[name].error), max(found, key=lambda name: found[name].bound)
    print(f"{part}: {len(found)} of them, {sum(one.beyond for one in found.values())} scores beyond their bounds")
    print(f"  worst error {max(errors):.2g} ({worst[0]}), {sum(error > EXACT for error in errors)} above {EXACT}")
    print(f"  worst bound {max(bounds):.2g} ({worst[1]}), {sum(bound > BOUND for bound in bounds)} above {BOUND}")
    low, middle, high = np.quantile([one.reading for one in found.values()], [0.1, 0.5, 0.9])
    print(f"  bytes read, in bytes of the columns: median {middle:.2f}, 10% below {low:.2f}, 10% above {high:.2f}")


if __name__ == "__main__":
    main()
