"""fraction="auto" reads no row twice, as long as its rows can be held; what it finds does not depend on that."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from counting import Counting
from oracle import write_lake

from excir_dask import explain
from excir_dask.graph import closer
from excir_dask.graph.spill import SpillingStore
from excir_dask.pipeline import adaptive


@pytest.fixture(autouse=True)
def as_many_scans_for_every_sample(monkeypatch):
    """Small lakes are looked at again until scores are certain: how often depends on the rows."""
    monkeypatch.setattr(closer, "FEW_VALUES", 0)


def doubtful(rows: int = 30_000) -> pd.DataFrame:
    """Rows whose top features take some steps to find, with all that makes rows and columns differ."""
    rng = np.random.default_rng(8)
    matrix = rng.standard_normal((rows, 8))
    matrix[:, 5] = np.round(matrix[:, 5])
    matrix[rng.random(rows) < 0.1, 6] = np.nan
    output = matrix[:, :5] @ np.array([3.0, 2.0, 1.0, 0.8, 0.7]) + rng.standard_normal(rows)
    frame = pd.DataFrame(matrix, columns=[f"x{i}" for i in range(8)])
    frame["pred"] = np.where(rng.random(rows) < 0.05, np.nan, output)
    frame["other"] = output**2
    frame["weight"] = rng.integers(0, 3, rows).astype(float)
    frame["kind"] = rng.choice(["a", "b", "c"], rows, p=[0.6, 0.3, 0.1])
    return frame


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    return write_lake(tmp_path_factory.mktemp("doubtful") / "lake", doubtful(), 10, 250)


AUTO = {"fraction": "auto", "k": 4, "confidence": 0.99}


@pytest.mark.parametrize(
    ("sampling", "options"),
    list(
        product(
            ["rows", "row-groups"],
            [
                {"output": "pred"},
                {"output": ["pred", "other"], "weights": "weight", "categoricals": "indicators", "budget": "1MiB"},
                {"output": "pred", "centering": "trimmed", "group_correlated": 0.1, "group_rows": 500},
            ],
        )
    ),
)
def test_rows_that_are_held_count_as_those_that_are_read_again(lake, tmp_path, sampling, options):
    held = explain(lake, sampling=sampling, **AUTO, **options)
    assert len(held.facts.auto.steps) > 1
    again = explain(lake, sampling=sampling, checkpoint=tmp_path, **AUTO, **options)  # what is saved is not held
    assert held.to_json() == again.to_json()
    assert held.provenance.bytes_read < 0.6 * again.provenance.bytes_read


@pytest.mark.parametrize("sampling", ["rows", "row-groups"])
def test_no_column_chunk_is_read_twice(lake, sampling):
    found = explain(lake, output="pred", features=["x?"], sampling=sampling, **AUTO)
    assert len(found.facts.auto.steps) > 1
    direct = explain(lake, output="pred", features=["x?"], sampling=sampling, fraction=found.facts.settings.fraction)
    if sampling == "rows":
        pd.testing.assert_frame_equal(found.features, direct.features, rtol=0, atol=0)
    # steps add slices to those that are there, so row groups are cut as by another budget
    np.testing.assert_allclose(found.features["cir"], direct.features["cir"], atol=1e-4)
    # two scans of what the last step has, where auto reads it once in all
    assert found.provenance.bytes_read == direct.provenance.bytes_read / 2


def test_where_more_must_be_read_than_held_all_rows_are_taken(lake, monkeypatch):
    whole = explain(lake, output="pred", sampling="rows", **AUTO)
    monkeypatch.setattr(adaptive, "CACHED_BYTES", 30_000 * 8 * 11 // 10)  # a tenth of the rows: the first step, no more
    part = explain(lake, output="pred", sampling="rows", **AUTO)
    assert [step.fraction for step in part.facts.auto.steps][1:] == [1.0]
    assert part.features.equals(explain(lake, output="pred").features)
    assert part.provenance.bytes_read == 3 * whole.provenance.bytes_read


def test_a_row_group_is_shown_to_a_model_once(tmp_path):
    frame = doubtful()[["x0", "x1", "x2", "x3"]].set_axis(list("abcd"), axis=1)
    counting = Counting(tmp_path / "log")
    lake = write_lake(tmp_path / "lake", frame, 10, 500)
    found = explain(lake, model=counting, sampling="row-groups", fraction="auto", k=2, confidence=0.999)
    assert len(found.facts.auto.steps) > 1
    assert counting.rows == found.facts.rows.sampled


def test_a_row_group_that_is_streamed_is_not_held(tmp_path, monkeypatch):
    lake = write_lake(tmp_path / "lake", doubtful(60_000), 1, 60_000)
    options = {"output": "pred", "features": ["x?"], "budget": "1MiB", "sampling": "rows"}
    found = explain(lake, **AUTO, **options)
    steps = len(found.facts.auto.steps)
    assert found.provenance.bytes_read == steps * explain(lake, **options).provenance.bytes_read


@pytest.mark.cluster
def test_rows_are_held_on_a_cluster_as_here(lake, two_workers):
    for sampling in ("rows", "row-groups"):
        here = explain(lake, output="pred", sampling=sampling, **AUTO)
        there = explain(lake, output="pred", sampling=sampling, scheduler=two_workers, **AUTO)
        assert there.to_json() == here.to_json()
        assert there.provenance.bytes_read == here.provenance.bytes_read


def test_row_groups_of_which_nothing_is_held_are_no_rows_twice(tmp_path, monkeypatch):
    """A file of one row comes first in its slice, and that row is not in the sample."""
    lake = tmp_path / "lake"
    columns = [f"x{i}" for i in range(8)] + ["pred"]
    write_lake(lake, doubtful(24_000)[columns], 12)
    for i in range(6):
        doubtful(1 + i % 3)[columns].to_parquet(lake / f"a{i}.parquet")
    monkeypatch.setattr(adaptive, "CACHED_BYTES", 24_000 * 8 * 12 // 5)
    for seed in range(4):
        found = explain(lake, output="pred", sampling="rows", seed=seed, **AUTO | {"confidence": 1e-6})
        share = found.facts.settings.fraction
        assert share < 0.2
        direct = explain(lake, output="pred", sampling="rows", seed=seed, fraction=share)
        assert found.features.equals(direct.features)


def test_what_a_thread_brings_after_the_end_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    store = SpillingStore(2**20)
    store.close()
    remember, name, _ = store.task("key", None)
    assert remember(name, "value") == "value"
    assert list(tmp_path.iterdir()) == []


def test_all_rows_by_row_groups_are_those_of_a_plain_run(lake):
    found = explain(lake, output="other", features=["x5", "x6", "x7"], sampling="row-groups", **AUTO | {"k": 2})
    assert [step.fraction for step in found.facts.auto.steps][-1] == 1.0
    assert found.features.equals(explain(lake, output="other", features=["x5", "x6", "x7"]).features)
