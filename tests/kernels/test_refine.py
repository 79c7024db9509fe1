"""Quantiles placed by the values around them, against numpy on all rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from excir_dask.kernels.centers import CENTERINGS, ColumnStats, describe
from excir_dask.kernels.refine import Vicinities, concatenate_vicinities, doubtful, gather, merge_vicinities, refined
from excir_dask.kernels.summaries import summarise

LEVELS = {0.25: "q25", 0.5: "q50", 0.75: "q75"}
values = st.lists(st.integers(0, 9), min_size=1, max_size=20)
edges = st.lists(st.integers(-2, 22), min_size=2, max_size=2, unique=True).map(lambda e: np.sort(e) / 2)


def approximate(
    columns: list[np.ndarray], thresholds: np.ndarray, centering: str = "median", weights: np.ndarray | None = None
) -> ColumnStats:
    """Statistics as if digests had put thresholds (columns, levels, outer pair) around wrong quantiles."""
    stats = describe([summarise(x, weights) for x in columns], centering)
    low, high = thresholds[..., :1], thresholds[..., 1:]
    placed = np.concatenate([low, (2 * low + high) / 3, (low + 2 * high) / 3, high], axis=-1)
    wrong = np.full(len(columns), 77.0)
    return replace(
        stats, exact=np.zeros(len(columns), dtype=bool), thresholds=placed, q25=wrong, q50=wrong + 1, q75=wrong + 2
    )


def looked_at(
    columns: list[np.ndarray], stats: ColumnStats, parts: int, weights: np.ndarray | None = None
) -> Vicinities:
    """What several blocks of rows have around the quantiles, as one."""
    cut = np.array_split(np.arange(columns[0].size), parts)
    return merge_vicinities(
        [
            gather([x[rows] for x in columns], stats.thresholds, None if weights is None else weights[rows])
            for rows in cut
        ]
    )


@given(values, edges, st.integers(1, 4))
def test_a_quantile_between_the_thresholds_or_next_to_them_becomes_exact_and_others_stay(drawn, pair, parts):
    x = np.array(drawn, dtype=float)
    stats = approximate([x], pair[None, None])
    found = refined(stats, "median", np.array([True]), looked_at([x], stats, parts))
    ordered = np.sort(x)
    around = ordered[[(x.size - 1) // 2, x.size // 2]]
    below, behind = ordered[ordered < pair[0]], ordered[ordered >= pair[1]]
    low = below.max(initial=-np.inf) if below.size else pair[0]
    high = behind.min(initial=np.inf) if behind.size else pair[1]
    if low <= around[0] and around[1] <= high:
        assert found.exact[0]
        assert found.q50[0] == pytest.approx(np.median(x), abs=1e-12)
        assert np.isnan(found.thresholds).all()
    else:
        assert not found.exact[0]
        assert found.q50[0] == 78.0
        np.testing.assert_array_equal(found.thresholds, stats.thresholds)
    assert (found.q25[0], found.q75[0]) == (77.0, 79.0), "no other quantile changes"


@given(values, st.integers(0, 2**32 - 1), edges, st.sampled_from([1.0, 0.3]))
def test_weights_count_as_repeated_rows_whatever_their_scale(drawn, seed, pair, scale):
    x = np.array(drawn, dtype=float)
    counts = np.random.default_rng(seed).integers(1, 4, x.size)
    assume(scale == 1.0 or x.size > 1)
    weights = counts * scale
    stats = approximate([x], pair[None, None], weights=weights)
    found = refined(stats, "median", np.array([True]), looked_at([x], stats, 2, weights))
    if scale == 1.0 and found.exact[0]:
        assert found.q50[0] == pytest.approx(np.median(np.repeat(x, counts)), abs=1e-12)
    exact = describe([summarise(x, weights)], "median")
    if found.exact[0]:
        assert found.q50[0] == pytest.approx(exact.q50[0], abs=1e-9)


def test_both_quartiles_of_a_column_must_be_placed():
    x = np.arange(41.0)
    near, far = [[9.0, 11.0], [29.0, 31.0]], [[9.0, 11.0], [35.0, 37.0]]
    stats = approximate([x, x, x], np.array([near, far, near]), "midhinge")
    where = np.array([True, True, False])
    found = refined(stats, "midhinge", where, looked_at([x, x], stats.subset(where), 3))
    assert found.exact.tolist() == [True, False, False]
    assert found.q25.tolist() == [10.0, 77.0, 77.0]
    assert found.q75.tolist() == [30.0, 79.0, 79.0]
    assert found.q50.tolist() == [78.0] * 3
    assert np.isnan(found.thresholds).all(axis=(1, 2)).tolist() == [True, False, False]
    assert not stats.exact.any(), "the argument is left as it was"
    assert stats.q25.tolist() == [77.0] * 3


def test_missing_values_are_around_no_quantile():
    x = np.array([np.nan, 1.0, np.inf, 2.0, -np.inf, 3.0])
    stats = approximate([x], np.array([[[1.5, 2.5]]]))
    found = refined(stats, "median", np.array([True]), looked_at([x], stats, 2))
    assert (found.exact[0], found.q50[0]) == (True, 2.0)


def test_vicinities_hold_distinct_values_weights_and_the_nearest_outside():
    x = np.array([5.0, 1.0, 3.0, 3.0, 4.0, 1.0, 9.0, 5.0, 0.0])
    weights = np.array([1.0, 2.0, 0.5, 0.25, 3.0, 4.0, 5.0, 6.0, 7.0])
    ((vicinity,),) = gather([x], np.array([[[3.0, 5.0]]]), weights).columns
    assert vicinity.under == 2.0 + 4.0 + 7.0
    assert (vicinity.points.tolist(), vicinity.weights.tolist()) == ([3.0, 4.0], [0.75, 3.0])
    assert (vicinity.nearest, vicinity.nearest_weights) == ((1.0, 5.0), (6.0, 7.0))


@given(values, edges, st.integers(2, 5))
def test_vicinities_of_parts_merge_to_those_of_all_rows(drawn, pair, parts):
    x = np.array(drawn, dtype=float)
    thresholds = pair[None, None]
    ((whole,),) = gather([x], thresholds, None).columns
    parted = [gather([part], thresholds, None) for part in np.array_split(x, parts)]
    ((merged,),) = merge_vicinities(parted).columns
    for name in ("under", "nearest", "nearest_weights"):
        assert getattr(merged, name) == getattr(whole, name), name
    assert merged.points.tolist() == whole.points.tolist()
    assert merged.weights.tolist() == whole.weights.tolist()


def test_blocks_of_columns_stand_side_by_side():
    thresholds = np.array([[[0.5, 1.5]]])
    one, other = (gather([np.array([v])], thresholds, None) for v in (0.0, 1.0))
    assert concatenate_vicinities([one, other]).columns == (one.columns[0], other.columns[0])


def test_columns_whose_outer_thresholds_are_far_apart_are_doubtful():
    stats = describe([summarise(np.array([0.0, 10.0, 20.0, 30.0, 40.0]))] * 5 + [summarise(np.full(5, 20.0))], "median")
    widths = np.array([1.9, 2.1, 2.1, 30.0, 2.0, 30.0])  # a tenth of 30 - 10 is the limit
    thresholds = 20.0 + widths[:, None, None] * np.array([-0.5, -0.4, 0.4, 0.5])
    exact = np.array([False, False, True, False, False, False])
    assert doubtful(replace(stats, thresholds=thresholds, exact=exact), "median").tolist() == [
        False,
        True,
        False,
        True,
        False,
        False,
    ]


def test_one_quartile_in_doubt_is_enough_and_means_are_never_in_doubt():
    stats = describe([summarise(np.arange(5.0))] * 2, "midhinge")
    thresholds = np.array([[[0.0, 0.1], [3.0, 3.1]], [[0.0, 0.1], [3.0, 4.0]]])
    wide = replace(stats, thresholds=thresholds, exact=np.zeros(2, dtype=bool))
    assert doubtful(wide, "midhinge").tolist() == [False, True]
    plain = describe([summarise(np.arange(5.0))] * 2, "mean")
    assert doubtful(plain, "mean").tolist() == [False, False]
    assert CENTERINGS["mean"].levels == ()
