"""Days of a lake for audits."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pandas as pd

NAMES = ["rpm", "torque", "oil", "water", "speed", "wind", "humidity", "noise"]
WEIGHTS = np.array([1.5, 1.0, 0.8, 0.8, 1.2, 0.4, 0.0, 0.0])
FIRST = date(2026, 9, 1)
GROUPS = "engine: [rpm, torque]\ncooling: [oil, water]\n"

CONFIG = """\
name: plant
lake: lake
window: date={{ date }}
output: pred
groups: groups.yaml
results: audits
"""


def frame(seed: int, weights: np.ndarray = WEIGHTS, rows: int = 1500) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((rows, len(weights)))
    table = pd.DataFrame(values, columns=NAMES)
    return table.assign(pred=values @ weights + 0.3 * rng.standard_normal(rows))


def write_day(lake: Path, number: int, table: pd.DataFrame) -> None:
    folder = lake / f"date={FIRST + timedelta(days=number - 1)}"
    folder.mkdir(parents=True, exist_ok=True)
    table.to_parquet(folder / "part-0.parquet")


def write_drift(lake: Path) -> None:
    """14 days: the effect of speed flips on day 9, and that of the group cooling fades slowly."""
    for number in range(1, 15):
        weights = WEIGHTS.copy()
        weights[2:4] *= 1.0 - 0.035 * (number - 1)
        if number >= 9:
            weights[4] *= -1.0
        write_day(lake, number, frame(100 + number, weights))
