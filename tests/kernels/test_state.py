"""States of blocks of rows: against numpy, and merged in any way."""

from __future__ import annotations

from dataclasses import fields
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from one_pass import awkward_columns, awkward_outputs, passed, refer, watch

from excir_dask.errors import InternalError
from excir_dask.kernels.centers import CENTERINGS
from excir_dask.kernels.observe import observe, observe_outputs, output_side
from excir_dask.kernels.state import State, concatenate_state, merge_columns, merge_state, one_unit


def same(one: object, other: object, **tolerance: float) -> None:
    """Equal arrays, sums up to rounding."""
    for field in fields(one):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if isinstance(a, np.ndarray):
            size = np.abs(np.where(np.isfinite(a), a, 0.0)).max(initial=0.0)
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11 * size, err_msg=field.name, **tolerance)
        else:
            assert a == b, field.name


def same_state(one: State, other: State) -> None:
    same(one.columns, other.columns)
    same(one.pairs, other.pairs)


@pytest.fixture(scope="module")
def data() -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    z = rng.normal(size=3001)
    columns = list(awkward_columns(rng, z).values())
    return columns, np.stack(list(awkward_outputs(rng, z).values())), rng.random(z.size) + 0.1


@pytest.fixture(scope="module")
def references(data):
    return refer(data[0], "trimmed"), refer(list(data[1]), "trimmed")


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_are_those_of_numpy(data, references, weighted):
    columns, outputs, weights = data
    w = weights if weighted else None
    state, output_state = watch(columns, outputs, references, w, totals=True)
    masses = weights if weighted else np.ones(weights.size)
    for j, x in enumerate(columns):
        there = np.isfinite(x)
        d, mass = x[there] - references[0].center[j], masses[there]
        found = state.columns
        assert (found.n[j], found.missing[j]) == (there.sum(), (~there).sum())
        assert found.weight[j] == pytest.approx(mass.sum())
        assert (found.low[j], found.high[j]) == (x[there].min(), x[there].max())
        assert found.total[j] == pytest.approx((mass * d).sum(), rel=1e-9, abs=1e-12 * np.abs(d).sum())
        assert found.absolute[j] == pytest.approx((mass * np.abs(d)).sum(), rel=1e-9)
        assert found.slots[j].sum() == pytest.approx(mass.sum())
        assert found.slot_total[j].sum() == pytest.approx(found.total[j], rel=1e-9, abs=1e-12 * np.abs(d).sum())
        for k, y in enumerate(outputs):
            m = mass * (y[there] - references[1].center[k])
            p = d * m
            size = np.abs(p).sum()
            expected = [p.sum(), size, (p * p).sum(), (p * np.abs(p)).sum()]
            np.testing.assert_allclose(
                state.pairs.sums[k, j, :4], expected, rtol=1e-9, atol=1e-11 * max(size, (p * p).sum())
            )
            np.testing.assert_allclose(state.pairs.output_total[k, j], m.sum(), atol=1e-9 * np.abs(m).sum())
            np.testing.assert_allclose(state.pairs.output_absolute[k, j], np.abs(m).sum(), rtol=1e-9)
    assert output_state.n.tolist() == [weights.size] * len(outputs)


@pytest.mark.parametrize("weighted", [False, True])
def test_missing_values_add_nothing(data, references, weighted):
    columns, outputs, weights = data
    x = columns[0].copy()
    x[::3], x[1::7], x[2::11] = np.nan, np.inf, -np.inf
    there = np.isfinite(x)
    mine = (references[0].subset(slice(0, 1)), references[1])
    gaps, _ = watch([x], outputs, mine, weights if weighted else None, totals=True, joint=True)
    without, _ = watch(
        [x[there]], outputs[:, there], mine, weights[there] if weighted else None, totals=True, joint=True
    )
    same(gaps.pairs, without.pairs)
    assert (gaps.columns.n[0], gaps.columns.missing[0]) == (there.sum(), (~there).sum())
    np.testing.assert_array_equal(gaps.columns.cells, without.columns.cells)


@settings(max_examples=10)
@given(st.lists(st.integers(0, 3001), max_size=4), st.booleans(), st.randoms(use_true_random=False))
def test_blocks_of_rows_add_up_in_any_split_and_order(data, references, cuts, weighted, random):
    columns, outputs, weights = data
    edges = np.array([0, *sorted(cuts), weights.size])
    w = weights if weighted else None
    whole, whole_outputs = watch(columns, outputs, references, w, edges, totals=True, joint=True)
    parts = []
    for a, b in pairwise(edges):
        rows = slice(a, b)
        mine = None if w is None else w[rows]
        parts.append(watch([x[rows] for x in columns], outputs[:, rows], references, mine, totals=True, joint=True))
    random.shuffle(parts)
    same_state(merge_state([one for one, _ in parts]), whole)
    same(merge_columns([other for _, other in parts]), whole_outputs)
    nested = merge_state([merge_state([one for one, _ in parts[:1]]), *(one for one, _ in parts[1:])])
    same_state(nested, whole)


