"""Values at ranks by counting, against sorting."""

import numpy as np
import pytest

from excir_dask.kernels.ranks import values_at

ROWS = 200_000


def kinds() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    normal = rng.standard_normal(ROWS)
    return {
        "normal": normal,
        "uniform": rng.random(ROWS),
        "lognormal": np.exp(normal),
        "lognormal, wide": np.exp(3 * normal),
        "cauchy": rng.standard_cauchy(ROWS),
        "far from zero": 1e9 + normal,
        "tiny": 1e-200 * normal,
        "huge": 1e200 * normal,
        "in order": np.sort(normal),
        "two lumps": np.where(rng.random(ROWS) < 0.25, normal, 1000 + normal),
        "an outlier": np.append(normal[1:], 1e12),
        "one value in a hundred is zero": np.where(rng.random(ROWS) < 0.01, 0.0, np.abs(normal) + 0.1),
        "unlike its sample": np.where(np.arange(ROWS) % 48 == 0, normal, 50 + 0.001 * rng.random(ROWS)),
    }


@pytest.mark.parametrize("kind", kinds())
def test_values_at_ranks_are_near_those_of_the_sorted_column(kind):
    x = kinds()[kind]
    ordered = np.sort(x)
    ranks = np.arange(100, ROWS, 200)
    found = values_at(x, ranks, np.sort(x[:: ROWS // 4096]), ordered[0], ordered[-1])
    if found is None:
        assert kind in ("lognormal, wide", "unlike its sample")
        return
    assert (np.diff(found) >= 0).all()
    # as many values are below as the rank says, give or take the distance of two ranks
    first, behind = np.searchsorted(ordered, found, side="left"), np.searchsorted(ordered, found, side="right")
    off = np.maximum(np.maximum(first - ranks, ranks - behind), 0)
    assert off.max() <= 200
    assert np.median(off) <= 20


def test_a_value_that_repeats_stays_what_it_is():
    x = kinds()["one value in a hundred is zero"]
    found = values_at(x, np.arange(100, ROWS, 200), np.sort(x[:: ROWS // 4096]), 0.0, x.max())
    assert (found == 0.0).sum() == (np.sort(x)[100::200] == 0.0).sum() > 5


@pytest.mark.parametrize(
    "x", [np.zeros(ROWS), 1e308 * np.linspace(-1.7, 1.7, ROWS), np.linspace(1.0, 1.0 + 1e-14, ROWS)]
)
def test_where_cells_cannot_tell_values_apart_it_says_so(x):
    assert values_at(x, np.arange(100, ROWS, 200), np.sort(x[:: ROWS // 4096]), x.min(), x.max()) is None
