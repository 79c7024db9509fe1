"""Delta Lake tables are read through their log: the rows of one version, and no others."""

from __future__ import annotations

import base64
import json
import struct
import uuid
import zlib
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from lakes import cir, rows, same, snapshot

from excir_dask import explain
from excir_dask.errors import LakeError, UsageError
from excir_dask.pipeline.options import ExplainOptions
from excir_dask.pipeline.preview import preview
from excir_dask.render.text.preview import text

deltalake = pytest.importorskip("deltalake")
from deltalake import DeltaTable, Field, write_deltalake  # noqa: E402
from deltalake.schema import PrimitiveType  # noqa: E402


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Four versions: a write, an append, a delete and an update."""
    path = tmp_path / "table"
    write_deltalake(path, rows(seed=0))
    write_deltalake(path, rows(seed=1), mode="append")
    DeltaTable(path).delete("a > 0.5")
    DeltaTable(path).update(predicate="b < 0", updates={"pred": "b * 2"})
    return path


def current(path: Path, version: int | None = None) -> pd.DataFrame:
    """The rows as deltalake itself reads them."""
    return DeltaTable(path, version=version).to_pyarrow_table().to_pandas()


def test_deleted_and_updated_rows_give_the_scores_of_the_current_rows(table):
    frame = current(table)
    assert len(frame) < 120
    assert len(list(table.glob("*.parquet"))) > len(DeltaTable(table).file_uris())
    same(table, frame)
    assert explain(table, output="pred").facts.rows.lake == len(frame)


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_a_version_is_what_was_current_then(table, version):
    same(table, current(table, version), table_version=version)
    lake = explain(table, output="pred", table_version=version).provenance.lake
    assert (lake.table, lake.version) == ("Delta Lake", version)


def test_versions_have_fingerprints_of_their_own(table):
    prints = {snapshot(table, table_version=version).fingerprint for version in range(4)}
    assert len(prints) == 4
    assert snapshot(table).fingerprint == snapshot(table, table_version=3).fingerprint


def test_a_version_that_is_not_there_is_wrong_usage(table):
    for version in (-1, 4):
        with pytest.raises(UsageError, match=rf"has no version {version}; the latest is 3"):
            snapshot(table, table_version=version)


def test_the_version_is_saved_and_shown(table, tmp_path):
    explain(table, output="pred").save(tmp_path / "out")
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["lake"]["version"] == 3
    assert "table     Delta Lake, version 3" in text(preview(str(table), ExplainOptions()))


def test_an_overwritten_table_has_the_new_rows_alone(table):
    write_deltalake(table, rows(30, seed=5), mode="overwrite")
    same(table, rows(30, seed=5).to_pandas())


def test_merged_rows_count_once(table):
    (
        DeltaTable(table)
        .merge(rows(20, seed=0), predicate="t.id = s.id", source_alias="s", target_alias="t")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    )
    frame = current(table)
    assert frame["id"].is_unique
    same(table, frame)


def test_rows_of_a_checkpoint_and_of_later_commits_are_read(table):
    DeltaTable(table).create_checkpoint()
    write_deltalake(table, rows(10, seed=7), mode="append")
    (table / "_delta_log" / "00000000000000000000.json").unlink()
    same(table, current(table))


def test_partition_values_come_from_the_log_whatever_folders_are_called(tmp_path):
    path = tmp_path / "table"
    site = np.tile([1, 2, 3], 20)
    write_deltalake(path, rows(site=site, place=np.tile(["a b", "ü/=", "50%"], 20)), partition_by=["site", "place"])
    DeltaTable(path).delete("a > 1")
    frame = current(path)
    assert "site" in cir(path)
    same(path, frame.drop(columns="place"))
    found = explain(path, output="pred", categoricals="indicators").features
    assert {"place=a b", "place=ü/=", "place=50%"} <= set(found["feature"])


def test_a_partition_value_that_is_null_is_missing(tmp_path):
    path = tmp_path / "table"
    site = pa.array([None, 1, 2] * 20, pa.int64())
    write_deltalake(path, rows().append_column("site", site), partition_by=["site"])
    found = explain(path, output="pred").features.set_index("feature")
    assert found.loc["site", "missing"] == 20


def test_a_column_that_was_added_is_missing_in_older_rows(table):
    write_deltalake(table, rows(50, seed=3, extra=np.arange(50.0)), mode="append", schema_mode="merge")
    frame = current(table)
    same(table, frame)
    found = explain(table, output="pred").features.set_index("feature")
    assert found.loc["extra", "missing"] == len(frame) - 50


def test_a_column_without_any_values_yet_is_not_an_error(table):
    DeltaTable(table).alter.add_columns([Field("later", PrimitiveType("double"))])
    assert explain(table, output="pred").features.set_index("feature").loc["later", "n"] == 0


def test_renamed_columns_are_found_by_their_physical_names(tmp_path):
    path = tmp_path / "table"
    table = rows().rename_columns(["col-1", "col-2", "col-3", "col-4"])
    write_deltalake(path, table)
    names = dict(zip(table.column_names, ["a", "b", "pred", "id"], strict=True))
    edit_log(path, lambda action: _map_columns(action, names))
    same(path, rows().to_pandas())
    assert set(cir(path)) == {"a", "b", "id"}


def _map_columns(action: dict[str, Any], names: dict[str, str]) -> None:
    if "protocol" in action:
        action["protocol"] = {"minReaderVersion": 2, "minWriterVersion": 5}
    if "metaData" in action:
        schema = json.loads(action["metaData"]["schemaString"])
        for number, field in enumerate(schema["fields"], 1):
            field["metadata"] = {
                "delta.columnMapping.id": number,
                "delta.columnMapping.physicalName": field["name"],
            }
            field["name"] = names[field["name"]]
        action["metaData"]["schemaString"] = json.dumps(schema)
        action["metaData"]["configuration"] = {
            "delta.columnMapping.mode": "name",
            "delta.columnMapping.maxColumnId": str(len(names)),
        }


def edit_log(path: Path, edit: Any) -> None:
    """Change each action of the table's first commit."""
    commit = path / "_delta_log" / "00000000000000000000.json"
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    for action in actions:
        edit(action)
    commit.write_text("\n".join(map(json.dumps, actions)))


