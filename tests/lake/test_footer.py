"""Encrypted columns are found in footers: reading one without keys would end the process."""

from __future__ import annotations

import random
import struct
from contextlib import suppress

import pyarrow as pa
import pytest
from encrypted import write_encrypted
from lakes import cir, columns, numbers, rows, snapshot, write
from processes import excir_here

from excir_dask import explain
from excir_dask.errors import LakeError, SchemaError
from excir_dask.lake.footer import encrypted_leaves
from excir_dask.lake.thrift import STRUCT, CompactReader, ThriftError
from excir_dask.pipeline.options import ExplainOptions
from excir_dask.pipeline.preview import preview
from excir_dask.render.text.explanation import text


@pytest.fixture
def partly(lake):
    """A lake one of whose files has an encrypted column."""
    write_encrypted(lake / "deep" / "a.parquet", numbers(seed=1), ["b"])
    return lake


def footer(path):
    content = path.read_bytes()
    (size,) = struct.unpack("<I", content[-8:-4])
    return content[-8 - size : -8]


def test_an_encrypted_column_that_nobody_asked_for_is_left_out_with_a_word(partly):
    result = explain(str(partly), output="pred")
    assert list(result.features["feature"]) == ["a"]
    assert result.facts.left_out == {
        "b": "encrypted in deep/a.parquet; write a copy without encryption, or leave the column out"
    }
    assert "note: 1 encrypted column left out: b" in text(result)


def test_the_other_columns_have_the_scores_that_they_have_without_encryption(lake):
    before = cir(lake, features=["a"])
    write_encrypted(lake / "deep" / "a.parquet", numbers(seed=1), ["b"])
    assert cir(lake) == before
    assert cir(f"local://{lake}") == before  # by fsspec, as files of an object store are read


@pytest.mark.parametrize("question", [{"output": "b"}, {"features": ["b"]}, {"weights": "b"}, {"features": ["[b]"]}])
def test_an_encrypted_column_that_is_asked_for_is_an_error_that_names_file_and_column(partly, question):
    with pytest.raises(SchemaError, match="no column is left" if "[b]" in str(question) else r"'b' .*deep/a\.parquet"):
        explain(str(partly), **{"output": "pred", **question})


@pytest.mark.parametrize("command", ["explain", "plan", "train"])
def test_a_command_that_needs_an_encrypted_column_ends_with_3_and_one_line(partly, command):
    asked = ["--label", "b", "--out", str(partly / "m.ubj")] if command == "train" else ["--output", "b"]
    done = excir_here(command, partly, *asked, "-q")
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert "'b'" in done.stderr
    assert "encrypted in deep/a.parquet" in done.stderr


def test_the_plan_lists_encrypted_columns_and_counts_their_files(partly):
    write_encrypted(partly / "b.parquet", numbers(), ["b"])
    reason = "encrypted in b.parquet and 1 more file; write a copy without encryption, or leave the column out"
    assert preview(str(partly), ExplainOptions(output="pred")).left_out == {"b": reason}


def test_text_and_nested_columns_and_names_with_dots_are_found_too(tmp_path):
    table = rows(60, **{"x.y": [1.0] * 60, "s": [{"u": 1, "v": 2}] * 60, "t": ["a", "b"] * 30})
    write_encrypted(tmp_path / "x.parquet", table, ["x.y", "s.v", "t"])
    assert snapshot(tmp_path).files[0].encrypted == ("x.y", "s", "t")
    assert not columns(tmp_path)["t"].text  # no indicators of it


def test_a_file_of_encrypted_columns_alone_is_found(tmp_path):
    write_encrypted(tmp_path / "x.parquet", numbers(), ["a", "b", "pred"])
    assert snapshot(tmp_path).files[0].encrypted == ("a", "b", "pred")


def test_an_encrypted_footer_is_refused_at_once(lake, pauses):
    write_encrypted(lake / "b.parquet", numbers(), ["b"], plaintext_footer=False)
    with pytest.raises(LakeError, match=r"b\.parquet .*its footer is encrypted") as caught:
        snapshot(lake)
    assert caught.value.exit_code == 3
    assert pauses == []


@pytest.mark.parametrize("algorithm", ["AES_GCM_V1", "AES_GCM_CTR_V1"])
@pytest.mark.parametrize("width", [1, 14, 15, 40])
def test_each_encrypted_column_is_found_whatever_the_width_and_the_algorithm(tmp_path, width, algorithm):
    table = pa.table({f"c{i}": [float(i)] * 60 for i in range(width)})
    wanted = set(random.Random(width).sample(range(width), (width + 1) // 2))
    options = {"encryption_algorithm": algorithm}
    path = write_encrypted(tmp_path / "x.parquet", table, [f"c{i}" for i in sorted(wanted)], **options)
    assert encrypted_leaves(footer(path)) == wanted
    assert encrypted_leaves(footer(write(tmp_path / "y.parquet", table))) == set()


def test_damaged_footers_end_in_an_answer_or_a_thrift_error(tmp_path):
    whole, chance = footer(write_encrypted(tmp_path / "x.parquet", numbers(), ["b"])), random.Random(0)
    for _ in range(300):
        broken = bytearray(whole)
        for _ in range(chance.randint(1, 8)):
            broken[chance.randrange(len(broken))] = chance.randrange(256)
        broken = broken[: chance.randint(0, len(broken))] if chance.random() < 0.3 else broken
        for look in (encrypted_leaves, lambda data: CompactReader(data).skip(STRUCT)):
            with suppress(ThriftError):
                look(bytes(broken))
