"""The compiled loops of the pass against numpy, on blocks of rows that end where they like."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from excir_dask.kernels.pass_loops import column_pass
from excir_dask.kernels.reference import SPARE
from excir_dask.kernels.tally import BLOCK, Grid, Side, Tally, scratch

NO_WEIGHTS = np.empty(0)
layouts = st.lists(st.integers(0, 9), min_size=1, max_size=5).map(lambda sizes: np.cumsum([0, *sizes]))
seeds = st.integers(0, 2**32 - 1)

CENTER = 2.5
ORIGIN, SCALE = 1.0, 2.0
SLOTS = np.array([0, 0, 1, 1, 2, 3, 4, 4], dtype=np.uint8)
"""of eight buckets of width one half; the first and the last take all that lies outside 1 to 5"""
COARSE = np.array([0, 0, 0, 1, 1, 2, 2, 2], dtype=np.uint8)
EDGES = np.array([2.0, 2.25, 2.3, 2.35, 2.4, 2.45, 2.8, 3.0, 3.5, 3.7])
"""of fine cells; buckets 2 and 3 reach from 2 to 3, bucket 5 from 3.5 to 4; one part of a slot has more than SPARE"""
STEPS = np.array([[2.0, 4.0], [3.5, 8.0]])
"""four parts of each odd slot"""
FIRST = np.array([[0, 1, 6, 6, 8], [8, 9, 10, 10, 10]], dtype=np.uint16)
"""edges below each part, and behind the last; the edge at 3 is in the first odd slot's last part by rounding"""
FLIPS = np.array([1.0, 2.5, 3.0, 4.0])

values = st.lists(st.floats(-1.0, 7.0).map(lambda v: round(v * 16) / 16), max_size=30).map(
    lambda found: np.array(found, dtype=np.float64)
)


def spare(edges: np.ndarray) -> np.ndarray:
    return np.append(edges, np.full(SPARE, np.inf))


GRID = Grid(CENTER, ORIGIN, SCALE, SLOTS, COARSE, spare(EDGES), STEPS, FIRST, spare(FLIPS))


def tally(outputs: int, totals: bool = True, joint: bool = True) -> Tally:
    size, coarse = EDGES.size + SPARE + 2, 3 if joint else 0
    return Tally(
        np.array([np.inf, -np.inf, 0.0, 0.0, 0.0, 0.0]), np.zeros(5), np.zeros(3),
        np.full(3, SLOTS.size, np.uint16), np.zeros(3, np.uint16), np.zeros(size),
        np.full(size, np.inf), np.full(size, -np.inf), np.zeros(5 if totals else 0), np.zeros(size if totals else 0),
        np.zeros((outputs, 7)), np.zeros((outputs, 3)), np.zeros((outputs, 5, 4)), np.zeros((outputs, 5, 4)),
        np.zeros((outputs if joint else 0, coarse, coarse)),
    )  # fmt: skip


