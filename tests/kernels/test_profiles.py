"""Profiles from coarse counts, against numpy on all rows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from one_pass import awkward_columns, awkward_outputs, refer, watch

from excir_dask.kernels.profiles import CoarseCells, coarse_cells, output_quantiles, round_number
from excir_dask.kernels.reference import BUCKETS, COARSE, Reference, places
from excir_dask.kernels.state import merge_columns, merge_state


def cells_of(x: np.ndarray, reference: Reference, j: int) -> np.ndarray:
    """The coarse cell of each value."""
    return reference.coarse[j][places(x, float(reference.origin[j]), float(reference.scale[j]), BUCKETS)]


def seen(columns, outputs, weights=None, blocks=3, pilot=None):
    """States of rows in blocks, and the references; ``pilot`` is how many rows the references are from."""
    rows = outputs.shape[1]
    first = slice(None, pilot)
    features = refer([x[first] for x in columns], complete=pilot is None)
    others = refer([y[first] for y in outputs], complete=pilot is None)
    edges = np.linspace(0, rows, blocks + 1).astype(int)
    found = [
        watch(
            [x[a:b] for x in columns],
            outputs[:, a:b],
            (features, others),
            None if weights is None else weights[a:b],
            joint=True,
        )
        for a, b in pairwise(edges)
    ]
    return merge_state([state for state, _ in found]), merge_columns([side for _, side in found]), features, others


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("pilot", [None, 500])
@pytest.mark.parametrize("seed", range(5))
def test_cells_hold_the_rows_and_limits_that_numpy_finds(seed, pilot, weighted):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=3000)
    columns = awkward_columns(rng, z)
    w = rng.lognormal(size=z.size) if weighted else None
    state, _, reference, _ = seen(list(columns.values()), z[None], w, pilot=pilot)
    for j, (name, x) in enumerate(columns.items()):
        there = np.isfinite(x)
        mine, masses = x[there], np.ones(there.sum()) if w is None else w[there]
        found, mine_cells = coarse_cells(state.columns, reference, j), cells_of(mine, reference, j)
        assert found.place.tolist() == np.unique(mine_cells).tolist(), name
        for i, place in enumerate(found.place):
            inside = mine_cells == place
            assert found.weight[i] == pytest.approx(masses[inside].sum()), name
            assert found.low[i] <= mine[inside].min() <= mine[inside].max() <= found.high[i], name
            if np.isfinite(found.value[i]):
                assert np.abs(mine[inside] - found.value[i]).max() <= 1.1 / reference.scale[j], name
            elif pilot is None:
                assert np.ptp(mine[inside]) > 0, (name, "a cell of one value says so")


@pytest.mark.parametrize(
    "values", [[0.0, 1.0], [-1.0, 0.0, 2.5], np.arange(1.0, 13.0), [1e9, 1e9 + 3.0], [0.1, 0.2, 0.3], [7.0]]
)
def test_few_values_are_cells_with_their_value(values):
    rng = np.random.default_rng(0)
    x = rng.choice(values, 4000)
    state, _, reference, _ = seen([x], rng.normal(size=(1, x.size)))
    found = coarse_cells(state.columns, reference, 0)
    assert found.value.tolist() == pytest.approx(sorted(values), abs=0)
    assert found.weight.tolist() == [np.count_nonzero(x == value) for value in sorted(values)]
    assert found.two == (len(values) == 2)


def test_cells_of_whole_numbers_are_named_after_them():
    x = np.random.default_rng(0).integers(0, 24, 4000).astype(float)
    state, _, reference, _ = seen([x], x[None])
    names = coarse_cells(state.columns, reference, 0).names
    hours = [int(end) for name in names for end in name.split(" to ")]
    assert hours == sorted(hours)
    assert {0, 23} <= set(hours) <= set(range(24))


@pytest.mark.parametrize("share", [0.001, 0.02, 0.3, 0.999])
def test_a_rare_flag_is_two_cells(share):
    x = (np.arange(20_000) < share * 20_000).astype(float)
    state, _, reference, _ = seen([x], np.random.default_rng(0).normal(size=(1, x.size)), pilot=1000)
    found = coarse_cells(state.columns, reference, 0)
    assert found.two
    assert found.value.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("seed", range(5))
def test_quartiles_lie_in_the_cells_of_the_exact_ones(seed):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=4000)
    columns = {name: x for name, x in awkward_columns(rng, z).items() if np.isfinite(x).any()}
    kinds = awkward_outputs(rng, z)
    outputs = np.array(list(kinds.values()))
    state, others, reference, output_reference = seen(list(columns.values()), outputs)
    levels = (0.25, 0.5, 0.75)
    for k, kind in enumerate(kinds):
        out = coarse_cells(others, output_reference, k)
        home = cells_of(outputs[k], output_reference, k)
        for j, (name, x) in enumerate(columns.items()):
            cells = coarse_cells(state.columns, reference, j)
            found = output_quantiles(state.pairs.joint[k, j, cells.place], out, levels)
            there = np.isfinite(x)
            mine, y = cells_of(x[there], reference, j), outputs[k][there]
            for i, place in enumerate(cells.place):
                exact = np.quantile(y[mine == place], levels, method="inverted_cdf")
                at = [np.flatnonzero(out.place == home[outputs[k] == value][0])[0] for value in exact]
                slack = 1e-9 * (1.0 + np.abs(exact)) + 1.1 / output_reference.scale[k]
                assert (found[i] >= out.low[at] - slack).all(), (name, kind)
                assert (found[i] <= out.high[at] + slack).all(), (name, kind)
                assert (np.diff(found[i]) >= 0).all(), (name, kind)


@pytest.mark.parametrize("seed", range(10))
def test_quartiles_of_a_smooth_output_are_close_also_in_its_tails(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=40_000)
    y = x**2 + 0.3 * rng.normal(size=x.size)
    state, others, reference, output_reference = seen([x], y[None])
    cells, out = coarse_cells(state.columns, reference, 0), coarse_cells(others, output_reference, 0)
    found = output_quantiles(state.pairs.joint[0, 0, cells.place], out, (0.25, 0.5, 0.75))
    mine = cells_of(x, reference, 0)
    exact = np.array([np.quantile(y[mine == place], (0.25, 0.5, 0.75)) for place in cells.place])
    assert np.abs(found - exact)[1:-1].max() < 0.1 * y.std()
    assert np.abs(found - exact).max() < 0.5 * y.std(), "the outermost cells of both reach to the extremes"


def test_a_column_without_values_has_no_cells():
    state, others, reference, output_reference = seen([np.full(50, np.nan)], np.arange(50.0)[None])
    found = coarse_cells(state.columns, reference, 0)
    assert found.place.size == 0
    out = coarse_cells(others, output_reference, 0)
    assert output_quantiles(state.pairs.joint[0, 0, found.place], out, (0.5,)).shape == (0, 1)
    assert np.isnan(output_quantiles(np.zeros((1, COARSE)), out, (0.5,))).all()


def test_an_output_of_one_value_has_it_everywhere():
    one = CoarseCells(np.array([3]), np.array([9.0]), np.array([2.0]), np.array([2.0]), np.array([2.0]), 0.1)
    assert output_quantiles(np.ones((2, COARSE)), one, (0.25, 0.75)).tolist() == [[2.0, 2.0], [2.0, 2.0]]


@pytest.mark.parametrize("seed", range(10))
def test_a_round_number_lies_between_its_limits_and_has_few_digits(seed):
    rng = np.random.default_rng(seed)
    for value in (rng.normal(size=50) * 10.0 ** rng.integers(-12, 12, 50)).tolist():
        width = abs(value) * 10.0 ** -rng.integers(0, 12)
        found = round_number(value - width, value + width)
        assert value - width <= found <= value + width
        digits = next(d for d in range(1, 18) if abs(float(f"{value:.{d - 1}e}") - value) <= width)
        assert found == float(f"{found:.{digits - 1}e}"), "no more digits than the rounded middle has"