def with_deletion_vector(path: Path, deleted: list[int], inline: bool) -> None:
    """Mark rows of a table's only file as deleted, as Spark does."""
    roaring = pytest.importorskip("pyroaring")
    bitmap = roaring.BitMap(deleted).serialize()
    blob = struct.pack("<I", 1681511377) + struct.pack("<q", 1) + struct.pack("<i", 0) + bitmap
    vector: dict[str, Any] = {"sizeInBytes": len(blob), "cardinality": len(deleted)}
    if inline:
        vector |= {"storageType": "i", "pathOrInlineDv": _z85(blob)}
    else:
        name = uuid.uuid4()
        (path / f"deletion_vector_{name}.bin").write_bytes(
            b"\x01" + struct.pack(">i", len(blob)) + blob + struct.pack(">I", zlib.crc32(blob))
        )
        vector |= {"storageType": "u", "pathOrInlineDv": _z85(name.bytes), "offset": 1}

    def edit(action: dict[str, Any]) -> None:
        if "protocol" in action:
            features = ["deletionVectors"]
            action["protocol"] = {
                "minReaderVersion": 3, "minWriterVersion": 7,
                "readerFeatures": features, "writerFeatures": features,
            }  # fmt: skip
        if "add" in action:
            action["add"]["deletionVector"] = vector

    edit_log(path, edit)


def _z85(data: bytes) -> str:
    plain = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    rfc, z85 = plain[:10] + plain[36:] + plain[10:36] + "!#$%&()*+-;<=>?@^_`{|}~", plain + ".-:+=^!/*?&<>()[]{}@%$#"
    padded = data + b"\0" * (-len(data) % 4)
    return base64.b85encode(padded).decode().translate(str.maketrans(rfc, z85))


@pytest.fixture(params=[True, False], ids=["inline", "file"])
def vectored(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Path, pd.DataFrame]:
    """A table of which every third row and the whole second row group are deleted by a vector."""
    path = tmp_path / "vectored"
    properties = deltalake.WriterProperties(max_row_group_size=100)
    write_deltalake(path, rows(400), writer_properties=properties)
    deleted = sorted({*range(0, 400, 3), *range(100, 200)})
    with_deletion_vector(path, deleted, request.param)
    return path, rows(400).to_pandas().drop(index=deleted)


