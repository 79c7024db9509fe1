"""Values that columns have again and again."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from excir_dask.kernels.atoms import LOOKED_AT, MOST, REPEATS, Atoms, find_atoms, merge_atoms

columns = st.lists(st.integers(0, 4), max_size=80).map(lambda drawn: np.array(drawn, dtype=float))


@given(columns)
def test_atoms_of_a_short_block_are_the_values_that_repeat_heaviest_first(x):
    found = find_atoms(x)
    values, counts = np.unique(x, return_counts=True)
    often = counts >= REPEATS
    assert dict(zip(found.values, found.counts, strict=True)) == dict(zip(values[often], counts[often], strict=True))
    assert (np.diff(found.counts) <= 0).all()


def test_missing_values_are_no_atoms():
    x = np.concatenate([np.full(50, np.nan), np.full(50, np.inf), np.full(20, 3.0)])
    assert find_atoms(x).values.tolist() == [3.0]


def test_distinct_values_have_no_atoms_and_the_heaviest_are_kept():
    assert find_atoms(np.random.default_rng(0).random(10_000)).values.size == 0
    x = np.repeat(np.arange(MOST + 10.0), np.arange(MOST + 10) + REPEATS)
    assert set(find_atoms(x).values) <= set(np.arange(MOST + 10.0))
    assert find_atoms(x).values.size == MOST


def test_a_long_block_is_looked_at_in_part_but_all_over():
    x = np.concatenate([np.arange(10.0 * LOOKED_AT), np.full(5 * LOOKED_AT, -1.0)])
    found = find_atoms(x)
    assert found.values.tolist() == [-1.0]
    assert found.counts[0] <= LOOKED_AT


@given(st.lists(columns, min_size=1, max_size=4))
def test_merged_counts_are_sums_and_do_not_depend_on_the_order(parts):
    found = [find_atoms(x) for x in parts]
    forward, backward = (merge_atoms(each) for each in (found, found[::-1]))
    np.testing.assert_array_equal(forward.values, backward.values)
    np.testing.assert_array_equal(forward.counts, backward.counts)
    for value, count in zip(forward.values, forward.counts, strict=True):
        assert count == sum(part.counts[part.values == value].sum() for part in found)


def test_merging_nothing_gives_nothing():
    nothing = Atoms(np.empty(0), np.empty(0))
    assert merge_atoms([nothing, nothing]).values.size == 0
