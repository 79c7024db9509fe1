"""Trimmed means over blocks of rows, against numpy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from excir_dask.kernels.centers import describe
from excir_dask.kernels.summaries import summarise
from excir_dask.kernels.trim import TrimmedSums, concatenate_trimmed, merge_trimmed, trim, with_trimmed

values = st.lists(st.one_of(st.integers(-5, 5), st.just(np.nan), st.just(np.inf)), min_size=1, max_size=20)


@given(values, st.booleans(), st.integers(1, 4))
def test_trimmed_sums_are_those_of_the_values_from_one_quartile_to_the_other(drawn, weighted, parts):
    x = np.array(drawn, dtype=float)
    weights = np.arange(1.0, x.size + 1) if weighted else None
    q25, q75 = np.array([-1.0, -20.0]), np.array([2.0, 20.0])
    found = merge_trimmed(
        [
            trim([x[rows], x[rows]], q25, q75, None if weights is None else weights[rows])
            for rows in np.array_split(np.arange(x.size), parts)
        ]
    )
    for j in range(2):
        inside = (x >= q25[j]) & (x <= q75[j])
        w = np.ones(x.size) if weights is None else weights
        assert found.weight[j] == w[inside].sum()
        assert found.total[j] == pytest.approx((w[inside] * (x[inside] - q25[j])).sum())


def test_merging_does_not_change_its_arguments():
    parts = [TrimmedSums(np.array([float(i)]), np.array([2.0 * i])) for i in (1, 2, 3)]
    merged = merge_trimmed(parts)
    assert (merged.total.tolist(), merged.weight.tolist()) == ([6.0], [12.0])
    assert parts[0].total.tolist() == [1.0]


def test_blocks_of_columns_stand_side_by_side():
    one, other = TrimmedSums(np.array([1.0]), np.array([2.0])), TrimmedSums(np.array([3.0, 4.0]), np.array([5.0, 6.0]))
    joined = concatenate_trimmed([one, other])
    assert (joined.total.tolist(), joined.weight.tolist()) == ([1.0, 3.0, 4.0], [2.0, 5.0, 6.0])


def test_trimmed_means_are_filled_in_where_they_were_not_exact():
    stats = describe([summarise(np.arange(5.0) + 10 * j) for j in range(3)], "trimmed")
    open_ones = replace(stats, trimmed=np.array([np.nan, 7.0, np.nan]))
    sums = TrimmedSums(np.array([6.0, 6.0, 0.0]), np.array([4.0, 4.0, 0.0]))
    np.testing.assert_array_equal(with_trimmed(open_ones, sums).trimmed, [stats.q25[0] + 1.5, 7.0, np.nan])


def test_trimmed_means_of_rows_are_numpys():
    rng = np.random.default_rng(0)
    x = rng.exponential(size=3000)
    stats = replace(describe([summarise(x)], "trimmed"), trimmed=np.array([np.nan]))
    found = with_trimmed(stats, trim([x], stats.q25, stats.q75, None)).trimmed[0]
    inside = x[(x >= stats.q25[0]) & (x <= stats.q75[0])]
    assert found == pytest.approx(inside.mean(), rel=1e-12)
