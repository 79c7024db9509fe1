"""Samples of whole rows: those with the smallest draws, however rows are cut."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from excir_dask.kernels.rowsample import RowPicker, RowSample, concatenate_samples, draw_threshold, merge_samples


def picked(draws: np.ndarray, columns: np.ndarray, limit: int, threshold: int = 2**64) -> RowSample:
    picker = RowPicker(draws, limit, threshold)
    for seen, column in zip(picker.watch(columns), columns, strict=True):
        np.testing.assert_array_equal(seen, column)
    return picker.result()


def same(one: RowSample, other: RowSample) -> None:
    np.testing.assert_array_equal(one.draws, other.draws)
    np.testing.assert_array_equal(one.values, other.values)


@given(st.integers(0, 30), st.integers(1, 12), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_a_sample_is_of_the_rows_with_the_smallest_draws_whatever_blocks_they_come_in(rows, limit, parts, seed):
    rng = np.random.default_rng(seed)
    draws = rng.integers(0, 2**64, rows, dtype=np.uint64)
    columns = rng.standard_normal((3, rows))
    chosen = np.sort(np.argsort(draws)[:limit])
    expected = RowSample(draws[chosen], columns[:, chosen])
    same(picked(draws, columns, limit), expected)
    cut = np.array_split(np.arange(rows), parts)
    same(merge_samples([picked(draws[c], columns[:, c], limit) for c in cut], limit), expected)


def test_of_equal_draws_the_first_rows_are_picked():
    draws = np.array([5, 1, 1, 1, 0], dtype=np.uint64)
    assert picked(draws, np.arange(5.0)[None], 3).values.tolist() == [[1.0, 2.0, 4.0]]


@pytest.mark.parametrize(("threshold", "rows"), [(2**64, [0, 1, 2]), (2**64 - 1, [0, 1]), (7, [0]), (8, [0, 1])])
def test_only_draws_below_the_threshold_count(threshold, rows):
    draws = np.array([3, 7, 2**64 - 1], dtype=np.uint64)
    assert picked(draws, np.arange(3.0)[None], 5, threshold).values.tolist() == [rows]


def test_a_sample_without_columns_keeps_its_draws():
    sample = picked(np.array([3, 1], dtype=np.uint64), np.empty((0, 2)), 5)
    assert (sample.draws.tolist(), sample.values.shape) == ([3, 1], (0, 2))


def test_blocks_of_columns_stand_side_by_side():
    draws = np.array([3, 1, 2], dtype=np.uint64)
    columns = np.arange(12.0).reshape(4, 3)
    same(concatenate_samples([picked(draws, columns[:1], 2), picked(draws, columns[1:], 2)]), picked(draws, columns, 2))


def test_the_threshold_leaves_enough_rows_and_not_many_more():
    assert draw_threshold(100, 100) == draw_threshold(100, 5) == 2**64
    assert draw_threshold(100, 101) == draw_threshold(100, 300) == 2**64
    assert draw_threshold(10_000, 1_000_000) == int(2.0**64 * 11_100 / 1_000_000)
    rng = np.random.default_rng(0)
    for _ in range(20):
        draws = rng.integers(0, 2**64, 20_000, dtype=np.uint64)
        assert 500 <= np.count_nonzero(draws < np.uint64(draw_threshold(500, 20_000))) < 1000
