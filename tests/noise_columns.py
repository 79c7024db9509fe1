"""Columns of noise of awkward kinds: name -> function of a random generator and a number of rows."""

from __future__ import annotations

import numpy as np

NOISE = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "lognormal": lambda rng, n: rng.lognormal(0, 1, n),
    "flag": lambda rng, n: (rng.random(n) < 0.05).astype(float),
    "poisson": lambda rng, n: rng.poisson(0.1, n).astype(float),
    "sparse": lambda rng, n: np.where(rng.random(n) < 0.02, rng.poisson(3, n) + 1.0, 0.0),
}
