"""Sweeps that train a model at every fraction."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import oracle
import pandas as pd
import pytest
from distributed import Client

from excir_dask import Sweep, compare, explain, sweep, train
from excir_dask.errors import UsageError

LEARNING = {"label": "y", "params": {"max_depth": 2}, "rounds": 5, "early_stopping": 0}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    X = np.random.default_rng(0).standard_normal((2000, 5))
    y = (X @ [3.0, 2, 1, 0.5, 0] > 0).astype(int)
    frame = pd.DataFrame(X, columns=list("abcde")).assign(y=y)
    return oracle.write_lake(tmp_path_factory.mktemp("retrain") / "lake", frame, 2)


@pytest.fixture(scope="module")
def found(lake: Path) -> Sweep:
    with Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=":0"):
        return sweep(lake, retrain=LEARNING, fractions=[0.3], seeds=2, k=2)


def test_all_rows_are_trained_on_once_per_seed(found: Sweep) -> None:
    assert found.runs[["fraction", "seed"]].to_numpy().tolist() == [[0.3, 0], [0.3, 1], [1.0, 0], [1.0, 1]]
    assert found.runs.query("fraction == 1")["jaccard"].tolist() == [1.0, 1.0]


def test_training_is_timed_apart_from_explaining(found: Sweep) -> None:
    assert (found.runs["train_seconds"] > 0).all()
    assert found.summary["train_seconds"].notna().all()
    assert "training s" in str(found)
    assert found.settings["retrain"] == LEARNING


def test_a_model_is_compared_with_the_one_of_all_rows_and_the_same_seed(found: Sweep, lake: Path) -> None:
    with Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=":0"):
        full, part = (
            explain(lake, model=train(lake, seed=1, fraction=f, **LEARNING).booster, seed=1, fraction=f)
            for f in (1.0, 0.3)
        )
    expected = compare(full, part, 2).table
    rows = found.runs.query("fraction == 0.3 and seed == 1").reset_index(drop=True)
    pd.testing.assert_frame_equal(rows[expected.columns], expected)


def test_the_label_is_not_explained(found: Sweep) -> None:
    assert found.runs["n"].unique().tolist() == [5]


def test_options_that_the_sweep_sets_itself_are_refused(lake: Path) -> None:
    with pytest.raises(UsageError, match="fraction is set by the sweep itself"):
        sweep(lake, retrain={**LEARNING, "fraction": 0.5})
