"""Scores from a pilot and one pass over lakes of awkward shapes, against numpy on all rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from counting import Counting
from one_pass import exact_cir
from oracle import write_lake

from excir_dask import Explanation, explain
from excir_dask.graph import closer
from excir_dask.kernels.centers import CENTERINGS
from excir_dask.lake import pilot

pytestmark = pytest.mark.usefixtures("synchronous")

ROWS = 40_000


@pytest.fixture(autouse=True)
def small_pilots(monkeypatch):
    """Pilots that leave most of a tiny lake unread."""
    monkeypatch.setattr(pilot, "SMALL", 5000)
    monkeypatch.setattr(pilot, "ROWS", 2000)


def table(seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    z = rng.standard_normal(ROWS)
    some = rng.random(ROWS)
    return pd.DataFrame(
        {
            "a": z + rng.standard_normal(ROWS),
            "skewed": rng.lognormal(size=ROWS) * np.exp(0.3 * z),
            "gap": np.where(some < 0.25, 0.0, 100.0) + rng.random(ROWS) + z,
            "zeros": np.where(some < 0.6, 0.0, rng.exponential(size=ROWS) + z**2),
            "missing": np.where(rng.random(ROWS) < 0.9, np.nan, z + rng.standard_normal(ROWS)),
            "constant": 0.1,
            "y": 2 * z + rng.standard_normal(ROWS),
        }
    )


SHAPES = {
    "well mixed": lambda frame: frame,
    "sorted by a feature": lambda frame: frame.sort_values("a"),
    "sorted by the output": lambda frame: frame.sort_values("y"),
    "drifting": lambda frame: frame.assign(
        a=frame["a"] + np.linspace(0, 3, ROWS), skewed=frame["skewed"] * np.linspace(1, 9, ROWS)
    ),
    "drifting output": lambda frame: frame.assign(y=frame["y"] + np.linspace(-5, 5, ROWS)),
}


def lake_of(frame: pd.DataFrame, folder: Path) -> Path:
    return write_lake(folder / "lake", frame, 8, 500)


def check(
    found: Explanation,
    frame: pd.DataFrame,
    output: np.ndarray,
    centering: str = "midhinge",
    weights: np.ndarray | None = None,
) -> None:
    rows = found.of().set_index("feature")
    for name in frame.columns:
        error = abs(rows.loc[name, "cir"] - exact_cir(frame[name].to_numpy(), output, centering, weights))
        assert error <= rows.loc[name, "center_bound"] + 1e-12, name
        assert error <= 1e-4, name
    if "constant" in frame:
        assert rows.loc["constant", "cir"] == 0.5


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("centering", CENTERINGS)
def test_scores_of_any_order_of_rows_are_those_of_all_rows(tmp_path, shape, centering):
    frame = SHAPES[shape](table()).reset_index(drop=True)
    found = explain(lake_of(frame, tmp_path), output="y", centering=centering, budget="1MiB")
    check(found, frame.drop(columns="y"), frame["y"].to_numpy(), centering)


def column_bytes(lake: Path) -> int:
    footers = [pq.read_metadata(path) for path in lake.iterdir()]
    groups = [footer.row_group(i) for footer in footers for i in range(footer.num_row_groups)]
    return sum(group.column(i).total_compressed_size for group in groups for i in range(group.num_columns))


def test_a_well_mixed_lake_is_read_hardly_more_than_once(tmp_path, monkeypatch):
    monkeypatch.setattr(pilot, "ROWS", 16_000)
    monkeypatch.setattr(closer, "FEW_VALUES", 0)
    rng = np.random.default_rng(0)
    a, e = rng.standard_normal((2, 5 * ROWS))
    frame = pd.DataFrame({"a": a, "skewed": np.exp(e + 0.3 * a), "y": a + e + rng.standard_normal(5 * ROWS)})
    lake = write_lake(tmp_path / "lake", frame, 8, 2500)
    found = explain(lake, output="y")
    assert column_bytes(lake) < found.provenance.bytes_read <= 1.2 * column_bytes(lake)


@pytest.mark.parametrize("kind", ["whole", "fractional"])
@pytest.mark.parametrize("centering", ["midhinge", "median"])
def test_weights_are_those_of_all_rows(tmp_path, kind, centering):
    frame = table().sort_values("a").reset_index(drop=True)
    rng = np.random.default_rng(1)
    weights = rng.integers(1, 5, ROWS).astype(float) if kind == "whole" else rng.lognormal(size=ROWS)
    lake = lake_of(frame.assign(w=weights), tmp_path)
    found = explain(lake, output="y", weights="w", centering=centering)
    check(found, frame.drop(columns="y"), frame["y"].to_numpy(), centering, weights)


@pytest.mark.parametrize("shape", ["well mixed", "sorted by a feature", "drifting"])
def test_a_model_is_shown_each_row_once(tmp_path, shape):
    frame = SHAPES[shape](table())[["a", "skewed", "gap"]].reset_index(drop=True)
    lake = lake_of(frame, tmp_path)
    counting = Counting(tmp_path / "log")
    found = explain(lake, model=counting, budget="1MiB")
    assert counting.rows == ROWS
    check(found, frame, frame["a"].to_numpy() ** 3)


def test_indicators_are_those_of_all_rows(tmp_path):
    frame = table().sort_values("y").reset_index(drop=True)
    city = np.where(frame["a"] + np.random.default_rng(2).standard_normal(ROWS) > 0.8, "Oslo", "Rome")
    lake = lake_of(frame.assign(city=city), tmp_path)
    found = explain(lake, output="y", categoricals="indicators", centering="mean")
    expected = frame.drop(columns="y").assign(**{f"city={c}": (city == c).astype(float) for c in ("Oslo", "Rome")})
    check(found, expected, frame["y"].to_numpy(), "mean")


@pytest.mark.parametrize("sampling", ["rows", "row-groups"])
def test_samples_score_alike_whether_the_pilot_saw_all_of_them(tmp_path, monkeypatch, sampling):
    options: dict[str, Any] = {"output": "y", "fraction": 0.4, "sampling": sampling, "seed": 3}
    lake = lake_of(table(), tmp_path)
    found = explain(lake, **options).of().set_index("feature")
    monkeypatch.setattr(pilot, "SMALL", 10 * ROWS)
    whole = explain(lake, **options).of().set_index("feature")
    error = np.abs(found["cir"] - whole["cir"].reindex(found.index))
    assert (error <= found["center_bound"] + whole["center_bound"].reindex(found.index) + 1e-12).all()
    assert error.max() < 2e-4


def test_results_do_not_depend_on_slices(tmp_path):
    frame = SHAPES["drifting"](table())
    lake = lake_of(frame, tmp_path)
    one, other = (explain(lake, output="y", budget=budget).of().set_index("feature") for budget in ("1MiB", "64MiB"))
    np.testing.assert_allclose(other["cir"].reindex(one.index), one["cir"], atol=1e-12)


def test_a_pilot_without_any_output_is_made_up_for(tmp_path):
    """Rows of the pilot have no output at all: all rows are looked at for the quantiles."""
    frame = table()
    heads = np.arange(ROWS) % 500 < 400
    frame.loc[heads, "y"] = np.nan
    found = explain(lake_of(frame, tmp_path), output="y", features=["a", "skewed"])
    left = frame[~heads]
    check(found, left[["a", "skewed"]], left["y"].to_numpy())


def test_scans_of_one_run_have_no_key_in_common(tmp_path):
    """Else a cluster that has not yet let go of a pass answers the next one with its result."""
    from dask.callbacks import Callback

    frame = SHAPES["sorted by the output"](table())
    keys: list[Any] = []
    with Callback(pretask=lambda key, *_: keys.append(key)):
        explain(lake_of(frame, tmp_path), output="y")
    scans = {str(key[0]) for key in keys if str(key[0]).startswith("excir-pass-") and "merge" not in str(key[0])}
    assert len(scans) > 1
    assert len(keys) == len(set(keys))
