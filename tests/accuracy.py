"""Compare scores of random awkward lakes with numpy's on all rows: ``python -m tests.accuracy --lakes 4000 --seed 0``.

Lakes are tiny, so pilots and slices are made small too: a pilot reads a part of each, and the pass many slices. Each
lake has a number, by which ``python -m tests.accuracy --lakes 1 --seed NUMBER`` repeats it with all of its scores.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import dask
import numpy as np
import pandas as pd
import pyarrow.parquet as pq

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from awkward_lakes import AwkwardLake, random_lake  # noqa: E402
from one_pass import exact_cir  # noqa: E402

from excir_dask import explain  # noqa: E402
from excir_dask.graph import closer  # noqa: E402
from excir_dask.kernels.centers import CENTERINGS  # noqa: E402
from excir_dask.lake import pilot  # noqa: E402

ERROR = 1e-4
"""no score is further from the exact one"""

ROUNDING = 1e-12
"""of the figures themselves"""


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lakes", type=int, default=4000, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="number of the first")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    began, found = time.monotonic(), []
    for seed in range(given.seed, given.seed + given.lakes):
        with tempfile.TemporaryDirectory() as folder:
            one = try_lake(seed, Path(folder))
        found.append(one)
        if given.lakes == 1:
            print(one.table.to_string())
        if one.beyond or one.error > ERROR:
            print(f"lake {seed}: error {one.error:.2g}, bound {one.bound:.2g}, {one.beyond} beyond theirs", flush=True)
    errors, bounds = np.array([one.error for one in found]), np.array([one.bound for one in found])
    reading = np.array([one.reading for one in found])
    scores = sum(len(one.table) for one in found)
    print(f"{given.lakes} lakes, {scores} scores, {time.monotonic() - began:.0f} s")
    print(f"worst error {errors.max():.2g} (lake {given.seed + errors.argmax()}), {(errors > 1e-5).sum()} above 1e-5")
    print(f"worst bound {bounds.max():.2g} (lake {given.seed + bounds.argmax()}), {(bounds > 1e-3).sum()} above 1e-3")
    print(f"scores further off than their bound: {sum(one.beyond for one in found)}")
    low, middle, high = np.quantile(reading, [0.1, 0.5, 0.9])
    print(f"bytes read, in bytes of the columns: median {middle:.2f}, 10% below {low:.2f}, 10% above {high:.2f}")
    sys.exit(bool(any(one.beyond or one.error > ERROR for one in found)))


if __name__ == "__main__":
    main()
