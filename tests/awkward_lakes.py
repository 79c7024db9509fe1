"""Lakes of the kinds that quantiles are hard to find in, by number: what they hold, how rows are cut into files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from one_pass import awkward_columns, awkward_outputs
from oracle import write_lake

Maker = Callable[[np.random.Generator, np.ndarray, np.ndarray], np.ndarray]
"""(random numbers, what moves columns together, file of each row) -> a column"""


@dataclass(frozen=True)
class AwkwardLake:
    frame: pd.DataFrame
    """features, outputs and perhaps weights, in the order of the files"""
    outputs: tuple[str, ...]
    weights: str | None
    files: int
    group: int
    """rows per row group"""

    @property
    def features(self) -> list[str]:
        return [name for name in self.frame if name not in self.outputs and name != self.weights]

    def values(self, name: str) -> np.ndarray:
        return self.frame[name].to_numpy(dtype=np.float64)

    def write(self, folder: Path) -> Path:
        return write_lake(folder, self.frame, self.files, self.group)

    def laid_out(self, files: int, group: int, by: str | None = None) -> AwkwardLake:
        """The same rows in another layout; ``by`` is the column that they are sorted by."""
        frame = self.frame if by is None else self.frame.sort_values(by, kind="stable").reset_index(drop=True)
        return replace(self, frame=frame, files=files, group=group)


def _prices(rng: np.random.Generator, z: np.ndarray, part: np.ndarray) -> np.ndarray:
    """60% exactly 0; price points of each file are others: few per slice, many in all."""
    points = np.round(rng.lognormal(3, 1, (int(part.max()) + 1, 400)), 2)
    return np.where(rng.random(z.size) < 0.6, 0.0, points[part, rng.integers(0, 400, z.size)])


def _prices_at_a_quartile(rng: np.random.Generator, z: np.ndarray, part: np.ndarray) -> np.ndarray:
    """The atom ends about at the third quartile."""
    return np.where(rng.random(z.size) < 0.5, _prices(rng, z, part), 0.0) * np.sign(rng.normal(size=z.size))


def _hours(rng: np.random.Generator, z: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Times within one hour of each day: gaps between files, some of them at quartiles."""
    return 86400.0 * part + 3600.0 * rng.random(z.size)