def test_blocks_of_columns_stand_side_by_side(data, references):
    columns, outputs, weights = data
    whole, _ = watch(columns, outputs, references, weights)
    side = output_side(outputs, references[1], weights, joint=False)
    parts = [slice(0, 4), slice(4, len(columns))]
    joined = concatenate_state([observe(columns[part], side, references[0].subset(part)) for part in parts])
    for one, other in ((joined.columns, whole.columns), (joined.pairs, whole.pairs)):
        for field in fields(one):
            np.testing.assert_array_equal(getattr(one, field.name), getattr(other, field.name), err_msg=field.name)


def test_states_of_different_references_cannot_be_combined(data, references):
    columns, outputs, _ = data
    other = refer([x[:2000] for x in columns], "trimmed", complete=False)
    other_outputs = refer(list(outputs[:, :2000]), "trimmed", complete=False)
    state, output_state = watch(columns, outputs, references)
    for combine in (merge_state, concatenate_state):
        with pytest.raises(InternalError, match=f"{other.id} cannot be combined with one from {references[0].id}"):
            combine([state, watch(columns, outputs, (other, references[1]))[0]])
        with pytest.raises(InternalError, match="cannot be combined"):
            combine([state, watch(columns, outputs, (references[0], other_outputs))[0]])
    with pytest.raises(InternalError, match="cannot be combined"):
        merge_columns([output_state, watch(columns, outputs, (references[0], other_outputs))[1]])


def test_merging_does_not_change_its_arguments(data, references):
    columns, outputs, _ = data
    state, _ = watch(columns, outputs, references)
    before = state.pairs.sums.copy(), state.columns.cells.copy()
    merge_state([state, state])
    np.testing.assert_array_equal(state.pairs.sums, before[0])
    np.testing.assert_array_equal(state.columns.cells, before[1])


layouts = st.lists(st.integers(0, 6), min_size=1, max_size=6).map(lambda sizes: np.cumsum([0, *sizes]))


@given(layouts, st.integers(0, 2**32 - 1))
def test_sums_over_units_are_those_of_numpy(edges, seed):
    x, y = np.random.default_rng(seed).standard_normal((2, edges[-1]))
    references = refer([x]), refer([y])
    state, _ = watch([x], y[None], references, edges=edges)
    p = (x - references[0].center[0]) * (y - references[1].center[0])
    n, d = (np.array([part[a:b].sum() for a, b in pairwise(edges)]) for part in (p, np.abs(p)))
    np.testing.assert_allclose(state.pairs.units[0, 0], [(n * n).sum(), (n * d).sum(), (d * d).sum()], atol=1e-11)


@given(layouts, st.integers(0, 2**32 - 1))
def test_rows_read_in_batches_are_one_unit_all_the_same(edges, seed):
    x, y = np.random.default_rng(seed).standard_normal((2, edges[-1]))
    references = refer([x]), refer([y])
    batches = [watch([x[a:b]], y[None, a:b], references)[0] for a, b in pairwise(edges)]
    same_state(one_unit(merge_state(batches)), watch([x], y[None], references)[0])


def test_no_rows_at_all_give_zeros(references):
    side = output_side(np.empty((references[1].columns, 0)), references[1])
    state = observe([np.empty(0)] * references[0].columns, side, references[0])
    assert not state.pairs.sums.any()
    assert not state.columns.n.any()
    assert not observe_outputs(side).n.any()


@pytest.mark.parametrize("centering", CENTERINGS)
def test_whole_weights_are_repeated_rows(centering):
    rng = np.random.default_rng(5)
    z = rng.normal(size=2500)
    columns, y = list(awkward_columns(rng, z).values()), z + rng.normal(size=z.size)
    weights = rng.integers(1, 5, z.size)
    again = [np.repeat(x, weights) for x in columns]
    weighted = passed(columns, y, centering, weights.astype(float))
    repeated = passed(again, np.repeat(y, weights), centering)
    both = weighted.scores.center_bound + repeated.scores.center_bound
    assert (np.abs(weighted.scores.cir - repeated.scores.cir) <= both + 1e-12).all()
    apart = np.abs(weighted.features.center - repeated.features.center)
    rounding = 1e-14 * np.maximum(np.abs(weighted.features.low), np.abs(weighted.features.high))
    assert (apart <= weighted.features.error + repeated.features.error + rounding).all()
