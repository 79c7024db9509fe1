"""Nested row fractions."""

from __future__ import annotations

import shutil
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lakes import explain, numbers, prepared, read_all, write

from excir_dask.errors import UsageError
from excir_dask.lake.sample import SAMPLINGS, Sample, Sampling
from excir_dask.lake.snapshot import LakeFile

fractions = st.floats(0.001, 1.0)

PINNED_DRAWS = [18100354960955532153, 1011592301371717398, 14802235044985263775]
PINNED_ROW_GROUPS = [[0, 1, 2], [2], [1, 3]]
PINNED_ORDER = {
    0: [
        (1, 2),
        (6, 1),
        (8, 0),
        (10, 2),
        (3, 1),
        (4, 1),
        (8, 3),
        (11, 1),
        (0, 1),
        (7, 0),
        (5, 2),
        (2, 2),
        (11, 2),
        (9, 0),
        (4, 0),
        (2, 0),
    ],
    1: [
        (11, 1),
        (4, 1),
        (8, 0),
        (0, 0),
        (2, 0),
        (6, 1),
        (10, 1),
        (5, 1),
        (8, 3),
        (1, 1),
        (3, 1),
        (7, 0),
        (11, 2),
        (5, 2),
        (9, 0),
        (2, 2),
    ],
    2: [
        (5, 1),
        (2, 1),
        (9, 1),
        (6, 1),
        (1, 2),
        (11, 2),
        (4, 2),
        (2, 0),
        (8, 2),
        (10, 2),
        (5, 3),
        (7, 0),
        (0, 0),
        (3, 1),
        (8, 1),
        (11, 0),
    ],
}


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


def files(row_groups: list[list[int]], folders: int = 1) -> list[LakeFile]:
    return [
        LakeFile(f"/l/k={i % folders}/{i}.parquet", f"k={i % folders}/{i}.parquet", 1, 0, tuple(rows), 0, ())
        for i, rows in enumerate(row_groups)
    ]


lakes = st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=8), min_size=1, max_size=12)
shares = st.floats(0.01, 1.0)


@given(lakes, shares, shares, st.integers(0, 9))
def test_samples_of_row_groups_are_nested(row_groups, one, other, seed):
    lake = files(row_groups, 3)
    small, large = (Sample(f, seed, "row-groups").row_groups(lake) for f in sorted((one, other)))
    assert all(few <= many for few, many in zip(small, large, strict=True))


@given(lakes, shares, st.integers(0, 9))
def test_a_sample_of_row_groups_has_its_share_of_them_whatever_their_sizes(row_groups, share, seed):
    lake = files(row_groups, 2)
    kept = Sample(share, seed, "row-groups").row_groups(lake)
    everything = sum(1 for file in lake for rows in file.row_groups if rows)
    assert sum(map(len, kept)) == (max(round(share * everything), 1) if everything else 0)


@pytest.mark.parametrize("folders", [1, 4])
def test_a_sample_of_row_groups_is_spread_over_files_and_folders(folders):
    lake = files([[100] * 10] * 20, folders)
    kept = Sample(0.2, 1, "row-groups").row_groups(lake)
    assert [len(groups) for groups in kept] == [2] * 20 or max(map(len, kept)) <= 3
    by_folder: dict[str, int] = {}
    for file, groups in zip(lake, kept, strict=True):
        folder = file.relative.split("/")[0]
        by_folder[folder] = by_folder.get(folder, 0) + len(groups)
    assert max(by_folder.values()) - min(by_folder.values()) <= 1


def test_rows_of_a_smaller_sample_are_those_above_it_left_out():
    small, large = Sample(0.2).mask("a", 0, 5000), Sample(0.5).mask("a", 0, 5000)
    between = Sample(0.5, above=0.2).mask("a", 0, 5000)
    np.testing.assert_array_equal(between, large & ~small)
    np.testing.assert_array_equal(Sample(1.0, above=0.2).mask("a", 0, 5000), ~small)


def test_a_large_row_group_is_drawn_as_often_as_a_small_one():
    lake = files([[100]] * 19 + [[50_000]])
    drawn = np.mean([bool(Sample(0.2, seed, "row-groups").row_groups(lake)[-1]) for seed in range(400)])
    assert 0.14 < drawn < 0.26


def test_draws_are_the_same_in_every_version():
    """Samples of earlier runs must be found again: the draws of these rows and row groups are pinned."""
    assert Sample(seed=7).draws("k=1/a.parquet", 2, 3).tolist() == PINNED_DRAWS
    lake = files([[10] * 5, [10] * 3, [10] * 4], 2)
    kept = [sorted(groups) for groups in Sample(0.5, 7, "row-groups").row_groups(lake)]
    assert kept == PINNED_ROW_GROUPS
    for seed, first in PINNED_ORDER.items():
        assert order(deep(), seed)[: len(first)] == first


def deep() -> list[LakeFile]:
    """Files in folders of folders."""
    paths = [f"y={y}/m={m}/{i}.parquet" for y in (1, 2) for m in (1, 2, 3) for i in range(2)]
    return [LakeFile(f"/l/{path}", path, 1, 0, (5,) * (2 + n % 3), 0, ()) for n, path in enumerate(paths)]


def order(lake: list[LakeFile], seed: int) -> list[tuple[int, int]]:
    """(file, row group) in the order of which samples are the start."""
    total = sum(len(file.row_groups) for file in lake)
    kept = [Sample(count / total, seed, "row-groups").row_groups(lake) for count in range(1, total + 1)]
    sets = [{(i, g) for i, groups in enumerate(each) for g in groups} for each in kept]
    return [next(iter(larger - smaller)) for smaller, larger in pairwise([set(), *sets])]


