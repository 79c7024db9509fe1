"""The loops that put a slice in order, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from excir_dask.kernels.rank_loops import Cells, collect, read_off, tally

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
