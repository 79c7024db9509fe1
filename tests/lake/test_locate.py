"""From what a user types to the files of a lake."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import fsspec
import pytest
from lakes import ALWAYS, cir, faulty, found, snapshot, write

from excir_dask.errors import LakeError, UsageError
from excir_dask.lake.locate import locate

ALL = ["b.parquet", "deep/a.parquet", "deep/er/c.parquet"]


def test_a_folder_is_searched_through_all_its_depths_in_the_order_of_relative_paths(lake):
    assert found(lake) == ALL
    assert found(f"{lake}/") == ALL
    assert found(str(lake)) == ALL


def test_a_file_is_a_lake_of_its_own(lake):
    assert found(lake / "deep" / "a.parquet") == ["a.parquet"]


@pytest.mark.parametrize("scheme", ["", "file://"])
@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.parquet", ["b.parquet"]),
        ("?.parquet", ["b.parquet"]),
        ("[ab].parquet", ["b.parquet"]),
        ("*/*.parquet", ["deep/a.parquet"]),
        ("deep/**/*.parquet", ["a.parquet", "er/c.parquet"]),
        ("**/*.parquet", ALL),
        ("**", ALL),
        ("**/[!b].parquet", ["deep/a.parquet", "deep/er/c.parquet"]),
    ],
)
def test_a_glob_finds_what_a_shell_would(lake, scheme, pattern, expected):
    assert found(f"{scheme}{lake}/{pattern}") == expected


def test_a_glob_that_matches_nothing_is_an_error_that_repeats_it(lake):
    with pytest.raises(LakeError, match=r"no file matches .*\*\.orc"):
        locate(f"{lake}/*.orc")


def test_a_list_of_files_is_ordered_by_path_whatever_the_order_given(lake):
    given = [lake / name for name in reversed(ALL)]
    assert found(given) == ALL
    assert found([str(path) for path in given]) == ALL
    assert cir(given) == cir(lake)


def test_an_empty_list_is_wrong_usage():
    with pytest.raises(UsageError, match="list of files is empty"):
        locate([])


def test_a_folder_inside_a_list_is_an_error_that_names_it(lake):
    with pytest.raises(LakeError, match=r"lake/deep is not a file"):
        locate([lake / "b.parquet", lake / "deep"])


def test_a_file_named_twice_in_a_list_does_not_count_twice(lake):
    with pytest.raises(UsageError, match=r"the list names .*b\.parquet 2 times"):
        locate([lake / "b.parquet", lake / "deep" / ".." / "b.parquet"])


def test_a_file_url_means_the_same_as_the_path(lake):
    assert found(f"file://{lake}") == ALL
    assert cir(f"file://{lake}") == cir(lake)


def test_a_memory_url_gives_the_scores_of_the_local_copy(lake):
    memory = fsspec.filesystem("memory")
    memory.put(str(lake), "/test_locate/lake", recursive=True)
    try:
        assert found("memory://test_locate/lake") == ALL
        assert found("memory://test_locate/lake/deep/**/*.parquet") == ["a.parquet", "er/c.parquet"]
        assert found("memory://test_locate/lake/b.parquet") == ["b.parquet"]
        assert cir("memory://test_locate/lake") == cir(lake)
    finally:
        memory.rm("/test_locate", recursive=True)


@pytest.mark.parametrize(
    "name", ["_SUCCESS", ".b.parquet.crc", "_temporary/x.parquet", ".git/x.parquet", "deep/_x.parquet", "_metadata"]
)
def test_names_that_begin_with_an_underscore_or_a_dot_are_left_out(lake, name):
    hidden = lake / name
    hidden.parent.mkdir(exist_ok=True)
    hidden.write_bytes(b"not parquet")
    assert found(lake) == ALL
    assert found(f"{lake}/**") == ALL
    assert snapshot(lake).rows == 120


def test_a_lake_below_a_hidden_folder_is_not_hidden(tmp_path):
    write(tmp_path / ".cache" / "_lake" / "x.parquet")
    assert found(tmp_path / ".cache" / "_lake") == ["x.parquet"]
    assert found(f"{tmp_path}/.cache/_lake/*.parquet") == ["x.parquet"]


def test_a_missing_path_is_an_error_that_repeats_it(tmp_path):
    with pytest.raises(LakeError, match=r"nowhere does not exist"):
        locate(tmp_path / "nowhere")


def test_an_empty_folder_holds_no_parquet_files(tmp_path):
    with pytest.raises(LakeError, match="holds no Parquet files"):
        locate(tmp_path)


def test_a_folder_of_hidden_files_alone_holds_no_parquet_files(tmp_path):
    (tmp_path / "_SUCCESS").touch()
    with pytest.raises(LakeError, match="holds no Parquet files"):
        locate(tmp_path)


def test_a_text_file_in_the_folder_is_named_with_a_way_to_leave_it_out(lake):
    (lake / "deep" / "README.txt").write_text("all about this lake")
    with pytest.raises(LakeError, match=r"deep/README\.txt .*cannot be read as Parquet.*exclude it with a glob"):
        snapshot(lake)
    assert snapshot(f"{lake}/**/*.parquet").rows == 120


def test_an_empty_file_is_named(lake):
    (lake / "deep" / "empty.parquet").touch()
    with pytest.raises(LakeError, match=r"deep/empty\.parquet \(0 bytes\) cannot be read as Parquet"):
        snapshot(lake)


@pytest.mark.parametrize("keep", [4, 100, -1, -8])
def test_a_truncated_parquet_file_is_named(lake, keep):
    broken = lake / "deep" / "a.parquet"
    broken.write_bytes(broken.read_bytes()[:keep])
    with pytest.raises(LakeError, match=r"deep/a\.parquet .*cannot be read as Parquet"):
        snapshot(lake)


@pytest.fixture
def open_lake(lake):
    """The lake where anybody may look for it, seen by somebody who is not root: root may read everything."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        copy = Path(shutil.copytree(lake, Path(folder) / "lake"))
        for path in [copy, *copy.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
        snapshot(copy)  # whatever is imported on first use is imported by now
        yield copy


@contextmanager
def as_nobody():
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(before)


def test_a_file_without_permission_is_named(open_lake):
    (open_lake / "b.parquet").chmod(0)
    with as_nobody(), pytest.raises(LakeError, match=r"no permission to read .*b\.parquet"):
        snapshot(open_lake)


def test_a_folder_without_permission_is_named(open_lake):
    (open_lake / "deep").chmod(0)
    try:
        with as_nobody(), pytest.raises(LakeError, match=r"no permission to list .*lake"):
            locate(open_lake)
    finally:
        (open_lake / "deep").chmod(0o755)


def test_a_store_that_denies_a_file_is_an_error_that_names_the_file(lake):
    with (
        faulty({("open", "a.parquet"): (ALWAYS, PermissionError)}),
        pytest.raises(LakeError, match=r"no permission to read .*deep/a\.parquet"),
    ):
        snapshot(f"faulty://{lake}")


@pytest.mark.parametrize(
    ("error", "message"), [(PermissionError, "no permission to list"), (OSError, "cannot be reached: injected")]
)
def test_a_store_that_cannot_be_listed_is_an_error_that_names_the_lake(lake, error, message):
    with faulty({("list", "lake"): (ALWAYS, error)}), pytest.raises(LakeError, match=message) as caught:
        locate(f"faulty://{lake}")
    assert str(lake) in str(caught.value)


def test_a_delta_table_is_refused_where_its_log_cannot_be_read(lake, monkeypatch):
    monkeypatch.setitem(sys.modules, "deltalake", None)
    (lake / "_delta_log").mkdir()
    (lake / "_delta_log" / "00000000000000000000.json").write_text("{}")
    with pytest.raises(LakeError, match=r"is a Delta Lake table.*excir-dask\[delta\].*list of files"):
        locate(lake)
    assert found([lake / name for name in ALL]) == ALL


def test_an_iceberg_table_is_refused_where_its_metadata_cannot_be_read(lake, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyiceberg.table", None)
    (lake / "metadata").mkdir()
    (lake / "metadata" / "v1.metadata.json").write_text("{}")
    with pytest.raises(LakeError, match=r"is an Iceberg table.*excir-dask\[iceberg\].*list of files"):
        locate(lake)


@pytest.mark.parametrize("inside", ["deep", "deep/er", "*.parquet", "deep/*.parquet"])
def test_a_part_of_a_tables_folder_is_refused(lake, inside):
    (lake / "_delta_log").mkdir()
    with pytest.raises(LakeError, match=r"is in the folder of the Delta Lake table .*lake, where files may hold"):
        locate(f"{lake}/{inside}")
    assert found(lake / "deep" / "a.parquet") == ["a.parquet"]


def test_a_version_of_what_is_no_table_is_wrong_usage(lake):
    with pytest.raises(UsageError, match=r"version 3 was asked for, but .*lake is not a table"):
        locate(lake, table_version=3)


def test_a_folder_called_metadata_is_not_an_iceberg_table(lake):
    shutil.copytree(lake / "deep", lake / "metadata")
    assert found(lake) == [*ALL, "metadata/a.parquet", "metadata/er/c.parquet"]


@pytest.mark.parametrize("name", ["my lake", "lake [1]", "what?", "all*", "naïve—湖", "50%", "a#b", "key=old"])
def test_a_folder_is_found_whatever_characters_its_name_has(tmp_path, lake, name):
    folder = Path(shutil.copytree(lake, tmp_path / "strange" / name))
    assert found(folder) == ALL
    assert found(folder / "deep" / "a.parquet") == ["a.parquet"]
    assert snapshot(folder).key_types == {}
    assert cir(folder) == cir(lake)


@pytest.mark.parametrize("name", ["my lake", "naïve—湖", "key=old", "a#b"])
def test_a_url_may_hold_spaces_and_unicode(tmp_path, lake, name):
    shutil.copytree(lake, tmp_path / "strange" / name)
    assert found(f"file://{tmp_path}/strange/{name}") == ALL
    assert found(f"file://{tmp_path}/strange/{name}/?.parquet") == ["b.parquet"]


def test_a_tilde_is_the_home_folder(lake, monkeypatch):
    monkeypatch.setenv("HOME", str(lake.parent))
    assert found("~/lake") == ALL
    assert found("~/lake/*.parquet") == ["b.parquet"]


def test_a_relative_path_starts_from_the_working_folder(lake, monkeypatch):
    monkeypatch.chdir(lake.parent)
    assert found("lake") == ALL
    assert found("lake/*.parquet") == ["b.parquet"]
    assert found("./lake/../lake") == ALL


def test_storage_options_for_a_local_path_are_wrong_usage(lake):
    with pytest.raises(UsageError, match="local path"):
        locate(str(lake), {"anon": True})


def test_an_unknown_scheme_is_wrong_usage():
    with pytest.raises(UsageError, match="cannot open nosuch:// locations"):
        locate("nosuch://bucket/lake")


def test_an_unknown_option_in_a_url_is_wrong_usage():
    with pytest.raises(UsageError, match="endpoint_overide"):
        locate("s3://bucket/lake?endpoint_overide=127.0.0.1:9")
