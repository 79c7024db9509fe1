"""Iceberg tables are read through their metadata: the rows of one snapshot, and no others."""

from __future__ import annotations

import json
import shutil
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lakes import found, rows, same, snapshot

from excir_dask import explain
from excir_dask.errors import LakeError, UsageError

pytest.importorskip("pyiceberg")
pytest.importorskip("sqlalchemy")
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestWriterV2,
    write_manifest_list,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import DoubleType, LongType, NestedField


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[SqlCatalog]:
    with SqlCatalog("test", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}") as catalog:
        catalog.create_namespace("lake")
        yield catalog


@pytest.fixture
def table(catalog: SqlCatalog) -> Any:
    """Two appends, a delete and an overwrite of some rows."""
    table = catalog.create_table("lake.t", rows().schema)
    table.append(rows(seed=0))
    table.append(rows(seed=1))
    table.delete("a > 0.5")
    changed = rows(20, seed=1)
    table.overwrite(changed.set_column(2, "pred", changed["b"]), overwrite_filter="id >= 1000 and id < 1020")
    return table


def folder(table: Any) -> Path:
    return Path(table.location().removeprefix("file://"))


def current(table: Any, snapshot_id: int | None = None) -> pd.DataFrame:
    """The rows as pyiceberg itself reads them."""
    return table.scan(snapshot_id=snapshot_id).to_arrow().to_pandas()


def test_deleted_and_overwritten_rows_give_the_scores_of_the_current_rows(table):
    frame = current(table)
    assert frame["id"].is_unique
    assert len(list(folder(table).glob("data/*.parquet"))) > len(found(folder(table)))
    same(folder(table), frame)
    assert explain(folder(table), output="pred").facts.rows.lake == len(frame)


def test_a_snapshot_is_what_was_current_then(table):
    for shot in table.metadata.snapshots:
        same(folder(table), current(table, shot.snapshot_id), table_version=shot.snapshot_id)
    lake = explain(folder(table), output="pred").provenance.lake
    assert (lake.table, lake.version) == ("Iceberg", table.current_snapshot().snapshot_id)


def test_a_snapshot_that_is_not_there_is_wrong_usage(table):
    with pytest.raises(UsageError, match=rf"no snapshot 7; the last ones are .*{table.current_snapshot().snapshot_id}"):
        snapshot(folder(table), table_version=7)


def test_a_metadata_file_stands_for_the_table_as_it_describes_it(table):
    first = next(folder(table).glob("metadata/00001-*.metadata.json"))
    same(first, current(table, table.metadata.snapshots[0].snapshot_id))


def test_a_table_without_rows_is_an_error(catalog):
    table = catalog.create_table("lake.empty", rows().schema)
    with pytest.raises(LakeError, match="has no snapshot, so it has no rows"):
        snapshot(folder(table))


def test_two_newest_metadata_files_are_for_the_catalog_to_decide(table):
    newest = max(folder(table).glob("metadata/*.metadata.json"))
    shutil.copy(newest, newest.with_name(newest.name.split("-")[0] + "-other.metadata.json"))
    with pytest.raises(LakeError, match=r"2 metadata files with the latest number.*the one that the catalog points to"):
        snapshot(folder(table))
    same(newest, current(table))


def test_a_version_hint_decides(table):
    first = next(folder(table).glob("metadata/00001-*.metadata.json"))
    shutil.copy(first, folder(table) / "metadata" / "v9.metadata.json")
    (folder(table) / "metadata" / "version-hint.text").write_text("9")
    same(folder(table), current(table, table.metadata.snapshots[0].snapshot_id))


def test_a_table_that_was_moved_is_read_where_it_is(table, tmp_path):
    frame = current(table)
    same(shutil.move(folder(table), tmp_path / "moved"), frame)


def test_a_table_in_a_store_is_read_with_the_stores_own_options(table):
    memory = fsspec.filesystem("memory")
    memory.put(str(folder(table)), "/test_iceberg/t", recursive=True)
    try:
        same("memory://test_iceberg/t", current(table))
    finally:
        memory.rm("/test_iceberg", recursive=True)


def test_a_file_outside_the_tables_folder_is_refused(table):
    newest = max(folder(table).glob("metadata/*.metadata.json"))
    newest.write_text(newest.read_text().replace(f'"{table.location()}"', f'"{table.location()}/elsewhere"'))
    with pytest.raises(LakeError, match="has a file outside its folder"):
        snapshot(folder(table))


