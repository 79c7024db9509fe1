"""What is fixed before the rows are read."""

from __future__ import annotations

import numpy as np
import pytest
from one_pass import awkward_columns, refer

from excir_dask.kernels.centers import CENTERINGS
from excir_dask.kernels.reference import (
    BUCKETS,
    COARSE,
    FLIP_EDGES,
    PARTS,
    REGIONS,
    SPARE,
    bucket,
    concatenate_references,
)
from excir_dask.kernels.summaries import summarise


@pytest.fixture(scope="module")
def columns() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {**awkward_columns(rng, rng.normal(size=5000)), "nothing": np.full(5000, np.nan), "one row": np.full(1, 3.0)}


@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize("centering", CENTERINGS)
def test_every_part_of_a_reference_is_in_order_and_fits(columns, centering, complete):
    found = refer(list(columns.values()), centering, complete)
    for j, name in enumerate(columns):
        edges, flips = found.edges[j][np.isfinite(found.edges[j])], found.flip_edges[j]
        flips = flips[np.isfinite(flips)]
        assert (np.diff(edges) > 0).all(), name
        assert (np.diff(flips) > 0).all(), name
        assert flips.size <= FLIP_EDGES
        assert (np.diff(found.slots[j].astype(int)) >= 0).all(), name
        assert found.slots[j, -1] <= 2 * REGIONS
        assert (np.diff(found.coarse[j].astype(int)) >= 0).all(), name
        assert found.coarse[j, -1] < COARSE
        assert np.isfinite([found.center[j], found.origin[j], found.scale[j]]).all(), name
        assert found.center[j] in flips, name
        assert np.isinf(found.edges[j, -SPARE:]).all(), name
        assert np.isinf(found.flip_edges[j, -SPARE:]).all(), name
        slots = [found.slots[j, bucket(edge, found.origin[j], found.scale[j])] for edge in edges]
        for region, (origin, scale) in enumerate(found.steps[j]):
            mine = [edge for edge, slot in zip(edges, slots, strict=True) if slot == 2 * region + 1]
            below = sum(slot <= 2 * region for slot in slots)
            places = np.clip((np.array(mine) - origin) * scale, 0, PARTS - 1).astype(int)
            expected = below + np.searchsorted(places, np.arange(PARTS + 1))
            assert found.first_edge[j, region].tolist() == expected.tolist(), name


def coarse_counts(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The coarse cell of each value, and how many values each has."""
    found = refer([x])
    cells = found.coarse[0][[bucket(v, found.origin[0], found.scale[0]) for v in x]]
    return cells, np.bincount(cells, minlength=COARSE)


@pytest.mark.parametrize("seed", range(10))
def test_coarse_cells_are_about_equally_full(seed):
    rng = np.random.default_rng(seed)
    for x in (rng.normal(size=20_000), rng.random(20_000), rng.lognormal(size=20_000)):
        counts = coarse_counts(x)[1]
        assert counts.min() > 0
        assert counts.max() < 1.5 * x.size / COARSE


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("share", [0.1, 0.3, 0.6, 0.95])
def test_heavy_values_have_coarse_cells_of_their_own(seed, share):
    rng = np.random.default_rng(seed)
    x = np.where(rng.random(20_000) < share, 0.0, rng.normal(1.0, 1.0, 20_000).round(3))
    cells, counts = coarse_counts(x)
    mine = cells[x == 0][0]
    assert (cells[x == 0] == mine).all()
    assert counts[mine] < (x == 0).sum() + 0.01 * x.size, "neighbours within a bucket's width at most"
    assert np.count_nonzero(counts) >= COARSE - 2


def test_few_values_are_coarse_cells_each():
    x = np.repeat(np.arange(12.0), np.arange(1, 13))
    assert np.count_nonzero(coarse_counts(x)[1]) >= 10
    for counts in ([95, 5], [50, 50], [5, 95], [1, 99]):
        found = coarse_counts(np.repeat([0.0, 1.0], counts))[1]
        assert found[found > 0].tolist() == counts
    found = refer([np.full(10, 3.0)])
    cells = found.coarse[0][[bucket(v, found.origin[0], found.scale[0]) for v in (2.0, 3.0, 4.0)]]
    assert len(set(cells)) == 3, "what differs from a constant is seen"


@pytest.mark.parametrize("centering", ["mean", "trimmed"])
def test_a_centre_of_few_values_has_cells_on_both_sides(centering):
    """A pass finds the same centre up to rounding, which may be on either side."""
    x = np.repeat([0.0, 1.0], [250, 150])
    found = refer([x], centering)
    assert found.flip_edges[0, 0] < found.center[0] == 0.375
    assert found.flip_edges[0][np.isfinite(found.flip_edges[0])][-1] > found.center[0]


@pytest.mark.parametrize("centering", CENTERINGS)
def test_quartiles_of_all_rows_lie_in_odd_slots(columns, centering):
    found = refer(list(columns.values()), centering)
    for j, (name, x) in enumerate(columns.items()):
        if np.isfinite(x).any():
            for value in np.quantile(x[np.isfinite(x)], [0.25, 0.75], method="nearest"):
                assert found.slots[j, bucket(value, found.origin[j], found.scale[j])] % 2 == 1, name


def test_equal_references_have_the_same_id_and_others_do_not(columns):
    some = list(columns.values())
    assert refer(some).id == refer(some).id
    assert refer(some).id != refer(some, "median").id
    assert refer(some).id != refer([*some[1:], some[0]]).id
    assert refer(some).subset(slice(0, 2)).id == refer(some).id


def test_references_of_column_blocks_are_that_of_all_columns(columns):
    some = list(columns.values())
    whole, joined = refer(some), concatenate_references([refer(some[:3]), refer(some[3:])])
    assert whole.id == joined.id
    np.testing.assert_array_equal(whole.edges, joined.edges)


def test_a_smaller_pilot_has_wider_brackets():
    x = np.random.default_rng(0).standard_normal(50_000)
    widths = []
    for rows in (500, 5000, 50_000):
        found = refer([x[:rows]], complete=False)
        inside = found.slots[0] % 2 == 1
        buckets = np.clip((x - found.origin[0]) * found.scale[0], 0, BUCKETS - 1).astype(int)
        widths.append(inside[buckets].mean())
    assert widths[0] > widths[1] > widths[2] > 0.01
    assert summarise(x).n == 50_000