def test_rows_of_deletion_vectors_do_not_count(vectored):
    path, frame = vectored
    same(path, frame)
    counts = explain(path, output="pred").facts.rows
    assert counts.lake == counts.sampled == counts.used == len(frame)


def test_rows_of_deletion_vectors_are_not_shown_to_a_model(vectored, tmp_path):
    path, frame = vectored
    seen = tmp_path / "seen.txt"

    def model(block: pd.DataFrame) -> Any:
        with seen.open("a") as file:
            file.writelines(f"{number}\n" for number in block["id"])
        return block["a"] * 2 + block["b"]

    found = explain(path, model=model, model_columns=["a", "b", "id"], features=["a", "b"])
    assert sorted(map(int, seen.read_text().split())) == sorted(frame["id"])
    expected = explain(frame.assign(pred=frame["a"] * 2 + frame["b"]), output="pred", features=["a", "b"])
    assert found.features["cir"].tolist() == pytest.approx(expected.features["cir"].tolist(), abs=1e-12)


def test_deleted_rows_are_no_rows_that_do_not_match(vectored):
    path, frame = vectored
    wanted = frame[frame["b"] > 0]
    same(path, wanted, where="b > 0")
    counts = explain(path, output="pred", where="b > 0").facts.rows
    assert (counts.used, counts.filtered_out) == (len(wanted), len(frame) - len(wanted))
    counts = explain(path, output="pred", where="id < 100").facts.rows
    assert (counts.used, counts.filtered_out) == ((frame["id"] < 100).sum(), (frame["id"] >= 100).sum())


def test_samples_of_a_table_leave_out_deleted_rows(vectored):
    path, frame = vectored
    shot = snapshot(path)
    assert shot.rows == len(frame)
    assert shot.files[0].live_rows[1] == 0
    half = explain(path, output="pred", fraction=0.5).facts.rows
    assert 0 < half.sampled < len(frame)
    groups = explain(path, output="pred", fraction=0.4, sampling="row-groups").facts.rows
    assert groups.sampled in {int(n) for n in shot.files[0].live_rows}


def test_a_table_in_a_store_is_read_with_the_stores_own_options(table, vectored):
    memory = fsspec.filesystem("memory")
    try:
        for name, path, frame in (("plain", table, current(table)), ("vectored", *vectored)):
            memory.put(str(path), f"/test_delta/{name}", recursive=True)
            same(f"memory://test_delta/{name}", frame)
        same("memory://test_delta/plain", current(table, 1), table_version=1)
    finally:
        memory.rm("/test_delta", recursive=True)


def test_a_file_that_was_cleaned_up_is_named_with_its_version(table):
    for path in set(table.glob("*.parquet")) - {Path(uri) for uri in DeltaTable(table).file_uris()}:
        path.unlink()
    same(table, current(table))
    with pytest.raises(LakeError, match=r"belongs to version 1 of .*table but no longer exists.*vacuum"):
        snapshot(table, table_version=1)


def test_training_leaves_out_deleted_rows(vectored):
    from excir_dask import train

    path, frame = vectored
    found = train(path, label="pred", features=["a", "b"], rounds=2, validation=0.25)
    assert found.rows["lake"] == found.rows["train"] + found.rows["validation"] == len(frame)


def test_a_row_filter_takes_columns_and_keys_of_a_table(tmp_path):
    """Partition keys come from the log as text; deleted rows are no rows that were filtered out."""
    days = pd.to_datetime(["2026-08-31", "2026-09-01", "2026-09-02"]).date
    table = rows(90, day=np.repeat(days, 30), kind=["x", "y", None] * 30)
    write_deltalake(tmp_path / "table", table, partition_by=["day"])
    DeltaTable(tmp_path / "table").delete("a > 0.5")
    frame = current(tmp_path / "table")
    wanted = frame[(pd.to_datetime(frame["day"]) >= "2026-09-01") & (frame["kind"] != "y") & frame["kind"].notna()]
    where = "day >= '2026-09-01' and kind != 'y'"
    same(tmp_path / "table", wanted[["a", "b", "pred", "id"]], where=where, features=["a", "b", "id"])
    assert explain(tmp_path / "table", output="pred", where=where).facts.rows.filtered_out == len(frame) - len(wanted)
    found = preview(str(tmp_path / "table"), ExplainOptions(output="pred", where="day == '2026-09-01'"))
    assert found.left["files"] == found.files // 3
