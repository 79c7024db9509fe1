"""Profiles of a run: what people call, against pandas on all rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from excir_dask import Explanation, explain, merge
from excir_dask.cli.root import excir
from excir_dask.errors import UsageError


def made(seed: int = 0, rows: int = 2000) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows)
    region = rng.choice(["EU", "US", "a<b>", "rare"], rows, p=[0.6, 0.29, 0.1, 0.01])
    y = x**2 + (region == "EU") + rng.normal(size=rows)
    return pd.DataFrame(
        {
            "x": np.where(rng.random(rows) < 0.25, np.nan, x), "month": rng.integers(1, 13, rows), "idle": 1.0,
            "empty": np.nan, "region": np.where(rng.random(rows) < 0.1, None, region), "w": rng.integers(1, 4, rows),
            "y": y, "late": (y > 1).astype(float),
        }
    )  # fmt: skip


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return made()


@pytest.fixture(scope="module")
def explained(frame: pd.DataFrame) -> Explanation:
    return explain(frame, output={"value": "y", "class": "late"}, features="!w", categoricals="indicators")


def test_cells_count_the_rows_of_each_value_and_category(frame, explained):
    months = explained.profile("month").table
    assert months["cell"].tolist() == [str(month) for month in range(1, 13)]
    assert months["rows"].tolist() == frame["month"].value_counts().sort_index().tolist()
    regions = explained.profile("region").table
    expected = frame["region"].value_counts()
    assert dict(zip(regions["cell"], regions["rows"], strict=True)) == expected.to_dict()
    assert regions["share"].sum() == pytest.approx(1.0)
    one = explained.profile("region=EU").table
    assert one["cell"].tolist() == ["0", "1"]
    assert one["rows"].tolist() == [expected.sum() - expected["EU"], expected["EU"]]


def test_medians_are_those_of_pandas_up_to_a_cell_of_the_output(frame, explained):
    found = explained.profile("region")
    exact = frame.groupby("region")["y"].quantile([0.25, 0.5, 0.75]).unstack()
    for row in found.table.to_dict("records"):
        assert [row["q25"], row["q50"], row["q75"]] == pytest.approx(exact.loc[row["cell"]].tolist(), abs=0.25)
    assert found.categories
    assert found.scores["group"] == "region"


def test_an_output_of_two_values_has_the_share_of_the_larger(frame, explained):
    table = explained.profile("month", "class").table
    assert table["upper"].tolist() == pytest.approx(frame.groupby("month")["late"].mean().tolist())
    assert "upper" not in explained.profile("month").table


def test_missing_values_constants_and_empty_columns_have_profiles(frame, explained):
    assert explained.profile("x").missing == pytest.approx(frame["x"].isna().mean())
    assert explained.profile("region").missing == pytest.approx(frame["region"].isna().mean())
    assert explained.profile("idle").table["cell"].tolist() == ["1"]
    empty = explained.profile("empty")
    assert (empty.missing, len(empty.table), empty.scores["flag"]) == (1.0, 0, "all missing")


def test_weights_count_as_repeated_rows(frame):
    weighted = explain(frame, output="y", features=["x", "month"], weights="w")
    repeated = frame.loc[frame.index.repeat(frame["w"])]
    table = weighted.profile("month").table
    assert table["rows"].tolist() == repeated["month"].value_counts().sort_index().tolist()
    exact = repeated.groupby("month")["y"].median()
    assert table["q50"].to_numpy() == pytest.approx(exact.to_numpy(), abs=0.25)


def test_profiles_of_merged_days_are_those_of_all_rows():
    days = [made(seed, 500) for seed in range(3)]
    first = explain(days[0], output="y", features=["x", "month"])
    found = merge([first, *(explain(day, output="y", features=["x", "month"], reference=first) for day in days[1:])])
    table = found.profile("month").table
    assert table["rows"].tolist() == pd.concat(days)["month"].value_counts().sort_index().tolist()


def test_a_saved_explanation_has_the_same_profiles_in_python_and_on_the_command_line(explained, tmp_path):
    explained.save(tmp_path / "run", report=False)
    loaded = Explanation.load(tmp_path / "run")
    for name in ("x", "region", "empty"):
        pd.testing.assert_frame_equal(loaded.profile(name).table, explained.profile(name).table)
        done = CliRunner().invoke(excir, ["profile", str(tmp_path / "run"), name])
        assert done.exit_code == 0
        assert done.stdout == str(explained.profile(name)) + "\n"
    done = CliRunner().invoke(excir, ["profile", str(tmp_path / "run"), "month", "--output", "class", "--json"])
    assert '"upper"' in done.stdout
    done = CliRunner().invoke(excir, ["profile", str(tmp_path / "run"), "mnth"])
    assert done.exit_code == 2
    assert done.output.count("\n") == 1
    assert "did you mean 'month'" in done.output


def test_profiles_show_themselves_in_terminals_and_notebooks(explained):
    text = str(explained.profile("region"))
    assert "a<b>" in text
    assert all(len(line) <= 120 for line in text.splitlines())
    assert "a&lt;b&gt;" in explained.profile("region")._repr_html_()
    assert "no row has a value" in str(explained.profile("empty"))


def test_what_has_no_profile_says_what_to_do(explained):
    with pytest.raises(UsageError, match="no output 'clas'; did you mean 'class'"):
        explained.profile("x", "clas")
    lake = explained.state
    pairs = replace(lake.state.pairs, joint=lake.state.pairs.joint[..., :0, :0])
    without = replace(explained, source=replace(lake, state=replace(lake.state, pairs=pairs)))
    with pytest.raises(UsageError, match=r"no joint counts.*compute it again"):
        without.profile("x")
    with pytest.raises(UsageError, match="no state"):
        replace(explained, source=None).profile("x")
