"""The compiled loops against numpy, on blocks of rows that end where they like."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from excir_dask.kernels.numba_loops import BLOCK, Cells, below, collect, products, read_off, tally

NO_WEIGHTS = np.empty(0)
layouts = st.lists(st.integers(0, 9), min_size=1, max_size=5).map(lambda sizes: np.cumsum([0, *sizes]))


def check_products(edges: np.ndarray, outputs: int, weighted: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = int(edges[-1])
    x, moves = rng.standard_normal(rows), rng.standard_normal((outputs, rows))
    weights = rng.random(rows) if weighted else NO_WEIGHTS
    before = rng.random((7, outputs))
    found = before.copy()
    total = products(x, 0.3, moves, weights, edges, found)
    p = (x - 0.3) * moves
    units = [slice(a, b) for a, b in pairwise(edges)]
    n, d = (np.array([part[:, u].sum(axis=1) for u in units]) for part in (p, np.abs(p)))
    expected = [p.sum(axis=1), np.abs(p).sum(axis=1), (p * p).sum(axis=1), (p * np.abs(p)).sum(axis=1)]
    expected += [(n * n).sum(axis=0), (n * d).sum(axis=0), (d * d).sum(axis=0)]
    np.testing.assert_allclose(found - before, expected, rtol=1e-9, atol=1e-9)
    assert total == pytest.approx(((weights if weighted else 1.0) * np.abs(x - 0.3)).sum(), rel=1e-9, abs=1e-12)


@given(layouts, st.integers(1, 3), st.booleans(), st.integers(0, 2**32 - 1))
def test_products_are_added_over_rows_and_over_units(edges, outputs, weighted, seed):
    check_products(edges, outputs, weighted, seed)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rows", [BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 3])
def test_products_do_not_lose_a_row_between_blocks(rows, weighted):
    check_products(np.array([0, 5, rows]), 2, weighted, seed=1)


def check_below(rows: int, fours: int, weighted: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 6, rows).astype(float)
    thresholds = rng.permutation(4 * fours) * 1.5 / fours  # whole ones lie on values
    weights = rng.random(rows) if weighted else NO_WEIGHTS
    before = rng.random(thresholds.size)
    found = before.copy()
    below(x, thresholds, weights, found)
    under = x[:, None] < thresholds
    expected = ((weights if weighted else np.ones(rows))[:, None] * under).sum(axis=0)
    np.testing.assert_allclose(found - before, expected, rtol=1e-9, atol=1e-9)


@given(st.integers(0, 40), st.integers(1, 3), st.booleans(), st.integers(0, 2**32 - 1))
def test_the_weight_strictly_below_every_threshold_is_added(rows, fours, weighted, seed):
    check_below(rows, fours, weighted, seed)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rows", [BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 3])
def test_weights_below_do_not_lose_a_row_between_blocks(rows, weighted):
    check_below(rows, 2, weighted, seed=1)


def test_missing_values_are_below_no_threshold():
    found = np.zeros(4)
    below(np.array([np.nan, 0.0, np.nan]), np.array([-1.0, 0.0, 1.0, np.inf]), NO_WEIGHTS, found)
    assert found.tolist() == [0.0, 0.0, 1.0, 1.0]


CELLS = Cells(1.0, 2.0, np.array([0.0, -1.0, -5.0, -2.0, 10.0]), np.array([0.0, 2.0, 4.0, 3.0, 0.0]))
"""segments of 1, 2, 4, 3 and 1 cells: the first and the last take all that lies outside 1.5 to 3"""
EDGES = np.array([1.5, 1.75, 2.0, 2.125, 2.25, 2.375, 2.5, 2.5 + 1 / 6, 2.5 + 2 / 6, 3.0])
"""between neighbouring cells"""

values = st.lists(st.floats(-1.0, 6.0).map(lambda v: round(v * 64) / 64), max_size=30)


def cells(x: np.ndarray) -> np.ndarray:
    return np.searchsorted(EDGES, x, side="right")


@given(values)
def test_values_are_counted_in_their_cells(drawn):
    x = np.array(drawn, dtype=float)
    before = np.arange(11, dtype=np.uint32)
    counts = before.copy()
    tally(x, CELLS, counts)
    assert (counts - before).tolist() == np.bincount(cells(x), minlength=11).tolist()


@given(values, st.sets(st.integers(0, 10)))
def test_values_of_wanted_cells_are_copied_in_their_order(drawn, chosen):
    x = np.array(drawn, dtype=float)
    wanted = np.isin(np.arange(11), list(chosen))
    inside = x[wanted[cells(x)]]
    found = np.full(inside.size + 1, np.nan)
    collect(x, CELLS, wanted, found)
    assert found[:-1].tolist() == inside.tolist()


def looked_up(
    x: np.ndarray, ranks: np.ndarray, full: np.ndarray, ends: tuple[float, float] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    counts = np.bincount(cells(x), minlength=11).astype(np.uint32)
    found, places = np.full(ranks.size, np.nan), np.full(ranks.size, -7)
    ends = (float(x.min()), float(x.max())) if ends is None else ends
    read_off(ranks, counts, full, CELLS, np.array(ends), found, places)
    return found, places


@given(values.filter(len), st.sets(st.integers(0, 10)))
@settings(max_examples=300)
def test_values_at_ranks_lie_evenly_in_their_cells_and_full_cells_give_a_place(drawn, chosen):
    x = np.sort(np.array(drawn, dtype=float))
    full = np.isin(np.arange(11), list(chosen))
    mine = cells(x)
    limits = np.concatenate(([x[0]], EDGES, [x[-1]]))
    found, places = looked_up(x, np.arange(x.size), full)
    crowd = np.flatnonzero(full[mine])
    for rank, cell in enumerate(mine):
        if full[cell]:
            assert places[rank] == np.flatnonzero(crowd == rank)[0]
            continue
        first, count = np.flatnonzero(mine == cell)[0], (mine == cell).sum()
        left, right = limits[cell], limits[cell + 1]
        expected = left + (rank - first + 0.5) / count * (right - left)
        assert places[rank] == -1
        assert found[rank] == pytest.approx(np.clip(expected, x[0], x[-1]), abs=1e-12)


def test_ranks_may_be_passed_over():
    x = np.array([0.0, 1.6, 1.9, 2.2, 2.3, 2.6, 2.9, 5.0])
    every, _ = looked_up(x, np.arange(8), np.zeros(11, dtype=bool))
    some, _ = looked_up(x, np.array([0, 3, 3, 7]), np.zeros(11, dtype=bool))
    assert some.tolist() == every[[0, 3, 3, 7]].tolist()


def test_values_at_ranks_stay_between_the_smallest_and_the_largest_value():
    """Cells reach farther than the values in them."""
    x = np.array([1.55, 1.6, 2.7, 2.95])
    found, _ = looked_up(x, np.arange(4), np.zeros(11, dtype=bool), ends=(1.57, 2.7))
    assert (found.min(), found.max()) == (1.57, 2.7)
