"""Scores of awkward lakes against numpy on all rows, from a pilot that reads a small part of them."""

from __future__ import annotations

import pytest
from accuracy import BOUND, ERROR, EXACT, FAR, FAR_ROUNDING, ROUNDING, Accuracy, accuracy, small_pilots, try_lake
from awkward_lakes import KINDS, kind_of_lake

from excir_dask.kernels.centers import CENTERINGS
from excir_dask.lake import plan

pytestmark = pytest.mark.usefixtures("synchronous")

SEEDS = range(10)


@pytest.fixture(autouse=True)
def many_slices(monkeypatch):
    """Slices that a tiny lake has many of."""
    monkeypatch.setattr(plan, "MIN_BUDGET", 2**16)


def check(found: Accuracy, error: float) -> None:
    assert found.beyond == 0, found.table
    assert found.error <= error, found.table
    assert found.bound <= BOUND, found.table


@pytest.mark.parametrize("centering", CENTERINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_scores_of_awkward_lakes_are_within_their_bounds(tmp_path, kind, centering):
    with small_pilots():
        check(accuracy(kind_of_lake(kind, 0, rows=6000), tmp_path / "lake", centering, "100KiB"), EXACT)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS[:2])  # python -m tests.accuracy tries more
@pytest.mark.parametrize("centering", CENTERINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_scores_of_larger_awkward_lakes_are_exact_to_five_digits(tmp_path, kind, centering, seed):
    """With pilots as they are: they read a part of any lake with more rows than these have."""
    lake = kind_of_lake(kind, seed, rows=150_000).laid_out(12, 2500)
    check(accuracy(lake, tmp_path / "lake", centering), EXACT)


LAYOUTS = [(1, 10**6, None), (1, 500, None), (6, 250, None), (12, 1000, "margins"), (12, 250, "y"), (3, 2000, "normal")]


@pytest.mark.parametrize("seed", SEEDS)
def test_margins_of_few_leaves_score_alike_in_any_layout(tmp_path, seed):
    lake, centering = kind_of_lake("margins", seed, rows=6000), list(CENTERINGS)[seed % 4]
    with small_pilots():
        found = [accuracy(lake.laid_out(*layout), tmp_path / str(i), centering) for i, layout in enumerate(LAYOUTS)]
    for one in found:
        check(one, EXACT)


@pytest.mark.parametrize("centering", CENTERINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_small_tables_are_exact(tmp_path, kind, centering):
    found = accuracy(kind_of_lake(kind, 0, rows=1500), tmp_path / "lake", centering)
    assert found.error <= (FAR_ROUNDING if kind == FAR else ROUNDING), found.table


@pytest.mark.parametrize("seed", [7, 10, 23, 51, 110, 253, 937, 1450])
def test_lakes_that_the_fuzz_found_stay_mended(tmp_path, seed):
    """Means that round differently in a second look, outputs whose own cells decide, weights, columns of few values,
    quantiles that are means over many cells, pairs without any co-movement."""
    check(try_lake(seed, tmp_path / "lake"), ERROR)


@pytest.mark.slow
def test_a_fuzz_of_random_lakes_finds_no_score_beyond_its_bound(tmp_path):
    for seed in range(100):
        found = try_lake(seed, tmp_path / str(seed))
        assert (found.beyond, found.error <= ERROR) == (0, True), (seed, found.table)
