"""Which columns a run reads."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from lakes import cir, columns, numbers, write

from excir_dask import explain
from excir_dask.errors import SchemaError, UsageError
from excir_dask.lake.select import select

ROWS = 40


def with_column(name: str, values: object, seed: int = 0) -> pa.Table:
    return numbers(ROWS, seed).append_column(name, values)


def test_a_pattern_passes_over_what_is_not_a_number(tmp_path):
    write(tmp_path / "0.parquet", with_column("x", pa.array(["x"] * ROWS)))
    assert set(cir(tmp_path, features="*")) == {"a", "b"}


@pytest.fixture
def wide(tmp_path):
    """Columns temp_0 to temp_3, speed and pred."""
    draw = np.random.default_rng(0)
    names = ["temp_0", "temp_1", "temp_2", "temp_3", "speed", "pred"]
    write(tmp_path / "wide.parquet", {name: draw.normal(size=ROWS) for name in names})
    return columns(tmp_path)


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        (None, "temp_0 temp_1 temp_2 temp_3 speed"),
        ("temp_*", "temp_0 temp_1 temp_2 temp_3"),
        (["temp_*", "!temp_1"], "temp_0 temp_2 temp_3"),
        (["!temp_*"], "speed"),
        (["speed", "temp_1"], "speed temp_1"),
        (["speed", "temp_[01]"], "speed temp_0 temp_1"),
        (["temp_?", "temp_1"], "temp_1 temp_0 temp_2 temp_3"),
        (["temp_1", "temp_1", "temp_1*"], "temp_1"),
        (["*", "!temp_0", "!temp_[12]"], "temp_3 speed"),
    ],
)
def test_patterns_choose_features(wide, features, expected):
    assert select(wide, ["pred"], features=features).features == tuple(expected.split())


def test_a_pattern_never_takes_outputs_or_weights_for_features(wide):
    assert select(wide, ["pred"], "speed", "*").features == ("temp_0", "temp_1", "temp_2", "temp_3")


def test_a_wrong_name_is_answered_with_the_nearest_one(wide):
    with pytest.raises(SchemaError, match=r"'sped' \(features\) is not in the lake; did you mean 'speed'"):
        select(wide, ["pred"], features=["sped"])
    with pytest.raises(SchemaError, match=r"'prd' \(output\) is not in the lake; did you mean 'pred'"):
        select(wide, ["prd"])
    with pytest.raises(SchemaError, match=r"'sped' \(weights\) is not in the lake; did you mean 'speed'"):
        select(wide, ["pred"], "sped")


@pytest.mark.parametrize("pattern", ["tmp_*", "!tmp_*", "!nothing"])
def test_a_pattern_that_matches_nothing_is_an_error(wide, pattern):
    with pytest.raises(SchemaError, match=f"pattern '{pattern.lstrip('!')}".replace("*", r"\*")):
        select(wide, ["pred"], features=["speed", pattern])


def test_an_output_asked_for_as_a_feature_is_wrong_usage(wide):
    with pytest.raises(UsageError, match="'pred' is both a feature and an output"):
        select(wide, ["pred"], features=["speed", "pred"])


def test_an_output_that_is_also_the_weights_is_wrong_usage(wide):
    with pytest.raises(UsageError, match="outputs and weights name column 'pred' twice"):
        select(wide, ["pred"], "pred")


def test_a_run_without_a_single_feature_is_an_error_that_counts(wide):
    with pytest.raises(SchemaError, match=r"no column is left to explain: 6 columns"):
        select(wide, ["pred"], features=["!*"])


def table(rows: int = 3000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(rng.standard_normal((rows, 4)), columns=list("abcd"))


def test_a_name_with_brackets_is_not_a_pattern():
    frame = table().rename(columns={"a": "a[0]", "b": "a0"})
    found = explain(frame.assign(pred=frame["c"]), output="pred", features=["!a[0]"])
    assert set(found.features["feature"]) == {"a0", "c", "d"}
