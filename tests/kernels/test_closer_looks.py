"""Another look cuts the cells that leave a quantile open."""

from __future__ import annotations

import numpy as np
import pytest
from one_pass import exact_center, refer, watch

from excir_dask.kernels.runs import Elements
from excir_dask.kernels.settle import settle, sharpened, widest

NAN = float("nan")
LIMITS = [(1.0, 1.0), (3.0, 7.0), (9.0, 14.0), (15.0, 24.0), (30.0, 30.0)]


def elements(limits: list[tuple[float, float]], weights: list[float]) -> Elements:
    low, high = np.array(limits).T
    return Elements(np.cumsum(weights), low, high, np.array(weights), np.zeros(len(weights)), False)


@pytest.mark.parametrize(
    ("weights", "cells"),
    [
        ([2.0, 0.3, 0.2, 0.1, 2.4], [(3.0, 7.0), (9.0, 14.0)]),  # 0.3 of 4, 0.2 of 5 and 0.1 of 9 are open
        ([2.0, 0.1, 0.1, 0.4, 2.4], [(15.0, 24.0), (9.0, 14.0)]),
        ([2.5, 0.1, 0.0, 0.0, 2.5], [(3.0, 7.0)]),
        ([2.5, 0.0, 0.0, 0.0, 2.5], []),
    ],
)
def test_of_a_mean_over_many_cells_those_are_named_that_leave_most_of_it_open(weights, cells):
    assert widest(elements(LIMITS, weights), 0.5) == cells


def test_of_a_quantile_outside_the_brackets_known_cells_are_named():
    assert widest(elements([(NAN, NAN), (3.0, 7.0)], [2.4, 2.6]), 0.5) == [(3.0, 7.0)]


@pytest.mark.parametrize("seed", range(10))
def test_looks_get_closer_to_a_median_that_is_a_mean_over_many_cells(seed):
    """Half of the weight lies on either side of a gap with light rows in it: the bracket stays as wide as the gap."""
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.uniform(0, 1, 1000), rng.uniform(50, 51, 1000), rng.uniform(5, 45, 2000)])
    w = np.concatenate([rng.lognormal(0, 1, 1000), rng.lognormal(0, 1, 1000), 10.0 ** rng.uniform(-12, -8, 2000)])
    w[:1000] *= w[1000:2000].sum() / w[:1000].sum()
    y = np.zeros((1, x.size))
    reference, outputs = refer([x], "median", weights=w), refer(list(y))
    errors = []
    for _ in range(3):
        state = watch([x], y, (reference, outputs), w)[0].columns
        stats = settle(state, reference, "median")
        errors.append(float(stats.error[0]))
        assert abs(stats.center[0] - exact_center(x, "median", w)) <= errors[-1] + 1e-12
        reference = sharpened(state, reference, stats, "median")
    rounding = 1e-9 * x.size * 50  # of ranks, times the width of the gap
    assert max(errors[1:]) < 1.5 * rounding, errors


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_a_median_that_is_a_value_of_many_rows_has_no_error_at_all(seed, weighted):
    """Where nothing moves from there, a score is one half, and an error of one rounding would make that unknown."""
    rng = np.random.default_rng(seed)
    x = np.where(rng.random(3000) < 0.7, 0.0, rng.exponential(size=3000))
    w = rng.lognormal(size=3000) if weighted else None
    y = np.zeros((1, x.size))
    reference = refer([x[:500]], "median", complete=False, weights=None if w is None else w[:500])
    stats = settle(watch([x], y, (reference, refer(list(y))), w)[0].columns, reference, "median")
    assert (stats.center[0], stats.error[0]) == (0.0, 0.0)
