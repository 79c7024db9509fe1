"""Pages that carry checksums are checked, and files that carry none are counted."""

from __future__ import annotations

import random

import oracle
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from encrypted import write_encrypted
from lakes import cir, faulty, numbers, snapshot, write
from processes import excir_here

from excir_dask import explain
from excir_dask.errors import DataError
from excir_dask.lake.checksums import HEADER_BYTES, first_page_offset, has_checksum
from excir_dask.pipeline.options import ExplainOptions
from excir_dask.pipeline.preview import preview
from excir_dask.render.text.preview import text
from excir_dask.training.train import train

PAGES = [
    {"data_page_version": version, "compression": codec, "use_dictionary": dictionary}
    for version in ("1.0", "2.0")
    for codec in ("none", "zstd")
    for dictionary in (False, True)
]


def damage(path, column, group=0):
    """Flip a bit in the last byte of a column chunk, which is data."""
    chunk = next(
        c
        for i in range(pq.read_metadata(path).num_columns)
        if (c := pq.read_metadata(path).row_group(group).column(i)).path_in_schema == column
    )
    start = chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset
    content = bytearray(path.read_bytes())
    content[start + chunk.total_compressed_size - 1] ^= 1
    path.write_bytes(content)


@pytest.fixture
def damaged(lake):
    """A lake with checksums, one bit of whose column b is flipped in one file."""
    for seed, name in enumerate(["b.parquet", "deep/a.parquet", "deep/er/c.parquet"]):
        write(lake / name, numbers(seed=seed), row_group_size=25, write_page_checksum=True, use_dictionary=False)
    damage(lake / "deep" / "a.parquet", "b", group=1)
    return lake


@pytest.mark.parametrize("pages", PAGES, ids=str)
@pytest.mark.parametrize("column", ["a", "b", "pred"])
def test_a_flipped_bit_is_an_error_that_names_file_and_column(lake, pages, column):
    write(lake / "b.parquet", numbers(), write_page_checksum=True, **pages)
    assert cir(lake)
    damage(lake / "b.parquet", column)
    with pytest.raises(DataError, match=rf"b\.parquet is damaged: a page of column '{column}' .*restore the file"):
        cir(lake)


@pytest.mark.parametrize("question", [{}, {"fraction": 0.9}, {"fraction": "auto"}, {"centering": "trimmed"}])
def test_every_way_to_read_a_page_checks_it(damaged, question):
    with pytest.raises(DataError, match=r"deep/a\.parquet is damaged"):
        explain(str(damaged), output="pred", **question)


def test_models_stores_categories_streams_and_training_check_too(damaged, tmp_path):
    message = r"is damaged: a page of column 'b' does not match its checksum"
    with pytest.raises(DataError, match=message):
        explain(str(damaged), model=lambda frame: frame["a"] + frame["b"], model_columns=["a", "b"])
    with faulty({}), pytest.raises(DataError, match=message):
        cir(f"faulty://{damaged}")
    with pytest.raises(DataError, match=message):
        train(str(damaged), label="pred", rounds=1)
    with pytest.raises(DataError, match=message):
        train(str(damaged), label="b", rounds=1)
    words = numbers(60).drop(["b"]).append_column("b", pa.array(["u", "v"] * 30))
    text = write(tmp_path / "text" / "x.parquet", words, write_page_checksum=True)
    damage(text, "b")
    with pytest.raises(DataError, match=message):
        cir(text.parent, categoricals="indicators")
    large = pa.table({"b": [float(i % 7919) for i in range(300_000)], "pred": [float(i) for i in range(300_000)]})
    stream = write(tmp_path / "large" / "x.parquet", large, write_page_checksum=True, use_dictionary=False)
    damage(stream, "b")
    with pytest.raises(DataError, match=message):
        cir(stream.parent, budget="1MiB")


def test_a_damaged_column_that_is_not_read_does_not_matter(damaged):
    assert set(cir(damaged, features=["a"])) == {"a"}


def test_without_verification_damaged_pages_are_read_as_they_are(damaged):
    assert set(cir(damaged, verify_checksums=False)) == {"a", "b"}
    assert explain(str(damaged), output="pred", verify_checksums=False).provenance.lake.page_checksums == {
        "verified": False,
        "files_looked_at": 3,
        "files_without": 0,
    }


def test_verification_changes_neither_the_result_nor_the_run_id(lake):
    results = [explain(str(lake), output="pred", verify_checksums=verify) for verify in (True, False)]
    assert results[0].features.equals(results[1].features)
    ids = {oracle.run_id(str(lake), output="pred", verify_checksums=verify) for verify in (True, False)}
    assert ids == {results[0].provenance.run_id} == {results[1].provenance.run_id}


def test_the_command_ends_with_3_and_one_line_and_can_be_told_to_read_on(damaged, tmp_path):
    def run(*arguments):
        return excir_here("explain", damaged, "--output", "pred", "-q", *arguments)

    done = run()
    assert (done.returncode, done.stderr.count("\n")) == (3, 1)
    assert "deep/a.parquet is damaged: a page of column 'b'" in done.stderr
    assert "--no-verify-checksums" in done.stderr
    assert run("--no-verify-checksums").returncode == 0
    config = tmp_path / "job.yaml"
    config.write_text("verify-checksums: false\n")
    assert run("--config", str(config)).returncode == 0


@pytest.mark.parametrize("pages", PAGES, ids=str)
@pytest.mark.parametrize("checksum", [True, False])
def test_files_without_checksums_are_counted_by_their_first_page(lake, pages, checksum):
    write(lake / "b.parquet", numbers(20_000), write_page_checksum=checksum, **pages)  # larger than what a footer takes
    counted = {"files_looked_at": 3, "files_without": 2 if checksum else 3}
    assert explain(str(lake), output="pred").provenance.lake.page_checksums == {"verified": True, **counted}
    assert preview(str(lake), ExplainOptions()).page_checksums == counted
    assert f"checksums in {int(checksum)} of 3 files" in text(preview(str(lake), ExplainOptions()))


def test_of_files_in_a_store_at_most_some_are_looked_at(tmp_path):
    for i in range(40):
        write(tmp_path / f"{i:02}.parquet", numbers(4000, seed=i), use_dictionary=False)
    assert snapshot(tmp_path).checksums["files_looked_at"] == 40
    with faulty({}) as calls:
        looked_at = snapshot(f"faulty://{tmp_path}").checksums
        assert (looked_at["files_looked_at"], looked_at["files_without"]) == (14, 14)
        assert len([name for call, name in calls if call == "read"]) == 40 + 14


def test_files_without_rows_and_encrypted_files_are_not_counted(lake):
    write(lake / "b.parquet", numbers(0))
    write_encrypted(lake / "deep" / "a.parquet", numbers(), ["a"])
    assert snapshot(lake).checksums["files_looked_at"] == 1


def test_any_bytes_are_a_page_header_or_not(tmp_path):
    path, chance = write(tmp_path / "x.parquet", write_page_checksum=True), random.Random(0)
    start = first_page_offset(pq.read_metadata(path))
    whole = path.read_bytes()[start : start + HEADER_BYTES]
    assert has_checksum(whole) is True
    assert {has_checksum(whole[:length]) for length in range(9)} == {None}
    for _ in range(2000):
        assert has_checksum(chance.randbytes(chance.randrange(HEADER_BYTES))) in (True, False, None)
