"""Row filters: the rows that pandas would choose, whatever the types; row groups without a match are left out."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lakes import snapshot, write

from excir_dask.errors import DataError, SchemaError, UsageError
from excir_dask.lake.filter import RowFilter, bind
from excir_dask.lake.filter_types import common_type
from excir_dask.lake.prune import prune
from excir_dask.lake.schema import column_types, describe, describe_columns

N = None
TABLE = pa.table(
    {
        "i": pa.array([1, 2, 3, N, 5], pa.int8()),
        "u": pa.array([0, 2**63 + 5, 3, N, 2**64 - 1], pa.uint64()),
        "big": pa.array([2**53, 2**53 + 1, -(2**63), N, 2**63 - 1]),
        "x": pa.array([0.1, float("nan"), 2.5, N, float("inf")]),
        "f": pa.array([0.1, 0.2, float("nan"), N, -0.0], pa.float32()),
        "h": pa.array(np.array([0.5, 1.5, np.nan, 2, 3], np.float16)),
        "price": pa.array([Decimal("1.13"), Decimal("1.10"), Decimal("-3.00"), N, Decimal("0.00")]),
        "s": pa.array(["a", "B", "", N, "ü"]),
        "large": pa.array(["a", "B", "", N, "ü"], pa.large_string()),
        "view": pa.array(["a", "B", "", N, "ü"], pa.string_view()),
        "c": pa.array(["a", "B", "", N, "ü"]).dictionary_encode(),
        "codes": pa.array([1, 2, 3, N, 5], pa.int32()).dictionary_encode(),
        "t": pa.array([True, False, True, N, False]),
        "day": pa.array([dt.date(2026, 8, 31), dt.date(2026, 9, 1), dt.date(2026, 9, 2), N, dt.date(1969, 1, 1)]),
        "ms": pa.array([0, 1, 86_400_000, N, -1], pa.timestamp("ms")),
        "ns": pa.array([0, 1, 86_400 * 10**9, N, 2**63 - 1], pa.timestamp("ns")),
        "zone": pa.array([0, 3600 * 10**6, 86_400 * 10**6, N, 7], pa.timestamp("us", tz="Europe/Berlin")),
        "clock": pa.array([dt.time(1), dt.time(14, 30), dt.time(23, 59, 59, 5), N, dt.time(0)]),
        "list": pa.array([[1], [2], [3], N, []]),
        "v": pa.array([[1.0, 2.0]] * 5, pa.list_(pa.float64(), 2)),
        "raw": pa.array([b"a", b"b", b"c", N, b""]),
        "gap": pa.array([1, 2, 3, 4, 5], pa.duration("s")),
    }
)
"""the fourth row is missing nearly everything"""


def fitted(text: str, table: pa.Table = TABLE) -> RowFilter:
    columns = {field.name: describe(field.name, field.type) for field in table.schema}
    return bind(text, columns, lambda names: {name: [table.schema.field(name).type] for name in names})


CASES = [
    ("i > 2", "..1.1"),
    ("i != 2", "1.1.1"),
    ("not i == 2", "1.1.1"),
    ("i < 1000", "111.1"),
    ("i > -1e30", "111.1"),
    ("i > 2.5", "..1.1"),
    ("i == 2.5", "....."),
    ("i == 2.0", ".1..."),
    ("i in [1, 5.0, 7.5]", "1...1"),
    ("i not in [1, 5]", ".11.."),
    ("i in []", "....."),
    ("i in [1, None]", "1..1."),
    ("i is None", "...1."),
    ("i is not None", "111.1"),
    ("i > 1 or x > 2", ".11.1"),
    ("i > 10 or s is None", "...1."),
    ("not (i > 1 and x > 2)", "1...."),
    ("u > -1", "111.1"),
    ("u == 9223372036854775813", ".1..."),
    ("u >= 18446744073709551615", "....1"),
    ("big == 9007199254740993", ".1..."),
    ("big <= 9007199254740992", "1.1.."),
    ("big == 9007199254740992.0", "1...."),
    ("x > 0.1", "..1.1"),
    ("x >= 0.1", "1.1.1"),
    ("x != 0.1", "..1.1"),
    ("not (x > 1)", "1...."),
    ("x is None", ".1.1."),
    ("x < 1e400", "1.1.."),
    ("0 < x <= 2.5", "1.1.."),
    ("f == 0.1", "....."),
    ("f > 0.1", "11..."),
    ("f == 0", "....1"),
    ("h <= 1.5", "11..."),
    ("h is None", "..1.."),
    ("price == 1.13", "1...."),
    ("price in [1.13, -3]", "1.1.."),
    ("price > 1.1", "1...."),
    ("price >= 1.1", "11..."),
    ("price < 1e300", "111.1"),
    ("price > 1.125", "1...."),
    *((f"{name} == 'a'", "1....") for name in ("s", "large", "view", "c")),
    *((f"{name} in ['B', 'ü']", ".1..1") for name in ("s", "large", "view", "c")),
    ("s < 'a'", ".11.."),
    ("c != ''", "11..1"),
    ("s == c", "111.1"),
    ("codes >= 2", ".11.1"),
    ("t", "1.1.."),
    ("not t", ".1..1"),
    ("t == False", ".1..1"),
    ("t != True", ".1..1"),
    ("t is None", "...1."),
    ("day >= '2026-09-01'", ".11.."),
    ("day == '2026-09-01'", ".1..."),
    ("day > '2026-09-01 12:00'", "..1.."),
    ("day in ['2026-09-01', '2026-08-31']", "11..."),
    ("'2026-08-31' < day < '2026-09-02'", ".1..."),
    ("ms >= '1970-01-01'", "111.."),
    ("ms > '1970-01-01 00:00:00.0005'", ".11.."),
    ("ms < '9999-12-31'", "111.1"),
    ("ns > '1970-01-01'", ".11.1"),
    ("ns < '9999-12-31'", "111.1"),
    ("ns >= '0001-01-01'", "111.1"),
    ("ns == '9999-12-31'", "....."),
    ("zone >= '1970-01-01 01:00'", "111.1"),
    ("zone >= '1970-01-01T01:00:00Z'", ".11.."),
    ("zone < '1970-01-01 02:00'", "1...1"),
    ("clock >= '14:30'", ".11.."),
    ("clock == '23:59:59.000005'", "..1.."),
    ("day < ms", "....1"),
    ("i < x", "....1"),
    ("i > price", ".11.1"),
    ("i == codes", "111.1"),
]


@pytest.mark.parametrize(("text", "rows"), CASES)
def test_rows_match_as_python_compares_and_missing_values_never_do(text, rows):
    assert "".join(".1"[int(match)] for match in fitted(text).mask(TABLE)) == rows


@pytest.mark.parametrize(("text", "rows"), CASES)
def test_no_row_group_with_a_match_is_left_out(tmp_path, text, rows):
    """Each row is a row group of its own, so that statistics say as much as they can; then two and three of them."""
    where = fitted(text)
    columns = [name for name in where.columns if name not in ("list", "v")]
    for size in (1, 2, 3, 5):
        path = tmp_path / f"{size}"
        write(path / "x.parquet", TABLE.select(columns), row_group_size=size)
        shot = snapshot(path)
        bound = bind(text, describe_columns(shot), lambda names, shot=shot: column_types(shot, names))
        mask = bound.mask(pq.read_table(path / "x.parquet"))
        assert "".join(".1"[int(match)] for match in mask) == rows
        (excluded,) = prune(shot, bound).excluded
        holds = {group for group in range(-(-5 // size)) if mask[group * size : (group + 1) * size].any()}
        assert not holds & excluded


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("i >= 5", {4}),
        ("i is None", {3}),
        ("i in [1, 3]", {0, 2}),
        ("s == 'ü'", {4}),
        ("day >= '2026-09-02'", {2}),
        ("not t", {1, 4}),
        ("price == 1.1", {1}),
        ("zone >= '1970-01-01T02:00:00Z'", {2}),
        ("clock == '14:30'", {1}),
        ("u > 3", {1, 4}),
        ("i > 2 and s == 'a'", set()),
        ("x > 2", {1, 2, 4}),
        ("ns > '1970-01-01 10:00'", {2, 4}),
        ("c == 'B' or codes == 1", {0, 1}),
    ],
)
def test_row_groups_without_a_match_are_left_out(tmp_path, text, left):
    write(tmp_path / "x.parquet", TABLE.drop_columns(["list", "v"]), row_group_size=1)
    shot = snapshot(tmp_path)
    (excluded,) = prune(shot, bind(text, describe_columns(shot), lambda names: column_types(shot, names))).excluded
    assert set(range(5)) - excluded == left


def random_text(draw: np.random.Generator, depth: int = 0) -> str:
    kind = draw.choice(["leaf", "and", "or", "not"]) if depth < 3 else "leaf"
    if kind == "leaf":
        name, operator = draw.choice(["x", "k", "s"]), draw.choice(["==", "!=", "<", "<=", ">", ">=", "in", "is"])
        if operator == "is":
            return f"{name} is {draw.choice(['', 'not '])}None"
        values = [repr(str(v)) if name == "s" else str(v) for v in draw.integers(0, 6, 2)]
        return f"{name} in [{', '.join(values)}]" if operator == "in" else f"{name} {operator} {values[0]}"
    parts = [f"({random_text(draw, depth + 1)})" for _ in range(1 if kind == "not" else 2)]
    return f"not {parts[0]}" if kind == "not" else f" {kind} ".join(parts)


@pytest.mark.parametrize("seed", range(10))
def test_statistics_leave_out_no_match_of_random_filters(tmp_path, seed):
    """Few distinct values in runs, with nulls and NaN: equality, negation and missing values meet often."""
    draw = np.random.default_rng(seed)
    rows = 60
    values = draw.integers(0, 6, (3, rows))
    values = np.sort(values, axis=1) if seed % 2 else values.repeat(3, axis=1)[:, :rows]
    missing = draw.random((3, rows)) < 0.15
    x = np.where(draw.random(rows) < 0.1, np.nan, values[0].astype(float))
    table = pa.table(
        {
            "x": pa.array(x, mask=missing[0]),
            "k": pa.array(values[1], mask=missing[1]),
            "s": pa.array([str(v) for v in values[2]], mask=missing[2]),
        }
    )
    write(tmp_path / "x.parquet", table, row_group_size=3)
    shot = snapshot(tmp_path)
    left_out = 0
    for _ in range(60):
        where = bind(random_text(draw), describe_columns(shot), lambda names: column_types(shot, names))
        (excluded,) = prune(shot, where).excluded
        matches = {int(row) // 3 for row in np.flatnonzero(where.mask(table))}
        assert not matches & excluded, where.text
        left_out += len(excluded)
    assert left_out > 100


@pytest.mark.parametrize("options", [{"write_statistics": False}, {"use_deprecated_int96_timestamps": True}])
def test_without_statistics_every_row_group_is_read(tmp_path, options):
    write(tmp_path / "x.parquet", TABLE.select(["ns"]), row_group_size=1, **options)
    shot = snapshot(tmp_path)
    where = bind("ns > '1970-01-01 10:00'", describe_columns(shot), lambda names: column_types(shot, names))
    assert prune(shot, where).excluded == (frozenset(),)


def test_statistics_of_a_struct_are_not_those_of_a_column_with_a_dot(tmp_path):
    table = pa.table({"a.b": [1, 2], "a": pa.array([{"b": 9}, {"b": 9}])})
    write(tmp_path / "x.parquet", table, row_group_size=1)
    shot = snapshot(tmp_path)
    where = bind("`a.b` == 2", describe_columns(shot), lambda names: column_types(shot, names))
    assert prune(shot, where).excluded == (frozenset({0}),)


def test_files_that_store_a_column_in_several_types_are_compared_alike(tmp_path):
    values = pa.array([1, 2, None])
    kinds = [pa.int8(), pa.float32(), pa.decimal128(21, 2)]
    for number, column in enumerate([*map(values.cast, kinds), values.dictionary_encode()]):
        write(tmp_path / f"{number}.parquet", {"k": column})
    shot = snapshot(tmp_path)
    where = bind("k >= 2", describe_columns(shot), lambda names: column_types(shot, names))
    assert dict(where.types) == {"k": pa.float64()}
    for path in sorted(tmp_path.iterdir()):
        assert list(where.mask(pq.read_table(path))) == [False, True, False]


@pytest.mark.parametrize(
    ("types", "common"),
    [
        ([pa.int8(), pa.int64()], pa.int64()),
        ([pa.uint64(), pa.uint8()], pa.uint64()),
        ([pa.uint64(), pa.int8()], pa.float64()),
        ([pa.date32(), pa.date64()], pa.date32()),
        ([pa.date32(), pa.timestamp("s")], pa.timestamp("us")),
        ([pa.timestamp("ns", "UTC"), pa.timestamp("s", "Asia/Tokyo")], pa.timestamp("ns", "UTC")),
        ([pa.decimal128(5, 2), pa.decimal128(9, 4)], pa.decimal128(38, 4)),
        ([pa.null(), pa.string()], pa.string()),
        ([pa.string(), pa.dictionary(pa.int8(), pa.large_string())], pa.string()),
        ([pa.timestamp("s"), pa.timestamp("s", "UTC")], None),
        ([pa.bool_(), pa.int8()], None),
        ([pa.null()], None),
    ],
)
def test_types_of_files_have_a_common_one_or_none(types, common):
    assert common_type(types) == common


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("dai > 1", SchemaError, "column 'dai' (where) is not in the lake; did you mean 'day'?"),
        ("s == 5", UsageError, "where: 's' is string; 5 is a number; write it in quotes"),
        ("c in ['a', 5]", UsageError, "where: 'c' is string; 5 is a number; write it in quotes"),
        ("i == '5'", UsageError, "where: 'i' is int64; '5' is text; write a number without quotes"),
        ("i == True", UsageError, "where: 'i' is int64; True is a truth value; compare it with a number"),
        ("s", UsageError, "where: 's' is string; True is a truth value; compare it with a text"),
        ("t == 1", UsageError, "where: 't' is bool; 1 is a number; write True or False"),
        (
            "day > 20260901",
            UsageError,
            "where: 'day' is date32[day]; 20260901 is a number; write it in quotes, such as '2026-09-01'",
        ),
        (
            "day > 'yesterday'",
            UsageError,
            "where: 'day' is date32[day]; 'yesterday' cannot be read as one; write it as '2026-09-01'",
        ),
        (
            "ms > '2026-09-01T00:00Z'",
            UsageError,
            "'2026-09-01T00:00Z' cannot be read as one; write it as '2026-09-01' or '2026-09-01 14:30'",
        ),
        ("clock > 14", UsageError, "write it in quotes, such as '14:30'"),
        ("s > i", UsageError, "where: 's' is string; 'i' is int64; compare columns of one type"),
        ("zone > ms", UsageError, "compare columns of one type"),
        (
            "list is None",
            SchemaError,
            "column 'list' (where) is list<item: int64>; a filter takes numbers, text, truth values, dates and times",
        ),
        ("v is None", SchemaError, "column 'v' (where) is fixed_size_list"),
        ("raw == 'a'", SchemaError, "column 'raw' (where) is binary"),
        ("gap > 1", SchemaError, "column 'gap' (where) is duration[s]"),
    ],
)
def test_what_does_not_fit_a_column_is_refused_with_both_types(text, kind, message):
    with pytest.raises(kind) as caught:
        fitted(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_column_that_files_disagree_on_is_refused(tmp_path: Path):
    write(tmp_path / "a.parquet", {"k": [1], "p": [1.0]})
    write(tmp_path / "b.parquet", {"k": [True], "p": [1.0]})
    write(tmp_path / "c.parquet", {"p": ["text"], "k": [1]})
    shot = snapshot(tmp_path)
    columns = describe_columns(shot)
    with pytest.raises(SchemaError, match=r"column 'k' \(where\) is int64 and bool, which cannot be compared; cast it"):
        bind("k == 1", columns, lambda names: column_types(shot, names))
    with pytest.raises(SchemaError, match=r"column 'p' is string in c\.parquet but double in [ab]\.parquet"):
        bind("p == 1", columns, lambda names: column_types(shot, names))


def test_objects_that_are_not_what_they_seem_are_an_error_that_names_the_column():
    where = RowFilter("k == 'a'", (("k", pa.string()),))
    with pytest.raises(DataError, match=r"column 'k' \(where\) of the frame cannot be compared as string"):
        where.mask(pa.Table.from_pandas(pd.DataFrame({"k": [[1], [2]]})))
