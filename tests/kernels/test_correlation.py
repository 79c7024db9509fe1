"""Groups found by correlation: what is planted is found, and blocks, ties and gaps change nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from scipy.stats import rankdata, spearmanr

from excir_dask.errors import DataError, UsageError
from excir_dask.kernels import correlation, spearman
from excir_dask.kernels.correlation import Cost, correlated_groups, correlation_cost, linkage_bytes
from excir_dask.kernels.spearman import MOST_ROWS, RankedColumns, doubled_ranks


def planted(rng, rows=1000, columns=200, size=5, count=8, r=0.95):
    """Normal columns, and where ``count`` blocks of ``size`` of them stand that share a factor."""
    X = rng.standard_normal((rows, columns))
    where = rng.permutation(columns)[: size * count].reshape(count, size)
    for block in where:
        X[:, block] = np.sqrt(r) * rng.standard_normal((rows, 1)) + np.sqrt(1 - r) * X[:, block]
    return X, sorted(sorted(block.tolist()) for block in where)


def one_by_one(X, threshold):
    """The same by scipy's own functions on the whole matrix."""
    distance = 1.0 - np.abs(spearmanr(X).statistic)
    np.fill_diagonal(distance, 0.0)
    labels = fcluster(linkage(squareform(distance, checks=False), "complete"), 1.0 - threshold, "distance")
    groups = [np.flatnonzero(labels == label).tolist() for label in np.unique(labels)]
    return sorted(group for group in groups if len(group) > 1)


def chained(rng, rows, columns):
    """Columns of which each resembles its neighbours, so that components are large and must be parted."""
    return np.cumsum(rng.standard_normal((rows, columns)), axis=1)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(correlation, "_BLOCK", 7)


@pytest.mark.parametrize("seed", range(3))
def test_planted_blocks_are_found_exactly(seed):
    X, blocks = planted(np.random.default_rng(seed))
    assert correlated_groups(X, 0.9) == blocks


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.8, 0.9, 0.97])
@pytest.mark.parametrize("seed", range(4))
def test_groups_equal_those_of_the_whole_matrix(seed, threshold, small_blocks):
    rng = np.random.default_rng(seed)
    rough = planted(rng, rows=60, columns=40, size=3, count=6, r=0.8)[0]
    for X in (rough, chained(rng, 80, 50), np.round(3 * chained(rng, 200, 30))):
        assert correlated_groups(X, threshold) == one_by_one(X, threshold)


def test_blocks_do_not_change_groups(monkeypatch):
    X = chained(np.random.default_rng(0), 100, 90)
    X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    found = correlated_groups(X, 0.8)
    assert max(map(len, found)) > 3
    for block in (1, 2, 13, 89, 90):
        monkeypatch.setattr(correlation, "_BLOCK", block)
        assert correlated_groups(X, 0.8) == found


def test_columns_that_move_against_each_other_belong_together():
    x = np.random.default_rng(0).standard_normal(200)
    assert correlated_groups(np.column_stack([x, -x, -np.exp(x)])) == [[0, 1, 2]]


def test_outliers_do_not_decide():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 4))
    X[:, 1] = X[:, 0] + 0.1 * X[:, 1]
    X[0] = [1e12, -1e12, 1e12, 1e12]  # plain correlation would part 0 from 1 and join 2 and 3
    assert correlated_groups(X) == [[0, 1]]


def test_missing_values_part_no_pair():
    rng = np.random.default_rng(0)
    X, blocks = planted(rng, rows=3000, columns=60, count=4)
    X[rng.random(X.shape) < 0.15] = np.nan
    X[rng.random(X.shape) < 0.01] = np.inf
    assert correlated_groups(X, 0.9) == blocks


def test_missing_together_is_no_correlation():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 2))
    X[:400] = np.nan
    assert correlated_groups(X, 0.5) == []


def test_columns_that_share_few_rows_are_not_grouped():
    x = np.random.default_rng(0).standard_normal(400)
    left, right = x.copy(), x.copy()
    left[:180] = np.nan
    right[220:] = np.nan
    assert correlated_groups(np.column_stack([left, right])) == []
    assert correlated_groups(np.column_stack([left, left, x])) == [[0, 1, 2]]


def test_columns_with_a_handful_of_values_are_in_no_group():
    X = np.full((100, 2), np.nan)
    X[:5] = np.arange(5.0)[:, None]
    assert correlated_groups(X) == []
    assert correlated_groups(X[:5]) == [[0, 1]]


