"""Trends: a slow change is steady, a step is a jump, and noise is neither."""

from __future__ import annotations

import numpy as np
import pandas as pd

from excir_dask import explain
from excir_dask.audit.history import rows_of
from excir_dask.audit.slopes import slopes
from excir_dask.audit.trends import trends

RUNS = 14


def history(scores: dict[str, np.ndarray], error: float = 0.02) -> pd.DataFrame:
    rows = [
        {"run": f"run-{place:02d}", "output": "y", "kind": "features", "name": name, "cir": cir, "error": error}
        for name, values in scores.items()
        for place, cir in enumerate(values)
    ]
    return pd.DataFrame(rows)


def found(scores: dict[str, np.ndarray], error: float = 0.02) -> pd.DataFrame:
    return slopes(history(scores, error), 0.001).set_index("name")


def noise(seed: int, size: int = RUNS) -> np.ndarray:
    return 0.02 * np.random.default_rng(seed).standard_normal(size)


def test_a_slow_trend_is_steady_and_a_step_is_a_jump():
    at = np.arange(RUNS)
    table = found(
        {
            "fading": 0.8 - 0.01 * at + noise(1),
            "jumping": np.where(at < 8, 0.8, 0.2) + noise(2),
            "resting": 0.6 + noise(3),
        }
    )
    assert table["steady"].to_dict() == {"fading": True, "jumping": False, "resting": False}
    assert table["jumped"].to_dict() == {"fading": "", "jumping": "run-08", "resting": ""}
    assert abs(table["slope"]["fading"] + 0.01) < 4 * table["slope_error"]["fading"]


def test_noise_is_no_trend():
    table = found({f"f{j}": 0.6 + noise(j) for j in range(500)})
    assert not table["steady"].any()
    assert not (table["jumped"] != "").any()


def test_days_that_differ_more_than_their_errors_say_are_no_trend():
    table = found({f"f{j}": 0.6 + 5 * noise(j) for j in range(200)})
    assert table["steady"].sum() + (table["jumped"] != "").sum() <= 1


def test_few_runs_say_nothing():
    table = found({"a": np.array([0.9, 0.7, 0.5, 0.3])})
    assert not table["steady"]["a"]
    assert (table["first"]["a"], table["last"]["a"], table["runs"]["a"]) == (0.9, 0.3, 4)


def test_runs_that_lack_a_name_are_left_out():
    full = history({"a": 0.8 - 0.01 * np.arange(RUNS) + noise(1), "b": 0.6 + noise(2)})
    table = slopes(full[(full["name"] == "b") | (full["run"] > "run-05")], 0.001).set_index("name")
    assert table["runs"].to_dict() == {"a": 8, "b": 14}


def test_a_group_that_fades_is_shown_however_many_names_are_beyond_limits():
    rng = np.random.default_rng(0)
    names = [f"f{j:02d}" for j in range(30)]
    groups = {"fading": names[:2]}
    explanations = []
    for day in range(RUNS):
        X = rng.standard_normal((1500, 30))
        weights = np.where(np.arange(30) < 2, 2.0 - 0.12 * day, 0.5)
        explanations.append(explain(pd.DataFrame(X, columns=names).assign(y=X @ weights), output="y", groups=groups))
    about = {"audit": "a", "window": None, "date": None, "status": "ok", "baseline": None, "rows": 1500}
    runs = [{**about, "run": f"run-{day:02d}", "finished": f"2026-09-{day + 1:02d}"} for day in range(RUNS)]
    past = pd.concat([rows_of(*pair) for pair in zip(runs[:-1], explanations[:-1], strict=True)])
    found = trends(past, runs[-1], explanations[-1], [("y", "features", name) for name in reversed(names)], 0.001)
    shown = list(found["name"].unique())
    assert shown[:9] == [*reversed(names[-8:]), "fading"]
    assert len(shown) == 12
