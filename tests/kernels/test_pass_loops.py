"""The compiled loops of the pass against numpy, on blocks of rows that end where they like."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from excir_dask.kernels.pass_loops import (
    BLOCK,
    bucket_rows,
    bucket_totals,
    bucket_weights,
    cell_totals,
    cells,
    flips,
    joint_counts,
    near,
    pair_sums,
    spread,
)

NO_WEIGHTS = np.empty(0)
layouts = st.lists(st.integers(0, 9), min_size=1, max_size=5).map(lambda sizes: np.cumsum([0, *sizes]))
seeds = st.integers(0, 2**32 - 1)


def check_pair_sums(edges: np.ndarray, outputs: int, weighted: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = int(edges[-1])
    x, y = rng.standard_normal(rows), rng.standard_normal((outputs, rows))
    w = rng.random(rows) if weighted else np.ones(rows)
    moves = w * y
    before, before_units = rng.random((outputs, 7)), rng.random((outputs, 3))
    found, found_units = before.copy(), before_units.copy()
    pair_sums(x, 0.3, moves, w if weighted else NO_WEIGHTS, edges, found, found_units)
    d = x - 0.3
    p = d * moves
    s = np.where(p < 0, -1.0, 1.0)
    expected = [each.sum(axis=1) for each in (p, np.abs(p), p * p, p * np.abs(p), w * s, w * s * d, s * moves)]
    np.testing.assert_allclose(found - before, np.transpose(expected), rtol=1e-9, atol=1e-9)
    units = [slice(a, b) for a, b in pairwise(edges)]
    n, m = (np.array([part[:, u].sum(axis=1) for u in units]) for part in (p, np.abs(p)))
    expected = [(n * n).sum(axis=0), (n * m).sum(axis=0), (m * m).sum(axis=0)]
    np.testing.assert_allclose(found_units - before_units, np.transpose(expected), rtol=1e-9, atol=1e-9)


@given(layouts, st.integers(1, 3), st.booleans(), seeds)
def test_products_are_added_over_rows_and_over_units(edges, outputs, weighted, seed):
    check_pair_sums(edges, outputs, weighted, seed)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rows", [BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 3])
def test_products_do_not_lose_a_row_between_blocks(rows, weighted):
    check_pair_sums(np.array([0, 5, rows]), 2, weighted, seed=1)


@given(st.integers(0, 30), st.booleans(), seeds)
def test_distances_from_the_centre_are_summed(rows, weighted, seed):
    rng = np.random.default_rng(seed)
    x, w = rng.standard_normal(rows), rng.random(rows) if weighted else np.ones(rows)
    expected = ((w * (x - 0.3)).sum(), (w * np.abs(x - 0.3)).sum())
    assert spread(x, 0.3, w if weighted else NO_WEIGHTS) == pytest.approx(expected, rel=1e-12, abs=1e-12)


ORIGIN, SCALE = 1.0, 2.0
SLOTS = np.array([0, 0, 1, 1, 2, 3, 4, 4], dtype=np.uint8)
"""of eight buckets of width one half; the first and the last take all that lies outside 1 to 5"""
EDGES = np.array([2.0, 2.25, 2.8, 3.0, 3.5, 3.7, np.inf])
"""of fine cells; buckets 2 and 3 reach from 2 to 3, bucket 5 from 3.5 to 4"""
FIRST = np.array([0, 0, 0, 2, 3, 4, 6, 6, 6], dtype=np.uint16)
"""edges in lower buckets, for each bucket and behind the last"""

values = st.lists(st.floats(-1.0, 7.0).map(lambda v: round(v * 16) / 16), max_size=30).map(np.array)


def buckets(x: np.ndarray) -> np.ndarray:
    return np.clip((x.astype(np.float64) - ORIGIN) * SCALE, 0, 7).astype(int)


def fine_cells(x: np.ndarray) -> np.ndarray:
    """Edges at most as large, and one more per odd slot below."""
    return np.searchsorted(EDGES, x, side="right") + SLOTS[buckets(x)] // 2


def weigh(x: np.ndarray, weighted: bool) -> tuple[np.ndarray, np.ndarray]:
    w = np.arange(1.0, x.size + 1) / 8
    return (w, w) if weighted else (np.ones(x.size), NO_WEIGHTS)


@given(values, st.booleans())
def test_values_are_counted_per_bucket_and_rows_of_odd_slots_are_listed(x, weighted):
    x = x.astype(np.float64)
    w, given_weights = weigh(x, weighted)
    listed = np.empty(x.size + 1, dtype=np.uint32)
    if weighted:
        found = np.zeros(8)
        count = bucket_weights(x, given_weights, ORIGIN, SCALE, SLOTS, found, listed)
    else:
        found = np.zeros(8, dtype=np.uint32)
        count = bucket_rows(x, ORIGIN, SCALE, SLOTS, found, listed)
    assert found.tolist() == np.bincount(buckets(x), w, minlength=8).tolist()
    assert listed[:count].tolist() == np.flatnonzero(SLOTS[buckets(x)] % 2 == 1).tolist()


@given(values, st.booleans())
def test_fine_cells_hold_the_listed_rows_between_their_edges(x, weighted):
    x = x.astype(np.float64)
    w, given_weights = weigh(x, weighted)
    rows = np.flatnonzero(SLOTS[buckets(x)] % 2 == 1).astype(np.uint32)
    size = EDGES.size + 2
    found, low, high, totals = np.zeros(size), np.full(size, np.inf), np.full(size, -np.inf), np.zeros(size)
    mine = given_weights[rows] if weighted else NO_WEIGHTS
    cells(x[rows], mine, ORIGIN, SCALE, SLOTS, EDGES, FIRST, found, low, high)
    cell_totals(x[rows], mine, ORIGIN, SCALE, SLOTS, EDGES, FIRST, 0.5, totals)
    home = fine_cells(x[rows])
    for cell in range(size):
        inside = rows[home == cell]
        assert found[cell] == w[inside].sum()
        assert (low[cell], high[cell]) == (x[inside].min(initial=np.inf), x[inside].max(initial=-np.inf))
        assert totals[cell] == pytest.approx((w[inside] * (x[inside] - 0.5)).sum(), abs=1e-12)


@given(values, st.booleans())
def test_distances_are_summed_per_bucket(x, weighted):
    x = x.astype(np.float64)
    w, given_weights = weigh(x, weighted)
    found = np.zeros(8)
    bucket_totals(x, given_weights, ORIGIN, SCALE, 0.5, found)
    np.testing.assert_allclose(found, np.bincount(buckets(x), w * (x - 0.5), minlength=8), atol=1e-12)


@given(values, st.booleans(), seeds)
def test_sums_around_a_centre_are_those_of_the_rows_in_each_cell(x, weighted, seed):
    x = x.astype(np.float64)
    w, given_weights = weigh(x, weighted)
    edges = np.array([1.0, 2.5, 3.0, 4.0])
    rows = np.arange(x.size, dtype=np.uint32)
    listed, where = np.empty(x.size + 1, np.uint32), np.empty(x.size + 1, np.uint8)
    count = near(x, rows, edges, listed, where)
    inside = np.flatnonzero((x >= 1.0) & (x < 4.0))
    assert listed[:count].tolist() == inside.tolist()
    assert where[:count].tolist() == np.searchsorted(edges, x[inside], side="right").tolist()
    moves = w * np.random.default_rng(seed).standard_normal(x.size)
    found = np.zeros((4, 4))
    flips(x, 2.5, moves, given_weights, listed[:count], where[:count], found)
    d = x - 2.5
    s = np.where(np.signbit(d * moves), -1.0, 1.0)
    for cell in range(4):
        i = inside[where[:count] == cell]
        each = (w * s, w * s * d, s * moves, np.abs(d * moves))
        np.testing.assert_allclose(found[cell], [part[i].sum() for part in each], atol=1e-9)


@given(values, seeds)
def test_rows_are_counted_by_both_coarse_cells(x, seed):
    x = x.astype(np.float64)
    coarse = np.array([0, 0, 0, 1, 1, 2, 2, 2], dtype=np.uint8)
    others = np.random.default_rng(seed).integers(0, 3, x.size).astype(np.uint8)
    found = np.zeros(9, dtype=np.uint32)
    joint_counts(x, ORIGIN, SCALE, coarse, others, 3, found)
    assert found.tolist() == np.bincount(3 * coarse[buckets(x)] + others, minlength=9).tolist()
