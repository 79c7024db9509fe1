"""Noise seldom outranks what is real: a lake with six real columns and twenty of noise of awkward kinds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from noise_columns import NOISE

from excir_dask import explain

OUTPUTS = ["skewed", "label", "margin"]


def lake(seed: int, n: int) -> tuple[pd.DataFrame, list[str]]:
    """A lake and its real columns."""
    rng = np.random.default_rng(seed)
    real = {
        "linear": rng.standard_normal(n),
        "income": rng.lognormal(0, 1, n),
        "member": (rng.random(n) < 0.3).astype(float),
        "rare": (rng.random(n) < 0.05).astype(float),
        "visits": rng.poisson(0.5, n).astype(float),
        "square": rng.standard_normal(n),
    }
    margin = 0.8 * real["linear"] - 0.6 * np.log(real["income"]) + 0.7 * real["member"] + 1.5 * real["rare"]
    margin += 0.5 * real["visits"] + 0.5 * real["square"] ** 2 + rng.standard_normal(n)
    noise = {f"{kind}_{j}": make(rng, n) for kind, make in NOISE.items() for j in range(4)}
    outputs = {"skewed": np.exp(margin / 2), "label": (margin > np.quantile(margin, 0.9)) * 1.0, "margin": margin}
    return pd.DataFrame({**noise, **real, **outputs}), list(real)


def misplaced(seed: int, n: int = 20_000) -> dict[str, bool]:
    """Output -> whether a column of noise is above a real one."""
    frame, real = lake(seed, n)
    found = explain(frame, output=OUTPUTS)
    return {output: set(found.of(output)["feature"].head(len(real))) != set(real) for output in OUTPUTS}


def test_noise_comes_last_and_is_said_to_be_chance(synchronous):
    for seed in range(3):
        frame, real = lake(seed, 20_000)
        found = explain(frame, output=OUTPUTS)
        for output in OUTPUTS:
            table = found.of(output)
            assert set(table["feature"].head(len(real))) == set(real), (seed, output)
            chance = table["flag"].str.contains("chance")
            assert set(table.loc[chance, "feature"]) == set(frame.columns) - set(real) - set(OUTPUTS), (seed, output)
            assert table.loc[table["feature"] == "square", "flag"].item() == "bends", (seed, output)


def test_the_order_of_the_paper_is_one_option_away(synchronous):
    frame, _ = lake(0, 5000)
    table = explain(frame, output="label", features=["!skewed", "!margin"], rank_by="cir").features
    assert table["cir"].is_monotonic_decreasing
    assert table["feature"].head(3).str.contains("flag|poisson|sparse|rare").all()


@pytest.mark.slow
def test_noise_is_seldom_above_something_real(synchronous):
    found = pd.DataFrame([misplaced(seed) for seed in range(1000, 1100)]).mean()
    assert (found <= 0.01).all(), found.to_dict()
