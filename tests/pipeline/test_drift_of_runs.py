"""Drift between runs: what people call, and what they are told."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from excir_dask import Explanation, drift, explain
from excir_dask.cli.root import excir
from excir_dask.errors import UsageError


def day(seed: int, shift: float = 0.0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, 1500))
    kind = rng.choice(["x", "y"], 1500, p=[0.5 + shift / 4, 0.5 - shift / 4])
    b = np.where(rng.random(1500) < 0.1 + shift / 5, np.nan, b)
    return pd.DataFrame(
        {"a": a + shift, "b": b, "kind": kind, "same": 2.0, "w": 1.0, "pred": a + 0.1 * rng.normal(size=1500)}
    )


def run(frame: pd.DataFrame, **more) -> Explanation:
    return explain(frame, output="pred", features="!w", categoricals="indicators", **more)


@pytest.fixture(scope="module")
def days() -> list[Explanation]:
    first = run(day(0))
    return [first, run(day(1), reference=first), run(day(2, 1.0), reference=first)]


def test_what_moved_comes_first_and_what_did_not_is_likely_by_chance(days):
    calm, moved = (drift(days[0], other).set_index("column") for other in days[1:])
    assert calm["ks_p"].min() > 0.001
    assert calm["psi"].max() < 0.1
    assert moved.index[0] == "a"
    assert moved.loc["a", "psi"] > 0.25
    assert moved.loc["a", "ks_p"] < 1e-9
    assert moved.loc["a", "wasserstein"] == pytest.approx(1.0 / 1.35, rel=0.15)
    assert moved.loc["kind=x", "ks"] == pytest.approx(0.25, abs=0.05)
    assert moved.loc["b", "missing_after"] > moved.loc["b", "missing_before"] + 0.1
    assert moved.loc["same", ["psi", "ks", "wasserstein"]].tolist() == [0.0, 0.0, 0.0]
    assert moved.loc["pred", "kind"] == "output"


def test_a_merge_of_days_can_be_compared_with_one_of_them(days):
    from excir_dask import merge

    assert drift(merge(days[:2]), days[2])["column"].iloc[0] == "a"


def test_states_of_different_references_are_refused_with_what_to_do(days):
    with pytest.raises(UsageError, match="compute after again with --reference before, then compare them"):
        drift(days[0], run(day(1)))
    with pytest.raises(UsageError, match="different features"):
        drift(days[0], explain(day(1), output="pred", features=["a"]))


def test_the_command_prints_a_table_json_and_csv(days, tmp_path):
    runs = [str(days[i].save(tmp_path / str(i), report=False)) for i in (0, 2)]
    done = CliRunner().invoke(excir, ["drift", *runs])
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[1].split()[0] == "a"
    found = json.loads(CliRunner().invoke(excir, ["drift", *runs, "--json"]).stdout)
    assert [row["column"] for row in found["drift"]] == drift(*runs)["column"].tolist()
    assert CliRunner().invoke(excir, ["drift", *runs, "--format", "csv"]).stdout.startswith("kind,column,psi,")
    done = CliRunner().invoke(excir, ["drift", *runs, "--format", "csv", "--json"])
    assert (done.exit_code, done.output.count("\n")) == (2, 1)
    other = str(run(day(1)).save(tmp_path / "other", report=False))
    done = CliRunner().invoke(excir, ["drift", runs[0], other])
    assert (done.exit_code, done.output.count("\n")) == (2, 1)
