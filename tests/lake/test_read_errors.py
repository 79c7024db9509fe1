"""Files that fail or change during a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lakes import ALWAYS, cir, faulty, numbers, only_slice, prepared, read_all, write

from excir_dask import explain
from excir_dask.errors import DataError, LakeChangedError, LakeError, ReadError

ROWS = 50


@pytest.fixture
def planned(tmp_path):
    file = write(tmp_path / "deep" / "0.parquet", numbers(ROWS), row_group_size=ROWS)
    return file, *prepared(tmp_path)


def consume(plan, layout, batch_rows=None):
    return [read_all(replace(piece, batch_rows=batch_rows), layout) for piece in plan.slices()]


@pytest.mark.parametrize("batch_rows", [None, 7])
@pytest.mark.parametrize("change", ["removed", "rewritten", "truncated", "grown", "other row groups", "emptied"])
def test_a_file_that_changed_since_the_plan_is_named(planned, change, batch_rows):
    file, plan, layout = planned
    size = file.stat().st_size
    if change == "removed":
        file.unlink()
    elif change == "rewritten":
        write(file, numbers(ROWS).append_column("more", pa.array(range(ROWS))), row_group_size=ROWS)
    elif change == "truncated":
        file.write_bytes(file.read_bytes()[: size // 2])
    elif change == "grown":
        file.write_bytes(file.read_bytes() + b"more")
    elif change == "emptied":
        file.write_bytes(b"")
    else:
        write(file, numbers(ROWS), row_group_size=ROWS // 2)
        piece = only_slice(plan)
        part = replace(piece.fragments[0], size=file.stat().st_size)
        plan = replace(plan, blocks=(((replace(piece, fragments=(part,)),),),))
    with pytest.raises(LakeChangedError, match=r"deep/0\.parquet .*run again"):
        consume(plan, layout, batch_rows)


@pytest.mark.parametrize("batch_rows", [None, 7])
def test_pages_that_are_no_longer_readable_are_an_error_that_names_the_file(planned, batch_rows):
    file, plan, layout = planned
    footer = pq.read_metadata(file)
    start = footer.row_group(0).column(0).dictionary_page_offset or footer.row_group(0).column(0).data_page_offset
    data = bytearray(file.read_bytes())
    data[start : len(data) - footer.serialized_size - 8] = bytes(len(data) - footer.serialized_size - 8 - start)
    file.write_bytes(data)
    with pytest.raises(DataError, match=r"deep/0\.parquet is damaged"):
        consume(plan, layout, batch_rows)


def test_a_file_lost_after_the_plan_stops_the_run_with_its_name(lake, pauses):
    with (
        faulty({("open", "a.parquet"): (range(2, ALWAYS.stop), FileNotFoundError)}),
        pytest.raises(LakeChangedError, match=r"deep/a\.parquet was removed during the run") as caught,
    ):
        explain(f"faulty://{lake}", output="pred")
    assert caught.value.exit_code == 75
    assert pauses == []


@pytest.mark.parametrize("failing", [{1}, {2}, {2, 3}, {2, 3, 4}, {1, 3}], ids=str)
def test_scores_do_not_depend_on_opens_that_fail_and_pass(lake, pauses, failing):
    with faulty({}) as calls:
        expected = cir(f"faulty://{lake}")
    opens = calls.count(("open", "a.parquet"))
    assert expected == cir(lake)
    with faulty({("open", "a.parquet"): (failing, ConnectionError)}) as calls:
        assert cir(f"faulty://{lake}") == expected
    assert calls.count(("open", "a.parquet")) == opens + len(failing)
    assert len(pauses) == len(failing)


def test_scores_do_not_depend_on_which_read_fails_once(tmp_path, pauses):
    write(tmp_path / "0.parquet", numbers(30), row_group_size=15)
    with faulty({}) as calls:
        expected = cir(f"faulty://{tmp_path}")
    reads = calls.count(("read", "0.parquet"))
    assert expected == cir(tmp_path)
    assert reads > 3
    for number in range(1, reads + 1):
        pauses.clear()
        with faulty({("read", "0.parquet"): ({number}, TimeoutError)}) as calls:
            assert cir(f"faulty://{tmp_path}") == expected
        assert calls.count(("read", "0.parquet")) > reads
        assert len(pauses) == 1


def test_reads_that_keep_failing_are_an_error_that_names_the_file_and_the_tries(lake, pauses):
    with faulty({}) as calls:
        plan, layout = prepared(f"faulty://{lake}")
    before = calls.count(("read", "a.parquet"))
    later = range(before + 1, ALWAYS.stop)
    with (
        faulty({("read", "a.parquet"): (later, OSError)}) as calls,
        pytest.raises(
            ReadError, match=r"deep/a\.parquet cannot be read: injected: read of a\.parquet.*4 tries"
        ) as caught,
    ):
        explain(f"faulty://{lake}", output="pred")
    assert caught.value.exit_code == 75
    assert pauses == sorted(pauses)
    assert len(pauses) == 3
    with faulty({("read", "a.parquet"): (ALWAYS, OSError)}), pytest.raises(ReadError, match=r"deep/a\.parquet"):
        consume(plan, layout)


def test_a_denied_read_is_not_tried_again(lake, pauses):
    with (
        faulty({("open", "a.parquet"): ({2}, PermissionError)}) as calls,
        pytest.raises(DataError, match=r"deep/a\.parquet cannot be read: .*injected"),
    ):
        explain(f"faulty://{lake}", output="pred")
    assert calls.count(("open", "a.parquet")) == 2
    assert pauses == []


@pytest.mark.parametrize("compression", ["snappy", "zstd", "gzip", "none"])
def test_a_damaged_file_is_not_worth_another_try(tmp_path, compression):
    write(tmp_path / "lake" / "x.parquet", numbers(20_000), compression=compression)
    path = tmp_path / "lake" / "x.parquet"
    content = path.read_bytes()
    header = pq.read_metadata(path).row_group(0).column(0).data_page_offset
    path.write_bytes(content[:header] + bytes([255]) * 40 + content[header + 40 :])
    with pytest.raises(DataError, match=r"x\.parquet is damaged: .*; rewrite the file") as caught:
        cir(tmp_path / "lake")
    assert caught.value.exit_code == 3


def footer_mutants(content: bytes, seeds: range) -> Iterator[bytes]:
    """A Parquet file with some bits of its footer flipped."""
    length = int.from_bytes(content[-8:-4], "little")
    for seed in seeds:
        random = Random(seed)
        mutant = bytearray(content)
        for _ in range(random.choice([1, 1, 3])):
            mutant[-9 - random.randrange(length)] ^= 1 << random.randrange(8)
        yield bytes(mutant)


def test_a_damaged_footer_is_an_error_that_names_the_file_at_once(tmp_path, pauses):
    path = write(tmp_path / "x.parquet", numbers(100))
    errors: list[LakeError] = []
    for mutant in footer_mutants(path.read_bytes(), range(150)):
        path.write_bytes(mutant)
        try:
            cir(tmp_path)
        except LakeError as error:
            errors.append(error)
    assert len(errors) > 30
    assert {error.exit_code for error in errors} == {3}
    assert all("x.parquet" in str(error) or "column 'pred'" in str(error) for error in errors)
    assert not any("\n" in str(error) for error in errors)
    assert pauses == []


def test_a_column_whose_statistics_contradict_its_schema_does_not_end_the_process(tmp_path):
    path = write(tmp_path / "x.parquet", pa.table({"a": [1.0, 2.0], "pred": [1.0, 2.0]}))
    content = path.read_bytes()
    place = content.rindex(b"\x25\x02\x18\x01a")  # OPTIONAL, name
    path.write_bytes(content[: place + 1] + b"\x00" + content[place + 2 :])  # REQUIRED
    with pytest.raises(DataError, match=r"x\.parquet is damaged: .*(histogram|end of stream)"):
        cir(tmp_path)


def test_columns_of_another_length_than_the_footer_says_are_damage(tmp_path):
    path = write(tmp_path / "x.parquet", numbers(50))
    plan, layout = prepared(tmp_path)
    piece = only_slice(plan)
    write(path, numbers(50))
    for batch_rows in (None, 7):
        reader_of = replace(piece, batch_rows=batch_rows)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("excir_dask.lake.open_files.check_row_groups", lambda *given: None)
            part = replace(piece.fragments[0], rows=(51,))
            with pytest.raises(
                DataError, match=r"x\.parquet is damaged: its footer says 51 rows and its columns hold 50"
            ):
                read_all(replace(reader_of, fragments=(part,)), layout)


def test_a_schema_that_is_nested_too_deep_is_refused_at_once(tmp_path, pauses):
    kind = pa.float64()
    for _ in range(150):
        kind = pa.struct([("x", kind)])
    write(tmp_path / "x.parquet", numbers(4).append_column("deep", pa.nulls(4, kind)))
    with pytest.raises(LakeError, match=r"x\.parquet .*(too deeply nested|Invalid flatbuffers)") as caught:
        cir(tmp_path)
    assert (caught.value.exit_code, pauses) == (3, [])


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_text_that_cannot_become_categories_is_refused_at_once(tmp_path, pauses, encoding):
    table = numbers(4).append_column("city", pa.array(["a", "b", "a", "b"]))
    write(tmp_path / "x.parquet", table, use_dictionary=False, column_encoding={"city": encoding})
    with pytest.raises(DataError, match=r"x\.parquet has text in an encoding .* write it with dictionaries"):
        explain(tmp_path, output="pred", categoricals="indicators")
    assert pauses == []