def test_partitioned_tables(catalog):
    data = rows(site=np.tile([1, 2, 3], 20))
    table = catalog.create_table("lake.p", data.schema)
    with table.update_spec() as update:
        update.add_field("site", IdentityTransform())
    table.append(data)
    table.delete("site = 2 and a > 0")
    table.delete("site = 3")
    same(folder(table), current(table))


def test_a_partition_value_that_is_not_in_the_files_comes_from_the_metadata(catalog, tmp_path):
    data = rows(site=np.repeat([1, 2], 30))
    spec = PartitionSpec(PartitionField(source_id=5, field_id=1000, transform=IdentityTransform(), name="site"))
    kinds = [DoubleType(), DoubleType(), DoubleType(), LongType(), LongType()]
    fields = [
        NestedField(i, name, kind) for i, (name, kind) in enumerate(zip(data.column_names, kinds, strict=True), 1)
    ]
    table = catalog.create_table("lake.hive", Schema(*fields), partition_spec=spec)
    paths = []
    for site in (1, 2):
        path = folder(table) / "data" / f"site={site}" / "x.parquet"
        path.parent.mkdir(parents=True)
        pq.write_table(data.filter(pa.compute.equal(data["site"], site)), path)
        paths.append(str(path))
    table.add_files(paths)
    for path in map(Path, paths):  # as Hive would have written it
        pq.write_table(pq.ParquetFile(path).read().drop_columns("site"), path)
    same(folder(table), data.to_pandas())
    found = explain(folder(table), output="pred", where="site == 2")
    assert (found.facts.rows.used, found.facts.rows.row_groups) == (30, 1)


def test_columns_are_known_by_their_ids_through_renames_additions_and_drops(table):
    with table.update_schema() as update:
        update.rename_column("b", "was_b")
        update.add_column("extra", DoubleType())
        update.delete_column("id")
    with table.update_schema() as update:
        update.add_column("b", DoubleType())
    later = rows(30, seed=4).rename_columns(["a", "was_b", "pred", "b"])
    later = later.set_column(3, "b", later["b"].cast(pa.float64())).append_column("extra", later["a"])
    table.append(later.select(["a", "was_b", "pred", "extra", "b"]))
    frame = current(table)
    assert list(frame.columns) == ["a", "was_b", "pred", "extra", "b"]
    assert frame["b"].count() == 30
    same(folder(table), frame)
    for where, chosen in {
        "was_b > 0.3 and b is None": (frame["was_b"] > 0.3) & frame["b"].isna(),
        "b >= 4010": frame["b"] >= 4010,
        "extra < 0 or was_b < 0": (frame["extra"] < 0) | (frame["was_b"] < 0),
    }.items():
        same(folder(table), frame[chosen], where=where)


@pytest.fixture
def added(catalog: SqlCatalog) -> Any:
    """A table with a file that was made without it, and has no ids of its columns."""
    table = catalog.create_table("lake.added", rows().schema)
    path = folder(table) / "data" / "plain.parquet"
    path.parent.mkdir()
    pq.write_table(rows(), path)
    table.add_files([str(path)])
    return table


def test_files_without_ids_are_known_by_the_tables_mapping_of_names(added):
    with added.update_schema() as update:
        update.rename_column("b", "was_b")
    same(folder(added), rows().to_pandas().rename(columns={"b": "was_b"}))


def test_files_that_nobody_can_name_the_columns_of_are_refused(added):
    with added.transaction() as change:
        change.remove_properties("schema.name-mapping.default")
    with pytest.raises(LakeError, match=r"plain\.parquet has no field ids.*schema.name-mapping.default"):
        snapshot(folder(added))


class _DeleteManifest(ManifestWriterV2):
    """pyiceberg writes no manifests of delete files by itself."""

    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