def _leaves(rng: np.random.Generator, z: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Margins of a few trees with few leaves."""
    margin = np.zeros(z.size)
    for _ in range(int(rng.integers(1, 5))):
        cuts = np.sort(rng.normal(size=int(rng.integers(1, 8))))
        leaves = rng.normal(size=cuts.size + 1) + np.linspace(-1, 1, cuts.size + 1)
        margin += leaves[np.searchsorted(cuts, z + 0.5 * rng.normal(size=z.size))]
    return margin.astype(np.float32).astype(np.float64)


def _integers(rng: np.random.Generator, z: np.ndarray, part: np.ndarray) -> np.ndarray:
    return np.rint(rng.integers(2000, 6000) / 4 * (z + rng.normal(size=z.size)))


def _shifted(rng: np.random.Generator, z: np.ndarray, part: np.ndarray) -> np.ndarray:
    """One file is far from the others."""
    return z + rng.normal(size=z.size) + 30.0 * (part == rng.integers(0, part.max() + 1))


COLUMNS: dict[str, Maker] = {
    "prices": _prices,
    "prices at a quartile": _prices_at_a_quartile,
    "hours": _hours,
    "margins": _leaves,
    "integers": _integers,
    "a shifted day": _shifted,
    "drifting": lambda rng, z, part: rng.normal(size=z.size) + 0.3 * z + 0.4 * part,
    "drifting scale": lambda rng, z, part: rng.lognormal(size=z.size) * np.exp(0.2 * z + 0.2 * part),
    "drifting zeros": lambda rng, z, part: np.where(rng.random(z.size) < 0.05 * (part + 1), 0.0, np.exp(z)),
    "99% one value": lambda rng, z, part: np.where(rng.random(z.size) < 0.99, 7.0, 7.0 + z),
    "half steps": lambda rng, z, part: np.round(2 * (z + rng.normal(size=z.size))) / 2,
    "rises with the row": lambda rng, z, part: np.arange(z.size) + 10.0 * z,
}
"""beside those of ``one_pass.awkward_columns``"""

OUTPUTS: dict[str, Maker] = {
    "margins": _leaves,
    "drifting": lambda rng, z, part: z + 0.5 * rng.normal(size=z.size) + 0.3 * part,
    "far from zero": lambda rng, z, part: 1e9 + z + rng.normal(size=z.size),
    "zeros": lambda rng, z, part: np.where(rng.random(z.size) < 0.7, 0.0, np.exp(z)),
    "shifted": _shifted,
}
"""beside those of ``one_pass.awkward_outputs``"""

WEIGHTS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "whole": lambda rng, n: rng.integers(1, 6, n).astype(float),
    "fractional": lambda rng, n: rng.lognormal(size=n),
    "from 1e-9 to 1e9": lambda rng, n: 10.0 ** rng.uniform(-9, 9, n),
}


def _made(rng: np.random.Generator, z: np.ndarray, part: np.ndarray, names: list[str]) -> dict[str, np.ndarray]:
    """Columns by name."""
    plain = awkward_columns(rng, z) if any(name not in COLUMNS for name in names) else {}
    return {name: COLUMNS[name](rng, z, part) if name in COLUMNS else plain[name] for name in names}


def _outputs(rng: np.random.Generator, z: np.ndarray, part: np.ndarray) -> dict[str, np.ndarray]:
    return {**awkward_outputs(rng, z), **{name: make(rng, z, part) for name, make in OUTPUTS.items()}}


def kind_of_lake(kind: str, seed: int, rows: int = 12_000) -> AwkwardLake:
    """A lake of one of the named kinds, with ordinary columns beside."""
    rng = np.random.default_rng(seed)
    z, part = rng.normal(size=rows), np.arange(rows) * 12 // rows
    columns, output, weights = KINDS[kind]
    frame = _made(rng, z, part, [*columns, "normal", "lognormal"])
    frame["y"] = _outputs(rng, z, part)[output]
    if weights is not None:
        frame["w"] = WEIGHTS[weights](rng, rows)
    lake = AwkwardLake(pd.DataFrame(frame), ("y",), None if weights is None else "w", 12, 250)
    return lake.laid_out(12, 250, ORDERS.get(kind))


KINDS: Mapping[str, tuple[list[str], str, str | None]] = {
    "atoms at a quartile": (["prices", "prices at a quartile", "60% zeros", "25% zeros"], "linear", None),
    "atoms and an output of atoms": (["prices", "prices at a quartile", "25% zeros"], "zeros", None),
    "gaps at a quartile": (["hours", "gap at a quartile"], "linear", None),
    "integers": (["integers", "whole numbers", "poisson"], "linear", None),
    "sorted by a feature": (["prices", "bimodal", "drifting"], "linear", None),
    "sorted by the output": (["prices", "bimodal"], "linear", None),
    "90% missing": (["90% missing", "infinite"], "linear", None),
    "a day of shifted data": (["a shifted day"], "shifted", None),
    "drifting files": (["drifting", "drifting scale", "drifting zeros"], "drifting", None),
    "1e9 and noise": (["far from zero"], "far from zero", None),
    "weights from 1e-9 to 1e9": (["prices", "integers", "90% missing"], "linear", "from 1e-9 to 1e9"),
    "margins": (["margins", "half steps"], "margins", None),
}
"""columns, output and weights of the kinds of lakes that every release must be exact on"""

ORDERS = {"sorted by a feature": "normal", "sorted by the output": "y"}


def random_lake(seed: int) -> AwkwardLake:
    """Any of it together: columns, outputs, weights, missing values, types, layout and order."""
    rng = np.random.default_rng(seed)
    rows, files = int(2000 * 20 ** rng.random()), int(rng.integers(1, 17))
    z, part = rng.normal(size=rows), np.arange(rows) * files // rows
    plain = list(awkward_columns(rng, z[:2]))
    names = [str(name) for name in rng.choice([*COLUMNS, *plain], 5, replace=False)]
    frame = pd.DataFrame(_made(rng, z, part, names))
    for name in names:
        if rng.random() < 0.15:
            frame.loc[rng.random(rows) < rng.choice([0.01, 0.2, 0.9]), name] = np.nan
        if rng.random() < 0.15 and np.abs(frame[name]).max() < 1e30:
            frame[name] = frame[name].astype(np.float32)
    made = _outputs(rng, z, part)
    outputs = tuple(f"output: {name}" for name in rng.choice(list(made), int(rng.integers(1, 3)), replace=False))
    for name in outputs:
        frame[name] = made[name.removeprefix("output: ")]
    weights = None
    if rng.random() < 0.3:
        weights = "weights"
        frame[weights] = WEIGHTS[str(rng.choice(list(WEIGHTS)))](rng, rows)
    group = int(rng.choice([100, 250, 1000, 5000, 10**6]))
    lake = AwkwardLake(frame, outputs, weights, files, group)
    by = [None, None, names[0], outputs[0]][int(rng.integers(4))]
    return lake.laid_out(files, group, by)