def test_constant_and_missing_columns_are_in_no_group():
    x = np.random.default_rng(0).standard_normal(100)
    constant, gone = np.ones(100), np.full(100, np.nan)
    half = np.where(x > 0, 7.0, np.nan)
    assert correlated_groups(np.column_stack([constant, gone, x, constant, half, gone, x])) == [[2, 6]]
    assert correlated_groups(np.column_stack([constant, constant])) == []


@pytest.mark.parametrize("shape", [(0, 3), (1, 3), (5, 0), (5, 1)])
def test_tables_without_pairs_have_no_groups(shape):
    assert correlated_groups(np.zeros(shape)) == []


def test_order_of_rows_does_not_matter():
    rng = np.random.default_rng(0)
    X = np.round(chained(rng, 300, 40), 1)
    X[rng.random(X.shape) < 0.05] = np.nan
    found = correlated_groups(X, 0.8)
    assert found
    for _ in range(5):
        assert correlated_groups(rng.permutation(X), 0.8) == found


def test_correlations_are_the_same_bit_for_bit_in_whatever_order_they_are_summed():
    rng = np.random.default_rng(0)
    X = chained(rng, 5000, 30)
    X[rng.random(X.shape) < 0.05] = np.nan
    seen = set()
    for _ in range(4):
        ranked = RankedColumns.of(rng.permutation(X))
        seen.add(spearman.correlation(ranked.block(slice(0, 20)), ranked.block(slice(0, 30))).tobytes())
    assert len(seen) == 1


def test_a_threshold_of_one_takes_equal_orders_only():
    x = np.random.default_rng(0).standard_normal(1000)
    almost = x.copy()
    almost[[np.argmin(x), np.argmax(x)]] = almost[[np.argmax(x), np.argmin(x)]]
    assert correlated_groups(np.column_stack([x, almost, 3 - x**3, almost]), 1.0) == [[0, 2], [1, 3]]


@pytest.mark.parametrize("threshold", [0.0, -0.5, 1.0000001, np.nan, 90])
def test_a_threshold_that_is_none_is_named(threshold):
    with pytest.raises(UsageError, match=r"threshold is .* above 0 and up to 1"):
        correlated_groups(np.zeros((3, 2)), threshold)


def test_a_sample_of_wrong_shape_is_named():
    with pytest.raises(UsageError, match="1 dimensions"):
        correlated_groups(np.zeros(3))
    with pytest.raises(UsageError, match="300,001 rows"):
        correlated_groups(np.broadcast_to(0.0, (MOST_ROWS + 1, 1)))


def test_a_component_too_large_to_be_parted_is_refused_before_memory_is_taken(monkeypatch):
    X = chained(np.random.default_rng(0), 100, 60)[:, 10:]
    monkeypatch.setattr(correlation, "LINKAGE_MEMORY", linkage_bytes(49))
    with pytest.raises(DataError, match=r"50 columns are connected by correlations of 0.6.*iB.*raise the threshold"):
        correlated_groups(X, 0.6)


def test_columns_all_alike_need_no_linkage(monkeypatch):
    monkeypatch.setattr(correlation, "LINKAGE_MEMORY", 0)
    x = np.random.default_rng(0).standard_normal((100, 1))
    assert correlated_groups(np.repeat(x, 50, axis=1)) == [list(range(50))]


@given(st.lists(st.integers(-5, 5) | st.floats(-1e300, 1e300), max_size=40))
def test_ranks_are_scipys_doubled_and_centred(values):
    x = np.array(values, dtype=np.float64)
    assert doubled_ranks(x).tolist() == (2 * rankdata(x) - x.size - 1).tolist()


@pytest.mark.parametrize(("rows", "kind"), [(32_767, np.int16), (32_768, np.int32)])
def test_ranks_fit_their_type(rows, kind):
    ranked = RankedColumns.of(np.arange(float(rows))[:, None])
    assert ranked.values.dtype == kind
    assert (ranked.values[0, 0], ranked.values[0, -1]) == (1 - rows, rows - 1)


def test_products_of_the_longest_sample_are_exact():
    assert MOST_ROWS * (MOST_ROWS**2 - 1) // 3 < 2**53


def test_the_cost_is_said_in_one_sentence():
    cost = correlation_cost(2000, 500)
    assert str(cost).startswith("finding groups among 2,000 columns takes about ")
    assert str(cost).endswith("iB on the client")
    assert cost.bytes > 2000 * 500 * 10
    assert correlation_cost(2000, 500, missing=True).operations == 3 * cost.operations
    assert "1 column takes about 1,200 s and 11.18 GiB" in str(Cost(1, 1, 12 * 10**9, 0, 1200.4))
