"""Nested row fractions."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lakes import explain, numbers, prepared, read_all, write

from excir_dask.errors import UsageError
from excir_dask.lake.sample import SAMPLINGS, Sample, Sampling

fractions = st.floats(0.001, 1.0)


def test_rows_kept_at_a_fifth_are_among_those_kept_at_two_fifths():
    small, large = Sample(0.2).mask("a.parquet", 3, 5000), Sample(0.4).mask("a.parquet", 3, 5000)
    assert np.all(large[small])
    assert small.sum() < large.sum()


@given(fractions, fractions, st.integers(0, 2**63), st.text(max_size=20), st.integers(0, 10_000))
def test_samples_are_nested_whatever_the_seed_and_the_part(one, other, seed, part, group):
    small, large = sorted([one, other])
    kept = Sample(small, seed).mask(part, group, 200)
    assert np.all(Sample(large, seed).mask(part, group, 200)[kept])


@given(st.integers(0, 300), st.integers(0, 300), fractions)
def test_a_batch_of_rows_draws_what_the_whole_row_group_draws(start, rows, fraction):
    sample = Sample(fraction, seed=5)
    assert np.array_equal(sample.mask("p", 1, rows, start), sample.mask("p", 1, start + rows)[start:])


def test_a_draw_depends_on_seed_part_and_row_group():
    reference = Sample(0.5, 1).mask("a", 0, 1000)
    assert np.array_equal(reference, Sample(0.5, 1).mask("a", 0, 1000))
    for other in (
        Sample(0.5, 2).mask("a", 0, 1000),
        Sample(0.5, 1).mask("b", 0, 1000),
        Sample(0.5, 1).mask("a", 1, 1000),
    ):
        assert 300 < np.count_nonzero(reference != other) < 700


def test_another_stream_draws_independently_and_leaves_the_first_as_it_was():
    plain, other = Sample(0.5, 1).mask("a", 0, 10_000), Sample(0.5, 1, stream="validation").mask("a", 0, 10_000)
    assert abs(np.count_nonzero(plain & other) - 2500) < 250
    assert np.flatnonzero(plain)[:6].tolist() == [0, 4, 5, 6, 12, 13]


@pytest.mark.parametrize("fraction", [0.01, 0.2, 0.5, 0.9])
def test_the_share_kept_is_close_to_the_fraction(fraction):
    rows = 200_000
    kept = np.count_nonzero(Sample(fraction).mask("a", 0, rows))
    assert abs(kept - fraction * rows) < 5 * np.sqrt(rows * fraction * (1 - fraction))


def test_a_fraction_of_one_keeps_every_row():
    assert not Sample(1.0).draws_rows
    assert Sample(1.0).mask("a", 0, 100).all()
    assert Sample(np.nextafter(1.0, 0)).draws_rows


@pytest.mark.parametrize("fraction", [0.0, -0.1, 1.0001, 2, float("nan"), float("inf")])
def test_a_fraction_outside_zero_to_one_is_wrong_usage(fraction):
    with pytest.raises(UsageError, match="above 0 and at most 1"):
        Sample(fraction)


def test_a_lake_keeps_its_sample_when_it_is_moved(lake, tmp_path):
    before = explain(lake, output="pred", fraction=0.4)
    after = explain(shutil.move(lake, tmp_path / "elsewhere"), output="pred", fraction=0.4)
    assert 20 < before.facts.rows.sampled < 80
    assert after.facts == before.facts
    assert after.features.equals(before.features)


def test_a_file_keeps_its_sample_when_files_are_added_to_the_lake(lake):
    def sampled() -> np.ndarray:
        plan, layout = prepared(lake, sample=Sample(0.4))
        frames = [read_all(piece, layout)[0] for piece in plan.slices()]
        values = np.concatenate([frame["a"] for frame in frames])
        return values[np.isin(values, numbers(seed=1)["a"].to_numpy())]

    before = sampled()
    write(lake / "aa.parquet", numbers(seed=7))
    assert before.size > 5
    assert np.array_equal(sampled(), before)


def test_a_sampling_scheme_is_added_by_one_entry(monkeypatch, tmp_path):
    import pandas as pd

    def first_of_each_file(sample, files):
        return [frozenset([0]) for _ in files]

    monkeypatch.setitem(SAMPLINGS, "first", Sampling(first_of_each_file, whole_row_groups=True))
    rows = pd.DataFrame(np.random.default_rng(0).standard_normal((400, 3)), columns=["a", "b", "pred"])
    rows.to_parquet(tmp_path / "one.parquet", row_group_size=100)
    found = explain(tmp_path, output="pred", fraction=0.5, sampling="first")
    assert found.facts.rows.sampled == 100
    pd.testing.assert_frame_equal(
        found.features[["feature", "cir"]], explain(rows[:100], output="pred").features[["feature", "cir"]]
    )