def add_delete_file(
    table: Any, path: Path, content: DataFileContent, count: int, kind: FileFormat = FileFormat.PARQUET
) -> None:
    """A snapshot with one more delete file, as Spark's merge-on-read or Flink would write it."""
    home, base = folder(table), table.current_snapshot()
    number = base.snapshot_id + 1
    sequence = table.metadata.last_sequence_number + 1
    file = DataFile.from_args(
        content=content, file_path=f"file://{path}", file_format=kind, partition=Record(),
        record_count=count, file_size_in_bytes=path.stat().st_size, spec_id=0,
        equality_ids=[4] if content == DataFileContent.EQUALITY_DELETES else None,
    )  # fmt: skip
    output = table.io.new_output(f"file://{home}/metadata/deletes-{number}.avro")
    with _DeleteManifest(table.spec(), table.schema(), output, number, "null") as writer:
        entry = ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=number, data_file=file)
        writer.add(entry)
    manifest = writer.to_manifest_file()
    listed = f"file://{home}/metadata/snap-{number}.avro"
    with write_manifest_list(2, table.io.new_output(listed), number, base.snapshot_id, sequence, "null") as lists:
        lists.add_manifests([*base.manifests(table.io), manifest])
    added = Snapshot(
        **{
            "snapshot-id": number,
            "parent-snapshot-id": base.snapshot_id,
            "sequence-number": sequence,
            "timestamp-ms": base.timestamp_ms + 1,
            "manifest-list": listed,
            "summary": Summary(Operation.DELETE),
            "schema-id": base.schema_id,
        }
    )
    newest = max(home.glob("metadata/*.metadata.json"))
    state = json.loads(newest.read_text())
    state["snapshots"].append(json.loads(added.model_dump_json()))
    state |= {"current-snapshot-id": number, "last-sequence-number": sequence}
    state["refs"]["main"]["snapshot-id"] = number
    version = int(newest.name.split("-")[0]) + 1
    newest.with_name(f"{version:05}-deletes.metadata.json").write_text(json.dumps(state))


def write_deletes(path: Path, data: str, places: list[int]) -> None:
    pq.write_table(pa.table({"file_path": [data] * len(places), "pos": pa.array(places, pa.int64())}), path)


def write_vector(path: Path, data: str, places: list[int]) -> None:
    """A Puffin file with one deletion vector."""
    bits = pytest.importorskip("pyroaring").BitMap(places).serialize()
    vector = bytes.fromhex("d1d33964") + struct.pack("<q", 1) + struct.pack("<i", 0) + bits
    blob = struct.pack(">i", len(vector)) + vector + struct.pack(">I", zlib.crc32(vector))
    properties = {"referenced-data-file": data, "cardinality": str(len(places))}
    entry = {
        "type": "deletion-vector-v1", "fields": [], "snapshot-id": -1, "sequence-number": -1, "offset": 4,
        "length": len(blob), "properties": properties,
    }  # fmt: skip
    footer = json.dumps({"blobs": [entry], "properties": {}}).encode()
    path.write_bytes(b"PFA1" + blob + b"PFA1" + footer + struct.pack("<i", len(footer)) + b"\0" * 4 + b"PFA1")


@pytest.fixture(params=[FileFormat.PARQUET, FileFormat.PUFFIN], ids=["positions", "vector"])
def merged_on_read(catalog: SqlCatalog, request: pytest.FixtureRequest) -> tuple[Any, pd.DataFrame]:
    """Two files, of which one has positional deletes in two of its row groups."""
    table = catalog.create_table("lake.mor", rows().schema, properties={"write.parquet.row-group-limit": "50"})
    table.append(rows(200, seed=0))
    table.append(rows(60, seed=1))
    data = next(t.file.file_path for t in table.scan().plan_files() if t.file.record_count == 200)
    places = [0, 3, 49, 50, 51, 120]
    path = folder(table) / "data" / "deletes"
    (write_deletes if request.param == FileFormat.PARQUET else write_vector)(path, data, places)
    add_delete_file(table, path, DataFileContent.POSITION_DELETES, len(places), request.param)
    kept = pd.concat([rows(200, seed=0).to_pandas().drop(index=places), rows(60, seed=1).to_pandas()])
    return table, kept


def test_positional_deletes_do_not_count(merged_on_read):
    table, frame = merged_on_read
    assert {file.live_rows for file in snapshot(folder(table)).files} == {(47, 48, 49, 50), (50, 10)}
    same(folder(table), frame)
    counts = explain(folder(table), output="pred").facts.rows
    assert counts.lake == counts.used == len(frame)
    before = table.current_snapshot().snapshot_id
    same(folder(table), pa.concat_tables([rows(200, seed=0), rows(60, seed=1)]).to_pandas(), table_version=before)


def test_fingerprints_tell_deleted_rows_apart(merged_on_read):
    table, _ = merged_on_read
    assert (
        snapshot(folder(table)).fingerprint
        != snapshot(folder(table), table_version=table.current_snapshot().snapshot_id).fingerprint
    )


def test_equality_deletes_are_refused_with_what_to_do(table):
    path = folder(table) / "data" / "equal.parquet"
    pq.write_table(pa.table({"id": [3]}), path)
    add_delete_file(table, path, DataFileContent.EQUALITY_DELETES, 1)
    with pytest.raises(LakeError, match=r"has equality deletes.*rewrite its data files first"):
        snapshot(folder(table))
