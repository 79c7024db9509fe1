"""How a lake is cut into slices: arithmetic on footers, so most of these tests need no files."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import pairwise

import dask
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lakes import numbers, prepared, write
from pyarrow import fs

from excir_dask import explain
from excir_dask.errors import LakeError, UsageError
from excir_dask.lake.locate import Location
from excir_dask.lake.plan import (
    SPAN_FILES,
    Plan,
    Slice,
    append_spans,
    fixed_columns,
    make_plan,
    row_spans,
)
from excir_dask.lake.sample import Sample
from excir_dask.lake.select import Selection
from excir_dask.lake.snapshot import LakeFile, Snapshot
from excir_dask.lake.tables.table import DeletedRows

MIB = 2**20


def selection(features: int, outputs: int = 1, weight: str | None = None) -> Selection:
    return Selection(tuple(f"x{i}" for i in range(features)), tuple(f"y{i}" for i in range(outputs)), weight, {}, {})


def footers(layout: list[list[int]], deleted: list[list[int]] | None = None) -> Snapshot:
    """A lake whose files have row groups of the given rows, of which the first ones may be deleted."""
    files = tuple(
        LakeFile(f"/lake/{i:04d}", f"{i:04d}", 1000 + i, 0, tuple(groups), 0, ()) for i, groups in enumerate(layout)
    )
    if deleted is not None:
        files = tuple(
            replace(
                file,
                deleted=tuple(
                    DeletedRows.from_mask(np.arange(n) < d) for n, d in zip(file.row_groups, gone, strict=True)
                ),
            )
            for file, gone in zip(files, deleted, strict=True)
        )
    return Snapshot(Location("lake", fs.LocalFileSystem(), "/lake", ()), files, (), {})


def cells(plan: Plan) -> list[tuple[str, int, int]]:
    """Every (file, row group, feature) that some slice reads, as often as it is read."""
    return [
        (piece.relative, group, feature)
        for part in plan.slices()
        for piece in part.fragments
        for group in piece.row_groups
        for feature in range(part.start, part.stop)
    ]


def check(layout: list[list[int]], plan: Plan) -> None:
    """The invariants that every plan keeps."""
    chosen = plan.selection
    expected = [
        (f"{i:04d}", g, f)
        for i, groups in enumerate(layout)
        for g, rows in enumerate(groups)
        if rows
        for f in range(len(chosen.features))
    ]
    assert sorted(cells(plan)) == expected, "every row of every column is in exactly one slice"
    for block in plan.blocks:
        for span in block:
            assert all(left.stop == right.start for left, right in pairwise(span))
            assert len({part.fragments for part in span}) == 1, "slices side by side hold the same rows"
    assert len({len(block) for block in plan.blocks}) <= 1
    leads = [sum(part.lead for block in plan.blocks for part in block[number]) for number in range(plan.spans)]
    assert leads == [1] * plan.spans, "one slice of every span leads"
    fixed = fixed_columns(chosen)
    for part in plan.slices():
        assert part.stop > part.start
        assert part.rows == sum(sum(piece.rows) for piece in part.fragments) > 0
        held = min(part.rows, part.batch_rows or part.rows)
        assert held == 1 or held * (part.stop - part.start + fixed) * 8 <= plan.budget
        assert len(part.fragments) <= SPAN_FILES
        if part.batch_rows is not None:
            assert len(part.fragments) == len(part.fragments[0].row_groups) == 1, "only a single row group is streamed"
        for piece in part.fragments:
            file = layout[int(piece.relative)]
            assert piece.rows == tuple(file[group] for group in piece.row_groups)
    order = [
        (piece.relative, group)
        for part in plan.slices()
        if part.lead
        for piece in part.fragments
        for group in piece.row_groups
    ]
    assert order == sorted(order), "spans follow the order of the files"


groups = st.one_of(st.just(0), st.integers(1, 50), st.integers(1000, 400_000))


@given(
    layout=st.lists(st.lists(groups, max_size=6), min_size=1, max_size=12),
    features=st.one_of(st.integers(1, 40), st.integers(250, 1100)),
    outputs=st.integers(1, 12),
    weight=st.sampled_from([None, "w"]),
    budget=st.integers(MIB, 64 * MIB),
)
@example(layout=[[400_000]], features=1, outputs=1, weight=None, budget=MIB)
@example(layout=[[3], [4]] * 100, features=3, outputs=1, weight=None, budget=MIB)
@example(layout=[[1]], features=1, outputs=70_000, weight=None, budget=MIB)
def test_every_cell_is_in_exactly_one_slice_within_the_budget(layout, features, outputs, weight, budget):
    plan = make_plan(footers(layout), selection(features, outputs, weight), budget)
    check(layout, plan)
    assert plan.slice_bytes == max(
        (
            min(part.rows, part.batch_rows or part.rows) * (part.stop - part.start + 2 * outputs + 2) * 8
            for part in plan.slices()
        ),
        default=0,
    )


@given(
    layout=st.lists(st.lists(groups, max_size=6), min_size=1, max_size=12),
    shares=st.tuples(st.floats(0.01, 1.0), st.floats(0.01, 1.0)).map(sorted),
)
def test_a_larger_sample_of_row_groups_adds_spans_to_those_that_are_there(layout, shares):
    lake, columns = footers(layout), selection(300)
    small, large = (Sample(share, by="row-groups") for share in shares)
    first = make_plan(lake, columns, MIB, small)
    plan = append_spans(first, make_plan(lake, columns, MIB, replace(large, above=shares[0])))
    assert [block[: first.spans] for block in plan.blocks] == list(first.blocks)
    assert sorted(cells(plan)) == sorted(cells(make_plan(lake, columns, MIB, large)))


def test_small_files_are_packed_into_one_slice():
    plan = make_plan(footers([[100]] * 50), selection(4), MIB)
    (part,) = plan.slices()
    assert len(part.fragments) == 50
    assert part.rows == 5000


def test_no_slice_opens_more_files_than_its_share():
    plan = make_plan(footers([[1]] * (3 * SPAN_FILES + 1)), selection(1), 64 * MIB)
    assert [len(part.fragments) for part in plan.slices()] == [SPAN_FILES] * 3 + [1]


def test_packing_stops_where_the_budget_is_full():
    rows = MIB // (8 * (4 + 4)) // 2  # two such files fill a slice of four features
    plan = make_plan(footers([[rows]] * 5), selection(4), MIB)
    assert [len(part.fragments) for part in plan.slices()] == [2, 2, 1]
    assert plan.slice_bytes == MIB


@pytest.mark.parametrize("weight", [None, "w"])
def test_outputs_raw_and_centred_and_weights_count_in_the_bytes_of_a_slice(weight):
    """Plain rows are counted as weighted ones are: how a lake is cut does not depend on weights."""
    rows = MIB // (8 * (4 + 2 * 3 + 2))
    for more, spans in ((0, 1), (1, 2)):
        plan = make_plan(footers([[rows - 1], [1 + more]]), selection(4, 3, weight), MIB)
        assert plan.spans == spans
    assert make_plan(footers([[rows]]), selection(4, 3, weight), MIB).slice_bytes == 8 * 12 * rows


def test_weights_count_in_the_bytes_of_whole_rows():
    rows = MIB // (8 * (4 + 3 + 1))
    assert [len(row_spans(footers([[rows - 1], [n]]), selection(4, 3), MIB)) for n in (1, 2)] == [1, 2]


def test_every_output_and_weight_that_each_slice_reads_again_makes_slices_wider():
    """Ten features each, as long as the budget allows, though finer slices would keep more threads busy."""
    rows = [[420_000]]
    widths = []
    for outputs, weight in ((1, None), (1, "w"), (2, None), (2, "w")):
        plan = make_plan(footers(rows), selection(240, outputs, weight), 128 * MIB)
        widths.append(max(part.stop - part.start for part in plan.slices()))
    assert widths == [16, 20, 20, 30]


def test_a_big_file_is_split_by_row_group():
    plan = make_plan(footers([[10_000] * 6]), selection(4), MIB)
    assert [part.fragments[0].row_groups for part in plan.slices()] == [(0,), (1,), (2,), (3,), (4,), (5,)]
    plan = make_plan(footers([[8_000] * 6]), selection(4), MIB)
    assert [part.fragments[0].row_groups for part in plan.slices()] == [(0, 1), (2, 3), (4, 5)]


def test_row_groups_share_a_slice_up_to_the_last_row_that_fits():
    rows = MIB // (8 * (4 + 4))
    for layout, expected in (
        ([[rows - 1, 1]], 1),
        ([[rows - 1, 2]], 2),
        ([[rows - 1], [1]], 1),
        ([[rows - 1], [2]], 2),
    ):
        assert make_plan(footers(layout), selection(4), MIB).spans == expected


def test_a_row_group_larger_than_the_budget_is_cut_by_columns():
    plan = make_plan(footers([[10_000]]), selection(20), MIB)
    assert [(part.start, part.stop) for part in plan.slices()] == [(0, 6), (6, 13), (13, 20)]
    assert all(part.batch_rows is None for part in plan.slices())
    assert [part.lead for part in plan.slices()] == [True, False, False]
    assert plan.spans == 1


def test_a_column_larger_than_the_budget_is_streamed_in_batches_of_rows():
    plan = make_plan(footers([[1_000_000]]), selection(20), MIB)
    assert [(part.start, part.stop) for part in plan.slices()] == [(0, 6), (6, 13), (13, 20)]
    assert {part.batch_rows for part in plan.slices()} == {MIB // (8 * (8 + 4))}
    assert plan.slice_bytes <= MIB


def test_columns_come_in_blocks_that_share_their_spans():
    plan = make_plan(footers([[100], [100]]), selection(600), MIB)
    assert [(block[0][0].start, block[-1][-1].stop) for block in plan.blocks] == [(0, 200), (200, 400), (400, 600)]
    assert sum(part.lead for part in plan.slices()) == plan.spans


def test_empty_files_and_empty_row_groups_are_in_no_slice():
    plan = make_plan(footers([[], [0, 5, 0], [0], [7]]), selection(2), MIB)
    (part,) = plan.slices()
    assert [(piece.relative, piece.row_groups, piece.rows) for piece in part.fragments] == [
        ("0001", (1,), (5,)),
        ("0003", (0,), (7,)),
    ]


DELETED = [[10, 0], [3, 7], [5]], [[10, 0], [3, 6], [5]]
"""rows of row groups, and how many of them are deleted: one row of the lake is left"""


@pytest.mark.parametrize("sample", [None, Sample(0.5), Sample(1.0, by="row-groups")])
def test_row_groups_whose_rows_are_all_deleted_are_in_no_slice(sample):
    plan = make_plan(footers(*DELETED), selection(2), MIB, sample)
    (part,) = plan.slices()
    assert [(piece.relative, piece.row_groups, piece.rows) for piece in part.fragments] == [("0001", (1,), (7,))]
    assert (part.rows, part.live_rows, plan.rows) == (7, 1, 1)


@given(st.integers(0, 99), st.floats(0.01, 0.99))
def test_a_share_of_the_row_groups_is_one_of_those_that_have_rows(seed, share):
    lake = footers([[5, 5, 5, 5]], [[5, 0, 5, 2]])
    (kept,) = Sample(share, seed, "row-groups").row_groups(lake.files)
    assert kept <= {1, 3}
    assert len(kept) == max(round(2 * share), 1)


def test_training_reads_no_row_group_whose_rows_are_all_deleted():
    ((piece,),) = row_spans(footers(*DELETED), selection(2), MIB)
    assert (piece.relative, piece.row_groups, piece.live_rows) == ("0001", (1,), 1)


def test_a_lake_with_empty_files_scores_like_one_without(lake):
    before = explain(lake, output="pred").features
    write(lake / "0-empty.parquet", numbers(0))
    write(lake / "z-empty.parquet", numbers(0))
    assert explain(lake, output="pred").features.equals(before)


def test_a_lake_of_empty_files_alone_is_an_error(tmp_path):
    write(tmp_path / "0.parquet", numbers(0))
    with pytest.raises(LakeError, match="has 1 file but no rows"):
        explain(tmp_path, output="pred")


def test_a_budget_below_a_mebibyte_is_wrong_usage(lake):
    with pytest.raises(UsageError, match="at least 1 MiB"):
        explain(lake, output="pred", budget=MIB - 1)


def test_a_plan_does_not_depend_on_workers_or_threads(lake):
    plans = []
    for settings in ({"num_workers": 1}, {"num_workers": 7, "scheduler": "threads"}):
        with dask.config.set(settings):
            plans.append(pickle.dumps(prepared(lake)[0]))
    assert plans[0] == plans[1]


def test_scores_do_not_depend_on_how_the_lake_is_cut(tmp_path):
    rows = 30_000
    draw = np.random.default_rng(3)
    data = {f"x{i}": np.round(draw.normal(size=rows), 1) for i in range(5)}
    data["pred"] = np.round(data["x0"] - data["x1"] + draw.normal(size=rows), 1)
    write(tmp_path / "one" / "0.parquet", data, row_group_size=rows)
    write(tmp_path / "many" / "0.parquet", data, row_group_size=1000)
    results, slices = [], []
    for lake, budget in (("one", 64 * MIB), ("one", MIB), ("many", MIB)):
        result = explain(tmp_path / lake, output="pred", budget=budget)
        results.append(result.features.set_index("feature").sort_index())
        slices.append(result.provenance.slices)
    assert slices == [1, 1, 3]  # whole; streamed; packed
    plan, _ = prepared(tmp_path / "one")
    assert [part.batch_rows for part in plan.slices()] == [MIB // (8 * (5 + 4))]
    for other in results[1:]:
        assert np.allclose(other["cir"], results[0]["cir"], rtol=0, atol=1e-12)
        assert np.array_equal(other["center"], results[0]["center"])


def test_fragments_say_where_and_what_their_rows_are():
    lake = footers([[3, 4], [5]], [[1, 0], [0]])
    files = (replace(lake.files[0], stored_names=(("x0", "old"),)), replace(lake.files[1], deleted=()))
    location = replace(lake.location, verify_checksums=False)
    ((first, second),) = (
        part.fragments for part in make_plan(replace(lake, files=files, location=location), selection(1)).slices()
    )
    assert (first.path, first.relative, first.size) == ("/lake/0000", "0000", 1000)
    assert (first.row_groups, first.rows, first.live_rows) == ((0, 1), (3, 4), 6)
    assert first.stored_names == (("x0", "old"),)
    assert [each and each.count for each in first.deleted] == [1, None]
    assert (second.deleted, second.stored_names, second.live_rows) == ((), (), 5)
    assert not first.verify
    (part,) = make_plan(lake, selection(1)).slices()
    assert all(fragment.verify for fragment in part.fragments)
    assert (part.rows, part.live_rows, make_plan(lake, selection(1)).rows) == (12, 11, 11)


def test_constants_are_those_of_the_columns_a_run_uses_as_numbers_or_text():
    lake = footers([[3]])
    given_ones = (
        ("x0", 2), ("y0", None), ("w", 1.5), ("m", 4), ("c", None), ("c2", "eu"), ("key", None), ("unused", 1),
    )  # fmt: skip
    files = (replace(lake.files[0], constants=given_ones),)
    columns = replace(selection(1, 1, "w"), model_columns=("m", "key"), categoricals=("c", "c2"))
    types = {"key": pa.string(), "m": pa.int32()}
    (part,) = make_plan(replace(lake, files=files, key_types=types), columns).slices()
    found = dict(part.fragments[0].constants)
    assert list(found) == ["x0", "y0", "w", "m", "c", "c2", "key"]
    assert (found["x0"], found["w"], found["m"], found["c2"]) == (2.0, 1.5, 4.0, "eu")
    assert isinstance(found["x0"], float)
    assert np.isnan(found["y0"])
    assert found["c"] is None
    assert found["key"] is None


@pytest.mark.parametrize(
    ("more", "columns"),
    [
        ({}, 4 + 4),
        ({"model_columns": tuple("abcdefghij")}, 10 + 4),
        ({"widest": 30}, 30 + 4),
        ({"model_outputs": 3}, 4 + 10),
    ],
)
def test_spans_leave_room_for_what_is_decoded_at_once(more, columns):
    """A model is given all its columns, a vector is decoded as a whole, and outputs of a model are held too."""
    chosen = replace(selection(4), **more)
    rows = MIB // (8 * columns)
    assert make_plan(footers([[rows - 1], [1]]), chosen, MIB).spans == 1
    assert make_plan(footers([[rows], [1]]), chosen, MIB).spans == 2


def test_a_small_lake_is_cut_into_a_dozen_slices_that_are_not_too_small():
    rows, columns = 1_000_000, 4 + 4
    plan = make_plan(footers([[rows // 100] * 100]), selection(4), 128 * MIB)
    assert plan.spans == 4  # of 16 MiB
    assert all(part.rows * 8 * columns <= 16 * MIB for part in plan.slices())
    plan = make_plan(footers([[rows] * 120]), selection(4), 1024 * MIB)
    assert [part.rows for part in plan.slices()] == [10 * rows] * 12
    plan = make_plan(footers([[rows] * 120]), selection(4), 128 * MIB)
    assert [part.rows for part in plan.slices()] == [2 * rows] * 60


def test_row_groups_outside_the_sample_do_not_count_in_the_size_of_slices():
    lake = footers([[1_000_000] * 120])
    plan = make_plan(lake, selection(4), 1024 * MIB, Sample(0.5, by="row-groups"))
    assert len(cells(plan)) == 60 * 4
    assert max(part.rows for part in plan.slices()) == 5_000_000


@pytest.mark.parametrize("value_bytes", [4, 8])
def test_spans_of_whole_rows_fill_their_budget(value_bytes):
    rows = MIB // (value_bytes * (4 + 2 + 1))
    assert [len(row_spans(footers([[rows], [n]]), selection(4, 2), MIB, value_bytes)) for n in (0, 1)] == [1, 2]
    assert len(row_spans(footers([[1_000_000]] * 24), selection(4, 2), 1024 * MIB, value_bytes)) == 12
    assert len(row_spans(footers([[3 * rows]]), selection(4, 2), MIB, value_bytes)) == 1
    (fragments,) = row_spans(footers([[3], [0], [5]]), selection(4, 2), MIB)
    assert [(each.relative, each.rows) for each in fragments] == [("0000", (3,)), ("0002", (5,))]


@pytest.mark.parametrize("plan", [make_plan, row_spans])
def test_the_smallest_budget_is_a_mebibyte(plan):
    plan(footers([[5]]), selection(1), MIB)
    with pytest.raises(UsageError, match=rf"^the slice budget is {MIB - 1} bytes; it must be at least 1 MiB$"):
        plan(footers([[5]]), selection(1), MIB - 1)


def test_a_single_column_that_just_fits_is_not_streamed():
    rows = MIB // (8 * (1 + 4))
    (fits,) = make_plan(footers([[rows]]), selection(1), MIB).slices()
    assert fits.batch_rows is None
    (streamed,) = make_plan(footers([[rows + 1]]), selection(1), MIB).slices()
    assert streamed.batch_rows == rows


def test_columns_of_outputs_that_a_model_makes_are_sliced_one_by_one_if_need_be():
    """No output is read again by every slice, so slices may be as narrow as one feature, and still whole."""
    chosen = replace(selection(4, 0), model_outputs=1)
    rows = 4 * MIB // 8
    for budget, widths, batch_rows in ((20 * MIB, [1, 1, 1, 1], None), (20 * MIB - 1, [4], (20 * MIB - 1) // 64)):
        plan = make_plan(footers([[rows]]), chosen, budget)
        assert [part.stop - part.start for part in plan.slices()] == widths
        assert {part.batch_rows for part in plan.slices()} == {batch_rows}


def test_a_row_larger_than_the_budget_is_read_by_itself():
    (part,) = make_plan(footers([[5]]), selection(1, 70_000), MIB).slices()
    assert part.batch_rows == 1


def test_a_slice_of_a_frame_counts_its_own_rows():
    part = Slice(7, 0, 3, lead=True, part="frame", first_row=20)
    assert part.live_rows == 7
    plan = Plan(selection(3), MIB, (((part,), (replace(part, rows=5),)),))
    assert (plan.rows, plan.spans, plan.slice_bytes) == (12, 2, 7 * 8 * (3 + 4))
    assert Plan(selection(3), MIB, ((),)).slice_bytes == 0


def test_spans_are_appended_block_by_block():
    one, other = (make_plan(footers([[rows]]), selection(300), MIB) for rows in (5, 6))
    both = append_spans(one, other)
    assert [[span[0].rows for span in block] for block in both.blocks] == [[5, 6], [5, 6]]
    assert (one.spans, both.spans, both.budget) == (1, 2, MIB)