@given(st.integers(0, 40), st.integers(0, 40))
def test_draws_of_a_batch_are_those_of_the_row_group(start, rows):
    np.testing.assert_array_equal(Sample().draws("a", 0, rows, start), Sample().draws("a", 0, start + rows)[start:])


def test_draws_of_streams_differ_and_that_without_a_name_is_the_first():
    plain, named, other = (Sample(stream=stream).draws("a", 0, 100) for stream in ("", "x", "y"))
    assert not np.intersect1d(plain, named).size
    assert not np.intersect1d(named, other).size
    assert plain.dtype == np.uint64


def test_a_row_is_in_the_sample_if_its_draw_is_below_the_share():
    half = 2**63
    draws = np.array([0, half - 1, half, 2**64 - 1], dtype=np.uint64)
    assert Sample(0.5).mask_of(draws).tolist() == [True, True, False, False]
    assert Sample(1.0).mask_of(draws).tolist() == [True] * 4
    assert Sample(1.0, above=0.5).mask_of(draws).tolist() == [False, False, True, True]
    assert Sample(0.75, above=0.5).mask_of(draws).tolist() == [False, False, True, False]
    assert Sample(np.nextafter(1.0, 0)).mask_of(draws).tolist() == [True, True, True, False]


@pytest.mark.parametrize(
    ("sample", "all_rows", "draws_rows"),
    [
        (Sample(), True, False),
        (Sample(0.5), False, True),
        (Sample(1.0, above=0.5), False, True),
        (Sample(0.5, by="row-groups"), False, False),
        (Sample(1.0, by="row-groups"), True, False),
        (Sample(1.0, by="row-groups", above=0.5), False, False),
    ],
)
def test_rows_are_drawn_unless_all_of_what_is_read_count(sample, all_rows, draws_rows):
    assert (sample.all_rows, sample.draws_rows) == (all_rows, draws_rows)
    assert sample.whole_row_groups == (sample.by == "row-groups")
    mask = sample.mask("a", 0, 1000)
    assert mask.dtype == bool
    assert mask.all() == (not draws_rows)


def test_samples_of_rows_read_every_row_group_that_has_rows():
    lake = files([[5, 0, 3], [0], [2]])
    for sample in (Sample(), Sample(0.1), Sample(0.5, above=0.4), Sample(1.0, by="row-groups")):
        assert sample.row_groups(lake) == [{0, 2}, set(), {0}]


@given(lakes, shares, shares, st.integers(0, 9))
def test_a_sample_above_another_is_what_the_smaller_one_lacks(row_groups, one, other, seed):
    lake = files(row_groups, 3)
    low, high = sorted((one, other))
    small, large = (Sample(f, seed, "row-groups").row_groups(lake) for f in (low, high))
    more = Sample(high, seed, "row-groups", above=low).row_groups(lake)
    assert more == [many - few for few, many in zip(small, large, strict=True)]


def test_every_file_and_folder_has_its_share_of_any_sample():
    """In the order of which samples are the start, each recurs as evenly as possible."""
    layout = [[1] * 4, [1] * 12, [1] * 8, [1] * 8]
    lake = files(layout, 2)
    total = 32
    for count in range(1, total + 1):
        for seed in range(3):
            kept = Sample(count / total, seed, "row-groups").row_groups(lake)
            for folder, size in ((0, 12), (1, 20)):
                inside = sum(len(kept[i]) for i in (folder, folder + 2))
                assert abs(inside - count * size / total) <= 1.0
            for groups, rows in zip(kept, layout, strict=True):
                assert abs(len(groups) - count * len(rows) / total) <= 2.0


def test_folders_of_folders_have_their_share_too():
    lake = deep()
    for seed in range(5):
        taken = order(lake, seed)
        for count in range(1, len(taken) + 1):
            for folder in {file.relative.rpartition("/")[0] for file in lake}:
                mine = [i for i, file in enumerate(lake) if file.relative.startswith(folder + "/")]
                size = sum(len(lake[i].row_groups) for i in mine)
                assert abs(sum(i in mine for i, _ in taken[:count]) - count * size / len(taken)) <= 1.5


def test_row_groups_are_drawn_by_seed():
    lake = files([[10] * 30], 1)
    seen = {tuple(sorted(Sample(0.2, seed, "row-groups").row_groups(lake)[0])) for seed in range(20)}
    assert len(seen) == 20
    drawn = np.bincount([g for groups in seen for g in groups], minlength=30)
    assert drawn.max() <= 12
    assert (drawn > 0).sum() >= 25


def test_files_and_folders_begin_their_turns_at_a_place_of_their_own():
    """Where one row group of many files is taken, it is not always the one of the first files."""
    one_folder, many_folders = files([[10]] * 20, 1), files([[10]] * 20, 20)
    for lake in (one_folder, many_folders):
        first = {
            next(i for i, groups in enumerate(Sample(0.05, seed, "row-groups").row_groups(lake)) if groups)
            for seed in range(60)
        }
        assert len(first) > 10


@pytest.mark.parametrize("by", ["row", "rowgroups", ""])
def test_a_scheme_that_is_none_is_named_with_all_of_them(by):
    with pytest.raises(UsageError, match=f"sampling is '{by}'.*one of rows, row-groups"):
        Sample(0.5, by=by)


def test_fractions_from_next_to_nothing_to_one_are_right():
    assert Sample(1e-300).mask("a", 0, 1000).sum() == 0
    with pytest.raises(UsageError, match=r"fraction is 0.0; it must be above 0 and at most 1"):
        Sample(0.0)
