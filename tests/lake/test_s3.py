"""A lake in an object store, spoken to over HTTP: moto's server on this machine's loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from lakes import cir, found, numbers, snapshot, write
from s3_server import s3_server
from stores import Counter, counting

from excir_dask import explain
from excir_dask.cli import excir
from excir_dask.errors import LakeChangedError, LakeError, ReadError, UsageError
from excir_dask.graph import closer
from excir_dask.lake.checksums import HEADER_BYTES
from excir_dask.lake.locate import locate
from excir_dask.lake.snapshot import check_unchanged

FILES = ["site=1/part 0.parquet", "site=2/part 0.parquet"]


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """Of a server with an empty store."""
    with s3_server() as port:
        yield port


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory, port: int) -> Path:
    """A Hive-partitioned lake; the same files are in the bucket ``store``."""
    from pyarrow import fs

    folder = tmp_path_factory.mktemp("s3") / "lake"
    for seed, name in enumerate(FILES):
        write(folder / name, numbers(seed=seed), row_group_size=25)
    (folder / "_SUCCESS").touch()
    bucket = fs.S3FileSystem(endpoint_override=f"127.0.0.1:{port}", scheme="http", allow_bucket_creation=True)
    bucket.create_dir("store")
    fs.copy_files(str(folder), "store/lake", source_filesystem=fs.LocalFileSystem(), destination_filesystem=bucket)
    return folder


def pyarrow_url(path: str, port: int) -> str:
    return f"s3://store/{path}?endpoint_override=127.0.0.1:{port}&scheme=http"


def options(port: int) -> dict[str, object]:
    pytest.importorskip("s3fs")
    return {"client_kwargs": {"endpoint_url": f"http://127.0.0.1:{port}"}}


def test_pyarrows_s3_gives_the_scores_of_the_local_copy(local, port):
    expected = cir(local)
    assert set(expected) == {"a", "b", "site"}
    assert cir(pyarrow_url("lake", port)) == expected


def test_fsspecs_s3_gives_the_scores_of_the_local_copy(local, port):
    assert cir("s3://store/lake", storage_options=options(port)) == cir(local)


def test_a_sample_is_the_same_rows_wherever_the_lake_lies(local, port):
    expected = cir(local, fraction=0.5)
    assert expected != cir(local)
    assert cir(pyarrow_url("lake", port), fraction=0.5) == expected
    assert cir("s3://store/lake", storage_options=options(port), fraction=0.5) == expected


def test_snapshots_agree_on_files_rows_and_keys(local, port):
    here = snapshot(local)
    for there in (
        snapshot(pyarrow_url("lake", port)),
        snapshot("s3://store/lake", storage_options=options(port)),
    ):
        assert [(f.relative, f.size, f.row_groups, f.constants) for f in there.files] == [
            (f.relative, f.size, f.row_groups, f.constants) for f in here.files
        ]
        assert there.key_types == here.key_types


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("lake/", FILES),
        ("lake/*/*.parquet", FILES),
        ("lake/**/*.parquet", FILES),
        ("lake/site=?/*.parquet", FILES),
        ("lake/site=[2-9]/*.parquet", FILES[1:]),
        ("lake/site=1/part 0.parquet", ["part 0.parquet"]),
    ],
)
def test_globs_and_spaces_work_beside_the_options_of_a_url(local, port, path, expected):
    assert found(pyarrow_url(path, port)) == expected
    assert found(f"s3://store/{path}", storage_options=options(port)) == expected


def test_what_is_not_in_the_store_is_an_error_that_names_it(local, port):
    with pytest.raises(LakeError, match=r"store/nothing.* does not exist"):
        locate(pyarrow_url("nothing", port))
    with pytest.raises(LakeError, match="s3://nobucket/lake does not exist"):
        locate("s3://nobucket/lake", options(port))


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory, port: int) -> Path:
    """A partitioned lake of 20 columns; the same files are in the bucket ``store``."""
    from pyarrow import fs

    folder = tmp_path_factory.mktemp("wide") / "wide"
    for site in (1, 2):
        data = np.random.default_rng(site).normal(size=(20, 30_000))
        table = pa.table({f"x{i}": x for i, x in enumerate(data)} | {"pred": data[:3].sum(axis=0)})
        write(folder / f"site={site}" / f"{site}.parquet", table, row_group_size=10_000)
    bucket = fs.S3FileSystem(endpoint_override=f"127.0.0.1:{port}", scheme="http", allow_bucket_creation=True)
    bucket.create_dir("store")
    fs.copy_files(str(folder), "store/wide", source_filesystem=fs.LocalFileSystem(), destination_filesystem=bucket)
    return folder


@pytest.fixture
def counter(port: int) -> Iterator[Counter]:
    with counting(port) as counter:
        yield counter


def column_bytes(folder: Path, columns: list[str] | None = None) -> int:
    """Compressed bytes of some columns' chunks."""
    footers = [pq.read_metadata(path) for path in folder.rglob("*.parquet")]
    groups = [footer.row_group(i) for footer in footers for i in range(footer.num_row_groups)]
    chunks = [group.column(i) for group in groups for i in range(group.num_columns)]
    return sum(c.total_compressed_size for c in chunks if columns is None or c.path_in_schema in columns)


