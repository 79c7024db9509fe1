"""A model that counts the rows it is shown."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd


class Counting:
    """Counts the rows that it is shown, in a file, because workers are other processes."""

    def __init__(self, log: Path):
        self.log = log

    def __call__(self, frame: pd.DataFrame) -> np.ndarray:
        with open(self.log, "a") as file:
            file.write(f"{len(frame)}\n")
        return frame["a"].to_numpy() ** 3

    @property
    def rows(self) -> int:
        return sum(map(int, self.log.read_text().split()))