def nobody(outputs: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """No row is around an output's centre."""
    return np.zeros(outputs, np.int64), np.empty(0, np.uint32), np.empty(0, np.uint8)


def passed(
    x: np.ndarray,
    weights: np.ndarray = NO_WEIGHTS,
    moves: np.ndarray | None = None,
    units: np.ndarray | None = None,
    others: np.ndarray | None = None,
    near: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
) -> tuple[Tally, np.ndarray, np.ndarray]:
    """The tally of a column, and the rows around its centre with their cells."""
    moves = np.empty((0, x.size)) if moves is None else moves
    units = np.array([0, x.size]) if units is None else units
    found = tally(len(moves), joint=others is not None)
    memory = scratch(x.size, len(moves), SLOTS.size, 3)
    coarse = np.empty((0, 0), dtype=np.uint8) if others is None else others
    near = nobody(len(moves)) if near is None else near
    count = column_pass(x, GRID, Side(weights, units, moves, coarse, *near), found, memory, False)
    return found, memory.near_rows[:count], memory.near_cells[:count]


def weigh(x: np.ndarray, weighted: bool) -> tuple[np.ndarray, np.ndarray]:
    w = np.arange(1.0, x.size + 1) / 8
    return (w, w) if weighted else (np.ones(x.size), NO_WEIGHTS)


def check_pair_sums(units: np.ndarray, outputs: int, weighted: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = int(units[-1])
    x, y = rng.standard_normal(rows) + CENTER, rng.standard_normal((outputs, rows))
    w = rng.random(rows) if weighted else np.ones(rows)
    moves = w * y
    found = passed(x, w if weighted else NO_WEIGHTS, moves, units)[0]
    d = x - CENTER
    p = d * moves
    s = np.where(p < 0, -1.0, 1.0)
    expected = [each.sum(axis=1) for each in (p, np.abs(p), p * p, p * np.abs(p), w * s, w * s * d, s * moves)]
    np.testing.assert_allclose(found.sums, np.transpose(expected), rtol=1e-9, atol=1e-9)
    parts = [slice(a, b) for a, b in pairwise(units)]
    n, m = (np.array([part[:, u].sum(axis=1) for u in parts]) for part in (p, np.abs(p)))
    expected = [(n * n).sum(axis=0), (n * m).sum(axis=0), (m * m).sum(axis=0)]
    np.testing.assert_allclose(found.units, np.transpose(expected), rtol=1e-9, atol=1e-9)
    sums = [(w * each).sum() for each in (d, np.abs(d), d * d, np.where(d < 0, -1.0, 1.0))]
    np.testing.assert_allclose(found.limits[2:], sums, rtol=1e-9, atol=1e-9)
    assert found.limits[:2].tolist() == [x.min(initial=np.inf), x.max(initial=-np.inf)]


@given(layouts, st.integers(1, 3), st.booleans(), seeds)
def test_products_are_added_over_rows_and_over_units(units, outputs, weighted, seed):
    check_pair_sums(units, outputs, weighted, seed)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rows", [BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 3])
def test_products_do_not_lose_a_row_between_blocks(rows, weighted):
    check_pair_sums(np.array([0, 5, rows]), 2, weighted, seed=1)


def buckets(x: np.ndarray) -> np.ndarray:
    return np.clip((x - ORIGIN) * SCALE, 0, 7).astype(int)


def fine_cells(x: np.ndarray) -> np.ndarray:
    """Edges at most as large, and one more per odd slot below."""
    return np.searchsorted(EDGES, x, side="right") + SLOTS[buckets(x)] // 2


@given(values, st.booleans())
def test_weights_and_distances_are_summed_per_slot(x, weighted):
    w, given_weights = weigh(x, weighted)
    found = passed(x, given_weights)[0]
    slots = SLOTS[buckets(x)]
    assert found.slots.tolist() == np.bincount(slots, w, minlength=5).tolist()
    np.testing.assert_allclose(found.slot_total, np.bincount(slots, w * (x - CENTER), minlength=5), atol=1e-12)


@given(values, st.booleans())
def test_fine_cells_hold_the_rows_of_odd_slots_between_their_edges(x, weighted):
    w, given_weights = weigh(x, weighted)
    found = passed(x, given_weights)[0]
    rows = np.flatnonzero(SLOTS[buckets(x)] % 2 == 1)
    home = fine_cells(x[rows])
    for cell in range(found.cells.size):
        inside = rows[home == cell]
        assert found.cells[cell] == w[inside].sum()
        assert found.cell_low[cell] == x[inside].min(initial=np.inf)
        assert found.cell_high[cell] == x[inside].max(initial=-np.inf)
        assert found.cell_total[cell] == pytest.approx((w[inside] * (x[inside] - CENTER)).sum(), abs=1e-12)


def check_flips(x: np.ndarray, units: np.ndarray, outputs: int, weighted: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    w, given_weights = weigh(x, weighted)
    moves = w * rng.standard_normal((outputs, x.size))
    near = [np.flatnonzero(rng.random(x.size) < 0.3) for _ in range(outputs)]
    cells_of = [rng.integers(0, 5, rows.size) for rows in near]
    given_near = (
        np.cumsum([rows.size for rows in near]),
        np.concatenate(near).astype(np.uint32),
        np.concatenate(cells_of).astype(np.uint8),
    )
    found, rows, cells = passed(x, given_weights, moves, units, near=given_near)
    inside = np.flatnonzero((x >= 1.0) & (x < 4.0) & (SLOTS[buckets(x)] % 2 == 1))
    assert rows.tolist() == inside.tolist()
    assert cells.tolist() == np.searchsorted(FLIPS, x[inside], side="right").tolist()
    d = x - CENTER
    for k in range(outputs):
        s = np.where(np.signbit(d * moves[k]), -1.0, 1.0)
        each = (w * s, w * s * d, s * moves[k], np.abs(d * moves[k]))
        for sums, some, home in ((found.flips[k], inside, cells), (found.output_flips[k], near[k], cells_of[k])):
            for cell in range(5):
                expected = [part[some[home == cell]].sum() for part in each]
                np.testing.assert_allclose(sums[cell], expected, atol=1e-9, rtol=1e-9)


@given(values, st.integers(1, 3), st.booleans(), seeds)
def test_sums_around_both_centres_are_those_of_the_rows_in_each_cell(x, outputs, weighted, seed):
    check_flips(x, np.array([0, x.size // 3, x.size]), outputs, weighted, seed)


@pytest.mark.parametrize("weighted", [False, True])
def test_no_row_around_a_centre_is_lost_between_blocks(weighted):
    x = np.random.default_rng(0).integers(0, 96, 2 * BLOCK + 3) / 16
    check_flips(x, np.array([0, 5, x.size]), 2, weighted, seed=1)


@given(values, st.integers(1, 2), st.booleans(), seeds)
def test_rows_are_counted_by_coarse_cells_alone_and_with_those_of_outputs(x, outputs, weighted, seed):
    rng = np.random.default_rng(seed)
    others = rng.integers(0, 3, (outputs, x.size)).astype(np.uint8)
    w, given_weights = weigh(x, weighted)
    found = passed(x, given_weights, moves=rng.standard_normal((outputs, x.size)), others=others)[0]
    cells = COARSE[buckets(x)]
    assert found.coarse.tolist() == np.bincount(cells, w, minlength=3).tolist()
    for k in range(outputs):
        expected = np.bincount(3 * cells + others[k], w, minlength=9)
        assert found.joint[k].ravel().tolist() == expected.tolist()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_no_numbers_are_noticed(value):
    x = np.ones(2 * BLOCK)
    x[-1] = value
    memory = scratch(x.size, 0, SLOTS.size, 3)
    side = Side(NO_WEIGHTS, np.array([0, x.size]), np.empty((0, x.size)), np.empty((0, 0), np.uint8), *nobody(0))
    assert column_pass(x, GRID, side, tally(0), memory, False) == -1