@pytest.mark.parametrize("kind", ["pyarrow", "fsspec"])
@pytest.mark.parametrize("features", [None, ["x3", "x4", "x11"]])
def test_a_scan_fetches_the_columns_it_needs_once(wide, counter, kind, features, monkeypatch):
    monkeypatch.setattr(closer, "FEW_VALUES", 0)  # small lakes are looked at again too often to foresee
    lake, storage = ("s3://store/wide", options(counter.port)) if kind == "fsspec" else (None, None)
    found = explain(
        lake or pyarrow_url("wide", counter.port), output="pred", features=features, storage_options=storage
    )
    columns = column_bytes(wide, None if features is None else [*features, "pred"])
    ends = {path.name: path.stat().st_size - 65536 for path in wide.rglob("*.parquet")}
    footers = sum(first >= ends[path.rsplit("/", 1)[-1]] for path, first, _ in counter.fetched)
    headers = HEADER_BYTES * len(ends)  # of one page per file, to see whether it carries a checksum
    assert found.provenance.bytes_read == counter.bytes_of_columns(ends) - headers <= 2 * 1.1 * columns
    assert footers == 3 * len(ends), "once for the plan and once a scan"


def test_scores_of_a_partitioned_lake_are_those_of_the_local_copy(wide, port):
    expected = cir(wide)
    assert cir(pyarrow_url("wide", port)) == expected
    assert cir("s3://store/wide", storage_options=options(port)) == expected


DENIED = ((403, "AccessDenied"), LakeError, "no permission to list .*credentials")
MISSING = ((404, "NoSuchBucket"), LakeError, "does not exist")
BUSY = ((503, "SlowDown"), ReadError, "cannot be reached")


@pytest.mark.parametrize(
    ("kind", "fault", "error", "message"),
    [
        *(("fsspec", *case) for case in (DENIED, MISSING, BUSY)),
        *(("pyarrow", *case) for case in (DENIED, MISSING)),
        pytest.param("pyarrow", *BUSY, marks=pytest.mark.slow),  # pyarrow tries again by itself, for seconds
    ],
)
def test_what_a_store_refuses_is_told_from_what_may_pass(local, counter, kind, fault, error, message, monkeypatch):
    monkeypatch.setattr("s3fs.core.S3FileSystem.retries", 1)
    counter.fault = fault
    once = {"config_kwargs": {"retries": {"max_attempts": 1}}}
    lake, storage = ("s3://store/lake", options(counter.port) | once) if kind == "fsspec" else (None, None)
    with pytest.raises(LakeError, match=message) as caught:
        locate(lake or pyarrow_url("lake", counter.port), storage)
    assert type(caught.value) is error
    assert caught.value.exit_code == (75 if error is ReadError else 3)


