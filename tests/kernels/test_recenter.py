"""Scores at the exact centres from sums at provisional ones, against numpy on all rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from one_pass import awkward_columns, awkward_outputs, exact_center, exact_cir, passed, refer, watch

from excir_dask.graph.closer import WIDE
from excir_dask.kernels.array_records import concatenated, replaced
from excir_dask.kernels.centers import CENTERINGS
from excir_dask.kernels.recenter import recentre
from excir_dask.kernels.reference import FLIP_EDGES


@pytest.mark.parametrize("weighted", ["not", "whole", "fractional"])
@pytest.mark.parametrize("centering", CENTERINGS)
@pytest.mark.parametrize(("rows", "pilot"), [(4000, 1000), (4000, None), (20_000, 5000)])
def test_no_score_is_further_from_the_exact_one_than_its_bound(rows, pilot, centering, weighted):
    rng = np.random.default_rng(rows + len(centering))
    z = rng.normal(size=rows)
    columns = awkward_columns(rng, z)
    w = {"not": None, "whole": rng.integers(1, 5, rows).astype(float), "fractional": rng.lognormal(size=rows)}[weighted]
    certain = []

    def center(v: np.ndarray) -> float:
        there = np.isfinite(v)
        return exact_center(v[there], centering, None if w is None else w[there])

    centers = [center(x) for x in columns.values()]
    for kind, y in awkward_outputs(rng, z).items():
        found, my = passed(list(columns.values()), y, centering, w, pilot, blocks=3), center(y)
        for j, (name, x) in enumerate(columns.items()):
            error = abs(found.scores.cir[0, j] - exact_cir(x, y, centering, w, (centers[j], my)))
            assert error <= found.scores.center_bound[0, j] + 1e-12, (name, kind)
            certain.append(found.scores.center_bound[0, j] <= WIDE)
    if centering == "midhinge" and rows > 4000:
        assert np.mean(certain) > 0.5, "the bounds say something"


@given(st.integers(2, 40), st.integers(1, 40), st.integers(0, 2**32 - 1), st.sampled_from(sorted(CENTERINGS)))
@settings(max_examples=200)
def test_a_bound_holds_for_few_rows_with_many_ties(rows, pilot, seed, centering):
    rng = np.random.default_rng(seed)
    x, y = rng.choice([0.0, 0.0, 1.0, -2.0, 3.0], rows), rng.choice([0.0, 0.0, 1.0, -1.0, 0.5], rows)
    found = passed([x], y, centering, pilot=pilot)
    assert abs(found.scores.cir[0, 0] - exact_cir(x, y, centering)) <= found.scores.center_bound[0, 0] + 1e-12


@given(st.integers(1, 6), st.integers(0, 2**32 - 1))
@settings(max_examples=10)
def test_scores_do_not_depend_on_how_rows_are_split(blocks, seed):
    rng = np.random.default_rng(0)
    z = rng.normal(size=3000)
    columns, y = list(awkward_columns(rng, z).values()), z + rng.normal(size=z.size)
    whole = passed(columns, y, pilot=800)
    parts = np.array_split(np.random.default_rng(seed).permutation(z.size), blocks)
    split = passed(columns, y, pilot=800, blocks=parts)
    np.testing.assert_allclose(split.scores.cir, whole.scores.cir, atol=1e-12)
    np.testing.assert_allclose(split.features.center, whole.features.center, rtol=1e-12)


def test_constant_columns_score_exactly_one_half():
    rng = np.random.default_rng(0)
    y = rng.normal(size=500)
    found = passed([np.full(500, 0.1), np.full(500, np.nan), y], y)
    assert found.scores.cir[0, :2].tolist() == [0.5, 0.5]
    assert found.scores.center_bound[0, :2].tolist() == [0.0, 0.0]
    assert passed([y], np.full(500, 0.3)).scores.cir.tolist() == [[0.5]]


@given(st.floats(-0.6, 0.6), st.floats(-0.6, 0.6), st.integers(0, 2**32 - 1))
def test_sums_at_moved_centres_are_those_of_numpy_within_what_is_uncertain(right, up, seed):
    rng = np.random.default_rng(seed)
    x, y = np.round(rng.normal(size=(2, 300)), 1)
    references = refer([x], complete=False), refer([y], complete=False)
    state, outputs = watch([x], y[None], references)
    centers = references[0].center + right, references[1].center + up
    sums = recentre(state, outputs, references, centers)
    p = (x - centers[0]) * (y - centers[1])
    assert sums.numerator[0, 0] == pytest.approx(p.sum(), abs=1e-9)
    assert abs(sums.denominator[0, 0] - np.abs(p).sum()) <= sums.uncertain[0, 0] + 1e-9
    assert sums.abs_x[0] >= np.abs(x - centers[0]).sum() - 1e-9
    assert sums.abs_y[0, 0] >= np.abs(y - centers[1]).sum() - 1e-9


def test_negative_zeros_are_on_the_same_side_of_a_centre_as_zeros():
    rng = np.random.default_rng(0)
    y = rng.normal(size=400)
    zeros = np.where(rng.random(400) < 0.5, -0.0, 0.0)
    for x, output in ((np.where(rng.random(400) < 0.4, zeros, y), y), (y, np.where(rng.random(400) < 0.4, zeros, y))):
        references = tuple(replace(refer([v]), center=np.zeros(1)) for v in (x, output))
        edges = np.full((1, FLIP_EDGES), np.inf)
        edges[0, :3] = [-0.2, 0.0, 0.2]
        references = tuple(replace(reference, flip_edges=edges) for reference in references)
        slots = np.ones_like(references[0].slots)
        references = tuple(replace(reference, slots=slots) for reference in references)
        state, outputs = watch([x], output[None], references)
        sums = recentre(state, outputs, references, (np.array([0.1]), np.array([0.05])))
        exact = np.abs((x - 0.1) * (output - 0.05)).sum()
        assert abs(sums.denominator[0, 0] - exact) <= sums.uncertain[0, 0] + 1e-9


def test_sums_of_some_columns_can_be_replaced_and_stand_side_by_side():
    rng = np.random.default_rng(0)
    columns = [rng.standard_normal(50) + j for j in range(4)]
    whole = passed(columns, columns[0]).sums
    joined = concatenated([passed(columns[:1], columns[0]).sums, passed(columns[1:], columns[0]).sums], axis=-1)
    np.testing.assert_array_equal(joined.numerator, whole.numerator)
    other = passed([columns[0], columns[2]], columns[0]).sums
    mixed = replaced(whole, np.array([False, True, False, True]), other, axis=-1)
    np.testing.assert_array_equal(mixed.denominator, whole.denominator[:, [0, 0, 2, 2]])
    np.testing.assert_array_equal(mixed.abs_x, whole.abs_x[[0, 0, 2, 2]])


def framed(centers: tuple[float, float], edges: tuple[list[float], list[float]]) -> list:
    """References with given provisional centres and edges of cells around them."""
    found = []
    for center, around in zip(centers, edges, strict=True):
        reference = refer([np.linspace(-4.0, 4.0, 200)])
        flips = np.full((1, FLIP_EDGES), np.inf)
        flips[0, : len(around)] = around
        slots = np.ones_like(reference.slots)
        found.append(replace(reference, center=np.array([center]), flip_edges=flips, slots=slots))
    return found


def moved(x: np.ndarray, y: np.ndarray, references: list, centers: tuple[float, float]):
    """The sums at final centres, and D from all rows."""
    state, outputs = watch([x], y[None], tuple(references))
    found = recentre(state, outputs, tuple(references), (np.array([centers[0]]), np.array([centers[1]])))
    return found, np.abs((x - centers[0]) * (y - centers[1])).sum()


@given(st.integers(0, 2**32 - 1), st.floats(-0.95, 0.95), st.floats(-0.95, 0.95))
@settings(max_examples=200)
def test_sums_at_any_centre_in_reach_are_within_what_is_uncertain(seed, dx, dy):
    """Also where most rows lie on the provisional centre of the output: they move with it."""
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(-2, 2, 60), np.where(rng.random(60) < 0.8, 0.0, rng.uniform(-2, 2, 60))
    references = framed((0.0, 0.0), ([-1.0, 0.0, 1.0], [-1.0, 0.0, 1.0]))
    found, exact = moved(x, y, references, (dx, dy))
    assert abs(found.denominator[0, 0] - exact) <= found.uncertain[0, 0] + 1e-9
    assert found.numerator[0, 0] == pytest.approx(((x - dx) * (y - dy)).sum(), abs=1e-9)


@pytest.mark.parametrize("final", [-1.0, -0.5, 0.0, 0.5])
def test_a_centre_on_an_edge_leaves_nothing_uncertain(final):
    rng = np.random.default_rng(0)
    x, y = rng.integers(-8, 9, 300) / 4, rng.uniform(-2, 2, 300)
    references = framed((0.0, 0.0), ([-1.0, -0.5, 0.0, 0.5, 1.0], [-1.0, 0.0, 1.0]))
    found, exact = moved(x, y, references, (final, 0.0))
    assert found.uncertain[0, 0] == 0.0
    assert found.denominator[0, 0] == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("dx", [-1.3, -0.4, 0.0, 0.3, 1.2])
@pytest.mark.parametrize("dy", [-0.8, 0.0, 0.45, 1.1])
def test_what_is_uncertain_are_the_rows_of_the_cells_that_the_final_centres_lie_in(dx, dy):
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-2, 2, (2, 500))
    edges = [-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5], [-1.25, -0.6, 0.0, 0.6, 1.25]
    found, exact = moved(x, y, framed((0.0, 0.0), edges), (dx, dy))

    def doubt(v: np.ndarray, final: float, around: list[float], other: np.ndarray, moved: float) -> tuple[float, int]:
        """What the rows of the cell of the final centre may come to beyond what evenly filled ones do; rows up to it.

        Of a share of these rows the sign changes: that of what lies between the cell's edge and the final centre.
        """
        if final == 0.0:
            return 0.0, 0
        below, above = max(e for e in around if e <= final), min(e for e in around if e > final)
        inside, wide = (v >= below) & (v < above), final - below if final > 0 else above - final
        passed_over = (v >= 0.0) & (v < above) if final > 0 else (v >= below) & (v < 0.0)
        most = 2.0 * wide * (np.abs(other[inside]).sum() + abs(moved) * inside.sum())
        share = wide / (above - below)
        guess = 2.0 * share * wide / 2.0 * abs((np.sign(other[inside]) * (other[inside] - moved)).sum())
        return most - guess, int(passed_over.sum())

    (of_x, up_to_x), (of_y, up_to_y) = doubt(x, dx, edges[0], y, dy), doubt(y, dy, edges[1], x, dx)
    twice = 4.0 * abs(dx * dy) * min(up_to_x, up_to_y)
    assert found.column_doubt[0, 0] == pytest.approx(of_x + twice, rel=1e-12)
    assert found.output_doubt[0, 0] == pytest.approx(of_y, rel=1e-12)
    assert abs(found.denominator[0, 0] - exact) <= found.uncertain[0, 0] + 1e-9
    assert found.abs_x[0] == pytest.approx(np.abs(x).sum() + abs(dx) * x.size)
    assert found.abs_y[0, 0] == pytest.approx(np.abs(y).sum() + abs(dy) * y.size)
    p = x * y
    assert (found.squares[0, 0], found.signed_squares[0, 0]) == pytest.approx(((p**2).sum(), (p * np.abs(p)).sum()))
    assert found.weight.tolist() == [x.size]


@pytest.mark.parametrize("final", [-0.6, 0.6, 1.2])
def test_an_outputs_centre_on_an_edge_leaves_nothing_uncertain(final):
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-2, 2, (2, 300))
    references = framed((0.0, 0.0), ([-1.0, 0.0, 1.0], [-1.25, -0.6, 0.0, 0.6, 1.2, 1.3]))
    found, exact = moved(x, y, references, (0.0, final))
    assert found.uncertain[0, 0] == 0.0
    assert found.denominator[0, 0] == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("final", [-1.01, 1.0, 1.5])
def test_nothing_is_known_of_a_centre_beyond_all_cells(final):
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-2, 2, (2, 300))
    references = framed((0.0, 0.0), ([-1.0, 0.0, 1.0], [-1.0, 0.0, 1.0]))
    assert moved(x, y, references, (final, 0.0))[0].uncertain.tolist() == [[np.inf]]
    assert moved(x, y, references, (0.0, final))[0].uncertain.tolist() == [[np.inf]]
    assert np.isfinite(moved(x, y, references, (-1.0, 0.99))[0].uncertain).all()


def test_both_centres_on_edges_give_the_exact_sum_where_no_row_lies_around_both():
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-2, 2, (2, 300))
    alone = ~((x >= 0) & (x < 0.5) & (y >= 0) & (y < 0.6)) & ~((x > 0) & (y > 0) & (rng.random(300) < 0.7))
    x, y = x[alone], y[alone]  # products lie unevenly around zero, so that the product of both shifts counts
    found, exact = moved(x, y, framed((0.0, 0.0), ([-1.0, 0.0, 0.5, 1.0], [-1.0, 0.0, 0.6, 1.2])), (0.5, 0.6))
    assert found.denominator[0, 0] == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("final", [-0.7, -0.2, 0.1, 0.4, 0.9])
def test_rows_of_the_doubtful_cell_are_taken_to_lie_evenly(final):
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-2, 2, 20_000), rng.normal(size=20_000)
    references = framed((0.0, 0.0), ([-1.0, 0.0, 1.0], [-1.0, 0.0, 1.0]))
    for centers in ((final, 0.0), (0.0, final)):
        values = (x, y) if centers[0] else (y, x)
        found, exact = moved(*values, references, centers)
        assert abs(found.denominator[0, 0] - exact) <= 0.1 * found.uncertain[0, 0]


def test_a_mean_that_only_rounds_differently_is_the_provisional_one():
    rng = np.random.default_rng(0)
    flag, y = (rng.random(5000) < 0.001) * 0.1, rng.normal(size=5000)
    for blocks in (1, 3, 7, 50):
        found = passed([flag, y], y, "mean", blocks=blocks)
        np.testing.assert_array_equal(found.features.center, found.references[0].center)
        assert found.scores.center_bound.max() < 1e-9


@pytest.mark.parametrize("centering", ["midhinge", "median", "trimmed"])
def test_the_centre_of_a_column_that_mostly_has_one_value_is_certain(centering):
    rng = np.random.default_rng(0)
    rare = np.arange(3000) % 500 == 0
    x, y = np.where(rare, 1.0, 0.1), np.where(rare, 0.3, rng.choice([0.3, 0.3, 0.3, 0.3, 0.3, 2.0], 3000))
    found = passed([x], y, centering)
    assert (found.features.error[0], found.outputs.error[0]) == (0.0, 0.0)
    assert (found.scores.cir[0, 0], found.scores.center_bound[0, 0]) == (0.5, 0.0), "nothing moves, and that is known"
