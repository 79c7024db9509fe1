"""The contract between the files of a lake, and which columns a run reads."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from lakes import cir, columns, numbers, write

from excir_dask import explain
from excir_dask.errors import SchemaError
from excir_dask.lake.schema import conflicts
from excir_dask.render.text.notes import notes

ROWS = 40


def with_column(name: str, values: object, seed: int = 0) -> pa.Table:
    return numbers(ROWS, seed).append_column(name, values)


def test_a_column_missing_in_one_file_is_an_error_that_names_both_files(tmp_path):
    write(tmp_path / "0.parquet", with_column("extra", pa.array(np.ones(ROWS))))
    write(tmp_path / "1.parquet", numbers())
    message = r"column 'extra' is missing in 1\.parquet but is double in 0\.parquet"
    with pytest.raises(SchemaError, match=message):
        cir(tmp_path)


def test_the_first_file_may_be_the_one_that_lacks_a_column(tmp_path):
    write(tmp_path / "0.parquet", numbers())
    write(tmp_path / "1.parquet", with_column("extra", pa.array(np.ones(ROWS))))
    with pytest.raises(SchemaError, match=r"'extra' is missing in 0\.parquet but is double in 1\.parquet"):
        cir(tmp_path)


def test_text_in_one_file_and_numbers_in_another_is_an_error_that_names_both(tmp_path):
    write(tmp_path / "0.parquet", with_column("age", pa.array(np.ones(ROWS))))
    write(tmp_path / "1.parquet", with_column("age", pa.array(["1"] * ROWS)))
    with pytest.raises(SchemaError, match=r"'age' is string in 1\.parquet but double in 0\.parquet; cast it"):
        cir(tmp_path)


def test_a_time_in_one_file_and_a_number_in_another_is_an_error(tmp_path):
    write(tmp_path / "0.parquet", with_column("at", pa.array(range(ROWS))))
    write(tmp_path / "1.parquet", with_column("at", pa.array(range(ROWS), pa.timestamp("us"))))
    with pytest.raises(SchemaError, match=r"'at' is timestamp\[us\] in 1\.parquet but int64 in 0\.parquet"):
        cir(tmp_path)


def test_a_name_that_stands_twice_in_a_file_is_an_error_that_names_it(tmp_path):
    write(tmp_path / "0.parquet", numbers())
    write(tmp_path / "1.parquet", with_column("a", pa.array(np.ones(ROWS))))
    with pytest.raises(SchemaError, match=r"1\.parquet has 2 columns named 'a'"):
        cir(tmp_path)
    assert set(cir(tmp_path, features=["b"])) == {"b"}


def test_an_output_missing_in_one_file_is_an_error_that_names_it(tmp_path):
    write(tmp_path / "0.parquet", numbers())
    write(tmp_path / "1.parquet", numbers().drop_columns(["pred"]))
    with pytest.raises(SchemaError, match=r"column 'pred' is missing in 1\.parquet"):
        cir(tmp_path)


def test_conflicts_in_columns_that_nobody_selected_do_not_stop_a_run(tmp_path):
    write(tmp_path / "0.parquet", with_column("x", pa.array(np.ones(ROWS))))
    write(tmp_path / "1.parquet", with_column("x", pa.array(["1"] * ROWS), seed=1))
    write(tmp_path / "2.parquet", numbers(seed=2))
    with pytest.raises(SchemaError, match="column 'x'"):
        cir(tmp_path)
    assert set(cir(tmp_path, features=["a", "b"])) == {"a", "b"}
    assert set(cir(tmp_path, features=["!x"])) == {"a", "b"}
    assert set(cir(tmp_path, features="[ab]")) == {"a", "b"}


def test_text_that_one_file_lacks_does_not_stop_a_run(tmp_path):
    write(tmp_path / "0.parquet", with_column("note", pa.array(["x"] * ROWS)))
    write(tmp_path / "1.parquet", numbers())
    assert conflicts(columns(tmp_path).values()) == list(columns(tmp_path)["note"].conflicts)
    assert set(cir(tmp_path)) == {"a", "b"}


VALUES = np.arange(ROWS) % 7


WIDTHS = [
    pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
    pa.float16(), pa.float32(), pa.float64(), pa.decimal128(9, 2), pa.decimal256(50, 3),
]  # fmt: skip


def as_type(values: np.ndarray, kind: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(kind):
        return pa.array([Decimal(int(value)) for value in values], kind)
    return pa.array(values.astype(kind.to_pandas_dtype()), kind)


def test_every_width_of_number_is_converted_noted_and_scored_like_float64(tmp_path):
    for i, kind in enumerate(WIDTHS):
        write(tmp_path / "mixed" / f"{i:02d}.parquet", with_column("x", as_type(VALUES, kind), seed=i))
        write(tmp_path / "plain" / f"{i:02d}.parquet", with_column("x", pa.array(VALUES.astype(float)), seed=i))
    mixed = explain(tmp_path / "mixed", output="pred")
    assert mixed.facts.converted == {"x": " and ".join(str(kind) for kind in WIDTHS)}
    assert cir(tmp_path / "mixed") == cir(tmp_path / "plain")
    assert explain(tmp_path / "plain", output="pred").facts.converted == {}


def test_booleans_are_zero_and_one(tmp_path):
    odd = VALUES % 2 == 1
    write(tmp_path / "bool" / "0.parquet", with_column("x", pa.array(odd)))
    write(tmp_path / "bool" / "1.parquet", with_column("x", pa.array(odd.astype("i1"))))
    write(tmp_path / "plain" / "0.parquet", with_column("x", pa.array(odd.astype(float))))
    write(tmp_path / "plain" / "1.parquet", with_column("x", pa.array(odd.astype(float))))
    assert cir(tmp_path / "bool") == cir(tmp_path / "plain")
    assert explain(tmp_path / "bool", output="pred").facts.converted == {"x": "bool and int8"}


def test_a_column_that_is_null_in_one_file_is_missing_there(tmp_path):
    write(tmp_path / "0.parquet", with_column("x", pa.array(VALUES.astype(float))))
    write(tmp_path / "1.parquet", with_column("x", pa.nulls(ROWS)))
    table = explain(tmp_path, output="pred").features.set_index("feature")
    assert (table.loc["x", "n"], table.loc["x", "missing"]) == (ROWS, ROWS)


def test_a_column_that_is_null_in_every_file_is_left_out_with_a_reason(tmp_path):
    write(tmp_path / "0.parquet", with_column("x", pa.nulls(ROWS)))
    assert "empty in every file" in explain(tmp_path, output="pred").facts.left_out["x"]


DAY_MS = 86_400_000

TIMES = {
    pa.date32(): (1, "days since 1970-01-01"),
    pa.date64(): (DAY_MS, "days since 1970-01-01"),
    pa.timestamp("s"): (1, "seconds since 1970-01-01"),
    pa.timestamp("ms"): (1000, "seconds since 1970-01-01"),
    pa.timestamp("us"): (10**6, "seconds since 1970-01-01"),
    pa.timestamp("ns"): (10**9, "seconds since 1970-01-01"),
    pa.timestamp("us", "Europe/Berlin"): (10**6, "seconds since 1970-01-01 UTC"),
    pa.time32("s"): (1, "seconds since midnight"),
    pa.time32("ms"): (1000, "seconds since midnight"),
    pa.time64("us"): (10**6, "seconds since midnight"),
    pa.time64("ns"): (10**9, "seconds since midnight"),
    pa.duration("ms"): (1000, "seconds"),
    pa.duration("ns"): (10**9, "seconds"),
}


@pytest.mark.parametrize("kind", TIMES, ids=str)
def test_times_are_explained_as_numbers_whose_unit_is_told(tmp_path, kind):
    per, unit = TIMES[kind]
    values = [None, *(int(value) * per for value in VALUES[1:])]
    whole = pa.array(values, pa.int32() if kind.bit_width == 32 else pa.int64())
    write(tmp_path / "times" / "0.parquet", with_column("x", whole.cast(kind)))
    write(tmp_path / "plain" / "0.parquet", with_column("x", pa.array([np.nan, *VALUES[1:].astype(float)])))
    found, plain = (explain(tmp_path / lake, output="pred") for lake in ("times", "plain"))
    columns = ["feature", "cir", "center", "n", "missing"]
    assert found.features[columns].equals(plain.features[columns])
    assert found.facts.converted["x"].endswith(f", in {unit}")
    assert f"explained as {unit}: x" in notes(found)
    for role in ("output", "weights"):
        with pytest.raises(SchemaError, match=rf"column 'x' \({role}\).*a time.*seconds since"):
            cir(tmp_path / "times", **{role: "x"})


def test_units_of_times_may_differ_between_files_and_kinds_may_not(tmp_path):
    write(tmp_path / "0.parquet", with_column("x", pa.array(range(ROWS), pa.timestamp("ms"))))
    write(tmp_path / "1.parquet", with_column("x", pa.array(range(ROWS), pa.timestamp("us")), seed=1))
    assert explain(tmp_path, output="pred").facts.converted == {
        "x": "timestamp[ms] and timestamp[us], in seconds since 1970-01-01"
    }
    write(tmp_path / "2.parquet", with_column("x", pa.array(range(ROWS), pa.date32()), seed=2))
    assert "cast it" in explain(tmp_path, output="pred").facts.left_out["x"]
    with pytest.raises(SchemaError, match=r"column 'x' is date32\[day\] in 2\.parquet"):
        cir(tmp_path, features=["x", "a"])


OTHER = {
    "string": (pa.array(["x"] * ROWS), "text or categories", "encode it"),
    "large": (pa.array(["x"] * ROWS, pa.large_string()), "text or categories", "encode it"),
    "view": (pa.array(["x"] * ROWS, pa.string_view()), "text or categories", "encode it"),
    "binary": (pa.array([b"x"] * ROWS), "binary", "encode it"),
    "bytes4": (pa.array([b"abcd"] * ROWS, pa.binary(4)), "binary", "encode it"),
    "large bytes": (pa.array([b"x"] * ROWS, pa.large_binary()), "binary", "encode it"),
    "category": (pa.array(["x"] * ROWS).dictionary_encode(), "text or categories", "encode it"),
    "struct": (pa.array([{"u": 1.0}] * ROWS), "nested", "parts as columns"),
    "list": (pa.array([[1.0]] * ROWS), "nested", "parts as columns"),
    "map": (pa.array([[("u", 1.0)]] * ROWS, pa.map_(pa.string(), pa.float64())), "nested", "parts as columns"),
}


@pytest.mark.parametrize("kind", OTHER)
def test_what_is_not_a_number_is_left_out_with_a_reason_and_refused_by_name(tmp_path, kind):
    values, what, advice = OTHER[kind]
    try:
        write(tmp_path / "0.parquet", with_column("x", values))
    except pa.ArrowNotImplementedError:
        pytest.skip("this pyarrow does not write such a column")
    result = explain(tmp_path, output="pred")
    assert what in result.facts.left_out["x"]
    assert set(result.features["feature"]) == {"a", "b"}
    with pytest.raises(SchemaError, match=rf"column 'x' \(features\).*{what}.*{advice}"):
        cir(tmp_path, features=["x"])
    with pytest.raises(SchemaError, match=rf"column 'x' \(output\).*{what}"):
        cir(tmp_path, output="x")
    with pytest.raises(SchemaError, match=rf"column 'x' \(weights\).*{what}"):
        cir(tmp_path, weights="x")


STRANGE = [
    "engine.temp",
    "engine",
    "two words",
    "naïve °C",
    "k=v",
    "100%",
    "a,b",
    "[x]",
    "star*",
    "'quoted\"",
    "_hidden",
]


def test_columns_are_read_whatever_characters_their_names_have(tmp_path):
    data = np.random.default_rng(0).normal(size=(len(STRANGE) + 1, ROWS))
    plain = {f"x{i}": column for i, column in enumerate(data[:-1])}
    write(tmp_path / "plain" / "0.parquet", {**plain, "pred": data[-1]})
    write(tmp_path / "strange" / "0.parquet", {**dict(zip(STRANGE, data[:-1], strict=True)), "pred.out": data[-1]})
    expected = cir(tmp_path / "plain")
    found = cir(tmp_path / "strange", output="pred.out")
    assert found == {name: expected[f"x{i}"] for i, name in enumerate(STRANGE)}
    assert cir(tmp_path / "strange", output="pred.out", features=STRANGE) == found


def test_a_dotted_name_is_not_a_part_of_a_struct(tmp_path):
    flat = pa.array(np.random.default_rng(1).normal(size=ROWS))
    table = with_column("s", pa.array([{"u": -1.0}] * ROWS)).append_column("s.u", flat)
    write(tmp_path / "both" / "0.parquet", table)
    write(tmp_path / "flat" / "0.parquet", with_column("s.u", flat))
    assert cir(tmp_path / "both") == cir(tmp_path / "flat")
    write(tmp_path / "struct" / "0.parquet", table.drop_columns(["s.u"]))
    with pytest.raises(SchemaError, match=r"'s\.u' \(features\) is not in the lake"):
        cir(tmp_path / "struct", features=["s.u"])


def test_every_conflict_of_a_column_is_told():
    import pyarrow as pa

    from excir_dask.lake.schema import _column

    class File:
        def __init__(self, relative: str):
            self.relative = relative

    files = {i: File(f"{name}.parquet") for i, name in enumerate("abcd")}
    found = _column("x", {0: [pa.float64()], 1: [pa.string()], 2: [pa.float64(), pa.float64()]}, files)
    told = " | ".join(found.conflicts)
    assert len(found.conflicts) == 3
    assert "c.parquet has 2 columns" in told
    assert "missing in d.parquet" in told
    assert "is string in b.parquet" in told