def test_missing_credentials_are_no_traceback(local, port, monkeypatch, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    with pytest.raises(LakeError, match="no permission to list s3://store/lake: Unable to locate credentials"):
        locate("s3://store/lake", {**options(port), "skip_instance_cache": True})


@pytest.mark.parametrize("kind", ["pyarrow", "fsspec"])
def test_an_object_that_was_written_again_is_noticed(local, port, kind):
    from pyarrow import fs

    store = fs.S3FileSystem(endpoint_override=f"127.0.0.1:{port}", scheme="http")

    def put(seed: int) -> None:
        with store.open_output_stream("store/again/x.parquet") as sink:
            pq.write_table(numbers(100 * seed, seed=seed), sink)

    put(1)
    shot = (
        snapshot("s3://store/again", storage_options=options(port))
        if kind == "fsspec"
        else snapshot(pyarrow_url("again", port))
    )
    check_unchanged(shot)
    put(2)
    with pytest.raises(LakeChangedError, match=r"x\.parquet was changed"):
        check_unchanged(shot)


def test_a_delta_table_in_a_store_needs_no_options_of_its_own(tmp_path, port):
    deltalake = pytest.importorskip("deltalake")
    from pyarrow import fs

    deltalake.write_deltalake(tmp_path / "delta", numbers(200))
    deltalake.DeltaTable(tmp_path / "delta").delete("a > 0")
    store = fs.S3FileSystem(endpoint_override=f"127.0.0.1:{port}", scheme="http", allow_bucket_creation=True)
    store.create_dir("store")
    fs.copy_files(str(tmp_path), "store/tables", destination_filesystem=store)
    expected = cir(tmp_path / "delta")
    assert cir(pyarrow_url("tables/delta", port)) == expected
    assert cir("s3://store/tables/delta", storage_options=options(port)) == expected


@pytest.mark.parametrize("kind", ["pyarrow", "fsspec"])
def test_a_run_whose_states_are_in_a_store_goes_on(wide, port, kind):
    from pyarrow import fs

    name = f"states {kind}"
    url = {"pyarrow": partial(pyarrow_url, port=port), "fsspec": "s3://store/{}".format}[kind]
    given = {"output": "pred", "budget": "1MiB", "storage_options": options(port) if kind == "fsspec" else None}
    reference = explain(wide, output="pred", budget="1MiB")
    first = explain(url("wide"), checkpoint=url(name), **given)
    store = fs.S3FileSystem(endpoint_override=f"127.0.0.1:{port}", scheme="http")
    states = [file.path for file in store.get_file_info(fs.FileSelector(f"store/{name}", recursive=True))]
    states = sorted(path for path in states if path.endswith(".state"))
    assert len(states) > 10
    for path in states[::2]:
        store.delete_file(path)
    again = explain(url("wide"), checkpoint=url(name), **given)
    scores = [each.features.to_csv() for each in (reference, first, again)]
    assert scores[0] == scores[1] == scores[2]
    assert again.provenance.resumed_states == len(states[1::2])
    assert 0 < again.provenance.bytes_read < first.provenance.bytes_read


def test_commands_reach_a_store_by_its_options(local, port, tmp_path):
    url = options(port)["client_kwargs"]["endpoint_url"]
    given = ["--storage-option", f"client_kwargs.endpoint_url={url}", "--json", "--quiet"]
    for command in (
        ["explain", "s3://store/lake", "--output", "pred"],
        ["sweep", "s3://store/lake", "--output", "pred", "--fractions", "0.5", "--seeds", "1", "--k", "2"],
        ["train", "s3://store/lake", "--label", "pred", "--rounds", "2", "--out", str(tmp_path / "model.ubj")],
    ):
        done = CliRunner().invoke(excir, [*command, *given])
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)


def test_a_checkpoint_may_be_in_a_store_where_the_lake_is_not(local, port):
    found = explain(local, output="pred", checkpoint="s3://store/elsewhere", storage_options=options(port))
    again = explain(local, output="pred", checkpoint="s3://store/elsewhere", storage_options=options(port))
    assert again.features.equals(found.features)
    assert again.provenance.bytes_read == 0


@pytest.mark.parametrize("kind", ["pyarrow", "fsspec"])
def test_a_bucket_whose_name_is_mistyped_is_not_made(local, port, kind):
    from pyarrow import fs

    url = (
        "s3://storr/states" if kind == "fsspec" else f"s3://storr/states?endpoint_override=127.0.0.1:{port}&scheme=http"
    )
    with pytest.raises(UsageError, match=r"storr/states \(checkpoint\) cannot be written to"):
        explain(local, output="pred", checkpoint=url, storage_options=options(port) if kind == "fsspec" else None)
    store = fs.S3FileSystem(endpoint_override=f"127.0.0.1:{port}", scheme="http")
    assert store.get_file_info("storr").type == fs.FileType.NotFound


def test_a_store_for_states_that_is_out_of_reach_may_be_back_later(local, port, counter):
    counter.fault = (503, "SlowDown")
    once = options(counter.port) | {"config_kwargs": {"retries": {"max_attempts": 1}}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("s3fs.core.S3FileSystem.retries", 1)
        with pytest.raises(ReadError, match="cannot be reached"):
            explain(local, output="pred", checkpoint="s3://store/later", storage_options=once)
