"""Every file of a lake counts once, however many links lead to it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from lakes import cir, found, numbers, snapshot, write

from excir_dask import explain
from excir_dask.errors import LakeError, UsageError
from excir_dask.lake.locate import locate
from excir_dask.pipeline.options import ExplainOptions
from excir_dask.pipeline.preview import preview
from excir_dask.render.text.preview import text

ALL = ["b.parquet", "deep/a.parquet", "deep/er/c.parquet"]


def remarks(lake):
    return list(locate(lake).remarks)


@pytest.mark.parametrize("target", [".", "..", "../..", "/", "deep", "deep/er"])
@pytest.mark.parametrize("place", ["loop", "deep/loop", "deep/er/loop"])
def test_a_link_never_changes_which_files_a_lake_has(lake, place, target):
    link = lake / place
    link.symlink_to(target if target == "/" or target.startswith(".") else lake / target)
    assert found(lake) == ALL
    assert found(f"{lake}/**/*.parquet") == ALL
    assert len(remarks(lake)) == 1


def test_links_in_a_loop_through_a_folder_outside_are_followed_once(lake, tmp_path):
    write(tmp_path / "outside" / "d.parquet", numbers(seed=9))
    (lake / "more").symlink_to(tmp_path / "outside")
    (tmp_path / "outside" / "back").symlink_to(lake)
    assert found(lake) == [*ALL, "more/d.parquet"]
    assert remarks(lake) == ["1 link was not followed because a folder would contain itself: more/back"]


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_second_name_of_a_file_adds_no_rows(lake, link):
    before = cir(lake)
    link(lake / "deep" / "a.parquet", lake / "0.parquet")
    assert snapshot(lake).rows == 120
    if link is os.symlink:  # the name that is no link stays, so that samples stay too
        assert found(lake) == ALL
    assert cir(lake) == pytest.approx(before, abs=1e-12)


def test_what_is_left_out_is_counted_in_the_result_the_text_and_the_plan(lake):
    (lake / "latest").symlink_to(lake / "deep")
    (lake / "loop").symlink_to(lake)
    said = [
        "2 files were left out because they are links to other files of the lake, which count once: "
        "latest/a.parquet, latest/er/c.parquet",
        "1 link was not followed because a folder would contain itself: loop",
    ]
    result = explain(str(lake), output="pred")
    assert result.facts.rows.lake == 120
    assert list(result.provenance.lake.remarks) == said
    assert preview(str(lake), ExplainOptions()).to_dict()["remarks"] == said
    for shown in (str(result), text(preview(str(lake), ExplainOptions()))):
        assert all(f"note: {remark}" in shown for remark in said)
    done = subprocess.run(
        [sys.executable, "-m", "excir_dask", "plan", str(lake)], capture_output=True, text=True, check=True
    )
    assert f"note: {said[0]}" in done.stdout


def test_of_two_links_to_a_file_outside_the_first_counts(lake, tmp_path):
    outside = write(tmp_path / "outside.parquet", numbers(seed=9))
    for name in ("y.parquet", "x.parquet"):
        (lake / name).symlink_to(outside)
    assert found(lake) == [*ALL, "x.parquet"]


def test_a_link_whose_target_is_hidden_counts(lake):
    write(lake / "..data" / "d.parquet", numbers(seed=9))
    (lake / "d.parquet").symlink_to(lake / "..data" / "d.parquet")
    assert found(lake) == sorted([*ALL, "d.parquet"])
    assert remarks(lake) == []


def test_a_lake_or_a_glob_that_begins_with_a_link_is_followed(lake, tmp_path):
    (tmp_path / "alias").symlink_to(lake)
    assert found(tmp_path / "alias") == ALL
    assert found(f"{tmp_path}/alias/**/*.parquet") == ALL
    assert found(f"{tmp_path}/al*/b.parquet") == ["alias/b.parquet"]


def test_a_list_that_names_a_file_and_a_link_to_it_is_refused(lake):
    (lake / "x.parquet").symlink_to(lake / "b.parquet")
    with pytest.raises(UsageError, match=r"b\.parquet and .*x\.parquet are links to one file"):
        locate([lake / "b.parquet", lake / "x.parquet"])


def test_copies_of_a_file_are_different_files(lake):
    write(lake / "copy.parquet", numbers(), row_group_size=25)
    os.utime(lake / "copy.parquet", ns=((lake / "b.parquet").stat().st_mtime_ns,) * 2)
    assert found(lake) == sorted([*ALL, "copy.parquet"])
    assert remarks(lake) == []


def test_a_lake_of_links_alone_that_lead_nowhere_holds_no_files(tmp_path):
    (tmp_path / "x.parquet").symlink_to(tmp_path / "gone")
    with pytest.raises(LakeError, match="holds no Parquet files"):
        locate(tmp_path)
