"""Counts of categories and the summaries of their 0/1 features, against counting the rows themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from excir_dask.kernels.categories import (
    OTHER,
    Categories,
    choose_categories,
    count_categories,
    indicator_summaries,
    indicators,
    merge_categories,
)
from excir_dask.kernels.summaries import summarise

VALUES = ("pear", "apple", "fig", "plum")
codes = st.lists(st.integers(-1, len(VALUES) - 1), max_size=30).map(lambda c: np.array(c, dtype=np.int32))


def weights_of(seed: int, size: int, whole: bool) -> np.ndarray:
    return np.random.default_rng(seed).integers(1, 5, size) + (0.0 if whole else 0.25)


@given(st.lists(codes, min_size=1, max_size=4), st.sampled_from([None, True, False]))
def test_counts_of_parts_merge_to_those_of_all_rows(parts, whole):
    weights = [None if whole is None else weights_of(i, c.size, whole) for i, c in enumerate(parts)]
    merged = merge_categories([count_categories(c, VALUES, w) for c, w in zip(parts, weights, strict=True)])
    everything = np.concatenate(parts)
    met = sorted({VALUES[c] for c in everything if c >= 0})
    assert merged.values == tuple(met)
    assert merged.rows.tolist() == [int((everything == VALUES.index(v)).sum()) for v in met]
    heavy = np.ones(everything.size) if whole is None else np.concatenate(weights)
    assert merged.weights.tolist() == [heavy[everything == VALUES.index(v)].sum() for v in met]
    assert merged.rows.dtype == np.int64
    assert merged.missing == int((everything < 0).sum())
    assert merged.whole == (whole is not False or not (everything >= 0).any())


def test_weights_of_categories_are_whole_only_if_those_of_every_part_are():
    one, other = (count_categories(np.zeros(2, np.int32), VALUES, np.array([1.0, w])) for w in (2.0, 2.5))
    assert [one.whole, other.whole] == [True, False]
    assert not merge_categories([one, other]).whole
    assert merge_categories([one, one]).whole


@given(codes, st.integers(1, 5), st.sampled_from([None, True, False]))
def test_summaries_of_indicators_are_those_of_their_columns(c, most, whole):
    weights = None if whole is None else weights_of(0, c.size, whole)
    counts = count_categories(c, VALUES, weights)
    chosen = choose_categories("fruit", counts, most)
    found = indicator_summaries(counts, chosen)
    columns = list(indicators(c, VALUES, chosen))
    assert len(found) == len(columns) == len(chosen.features)
    for summary, column in zip(found, columns, strict=True):
        expected = summarise(column, weights)
        for name in ("n", "missing", "weight", "whole", "low", "high", "total", "exact"):
            assert getattr(summary, name) == getattr(expected, name), name
        assert summary.points.tolist() == expected.points.tolist()
        assert summary.weights.tolist() == expected.weights.tolist()


def test_the_most_frequent_categories_are_features_and_the_others_one_together():
    c = np.array([0, 0, 1, 1, 2, 3, 3, 3, -1], dtype=np.int32)
    chosen = choose_categories("fruit", count_categories(c, VALUES, None), 2)
    assert chosen == Categories("fruit", ("plum", "apple"), other=True)
    assert chosen.features == ("fruit=plum", "fruit=apple", f"fruit={OTHER}")
    columns = list(indicators(c, VALUES, chosen))
    np.testing.assert_array_equal(columns[0], [0, 0, 0, 0, 0, 1, 1, 1, np.nan])
    np.testing.assert_array_equal(columns[1], [0, 0, 1, 1, 0, 0, 0, 0, np.nan])
    np.testing.assert_array_equal(columns[2], [1, 1, 0, 0, 1, 0, 0, 0, np.nan])
    assert not choose_categories("fruit", count_categories(c, VALUES, None), 4).other


def test_a_category_called_other_keeps_its_name():
    assert Categories("x", (OTHER,), other=True).features == (f"x={OTHER}", "x=(all others)")


@pytest.mark.parametrize(("limit", "too_many"), [(3, False), (2, True)])
def test_columns_with_too_many_values_are_no_longer_counted(limit, too_many):
    c = np.array([0, 1, 2, -1], dtype=np.int32)
    for counts in (
        count_categories(c, VALUES, None, limit),
        merge_categories([count_categories(c[:2], VALUES, None), count_categories(c[2:], VALUES, None)], limit),
    ):
        assert (counts.too_many, counts.missing, len(counts.values)) == (too_many, 1, 0 if too_many else 3)
        assert counts.rows.size == counts.weights.size == len(counts.values)
        assert merge_categories([counts, count_categories(c[:1], VALUES, None)]).too_many is too_many
