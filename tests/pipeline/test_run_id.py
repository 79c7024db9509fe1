"""The same question to the same files is not computed twice; another one is."""

import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import oracle
import pandas as pd
import pytest

from excir_dask import Explanation, Training, explain, sweep, train
from excir_dask.errors import LakeError, ModelError, UsageError

pytestmark = pytest.mark.usefixtures("without_bokeh")


def table(rows: int = 2000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((rows, 4)), columns=list("abcd"))
    return frame.assign(pred=2 * frame["a"] - frame["b"], label=frame["a"] > 0)


@pytest.fixture(scope="module")
def lake(tmp_path_factory) -> Path:
    return oracle.write_lake(tmp_path_factory.mktemp("runs") / "lake", table(), 3)


@pytest.fixture(scope="module")
def saved(lake, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("saved") / "out"
    explain(lake, output="pred", out=out)
    return out


def test_the_run_id_is_in_the_manifest_and_not_in_what_must_repeat(lake, saved):
    identity = oracle.run_id(lake, output="pred")
    assert json.loads((saved / "manifest.json").read_text())["run_id"] == identity
    assert len(identity) == 12
    assert "run_id" not in (saved / "explanation.json").read_text()


def test_the_same_run_is_taken_from_the_folder_and_data_are_not_read(lake, saved, monkeypatch):
    before = {path.name: path.stat().st_mtime_ns for path in saved.iterdir()}
    monkeypatch.setattr(sys.modules["excir_dask.explain"], "run", None)
    for overwrite in (False, True):
        found = explain(lake, output="pred", out=saved, overwrite=overwrite)
        assert found.to_json() == Explanation.load(saved).to_json()
    assert {path.name: path.stat().st_mtime_ns for path in saved.iterdir()} == before


def test_force_computes_again_and_replaces(lake, tmp_path):
    explain(lake, output="pred", out=tmp_path / "out")
    first = (tmp_path / "out").stat().st_ino
    explain(lake, output="pred", out=tmp_path / "out", force=True)
    assert (tmp_path / "out").stat().st_ino != first


def test_force_and_overwrite_refuse_to_delete_what_no_run_wrote_before_any_work(lake, tmp_path, monkeypatch):
    explain(lake, output="pred", out=tmp_path / "out")
    (tmp_path / "out" / "notes.txt").write_text("mine")
    monkeypatch.setattr(sys.modules["excir_dask.explain"], "run", None)
    assert explain(lake, output="pred", out=tmp_path / "out").facts.rows.used == 2000
    for change in ({"force": True}, {"overwrite": True, "seed": 1, "fraction": 0.5}):
        with pytest.raises(UsageError, match=r"holds 'notes.txt', which is not part of the explanation"):
            explain(lake, output="pred", out=tmp_path / "out", **change)
    assert (tmp_path / "out" / "notes.txt").read_text() == "mine"


CHANGES = [
    {"output": {"name": "pred"}}, {"features": ["a", "b"]}, {"fraction": 0.5}, {"fraction": "auto"}, {"seed": 1},
    {"groups": {"g": ["a", "b"]}}, {"group_correlated": 0.8}, {"centering": "mean"}, {"rank_by": "cir"},
    {"budget": "2MiB"}, {"categoricals": "indicators"}, {"weights": "label"},
    {"fraction": 0.5, "sampling": "row-groups"}, {"fraction": "auto", "k": 2}, {"fraction": "auto", "sampling": "rows"},
]  # fmt: skip


def test_whatever_decides_about_the_result_changes_the_id(lake):
    ids = [oracle.run_id(lake, **{"output": "pred", **change}) for change in [{}, *CHANGES]]
    assert len(set(ids)) == len(ids)


def test_how_it_runs_does_not_change_the_id(lake, tmp_path):
    here = oracle.run_id(lake, output="pred")
    assert oracle.run_id(lake, output="pred", progress=True, checkpoint=tmp_path, scheduler="tcp://x:1") == here
    moved = tmp_path / "moved"
    shutil.copytree(lake, moved)  # keeps the times of change
    assert oracle.run_id(moved, output="pred") == here


def test_a_file_more_or_less_changes_the_id(lake, tmp_path):
    moved = tmp_path / "moved"
    shutil.copytree(lake, moved)
    next(moved.glob("*.parquet")).unlink()
    assert oracle.run_id(moved, output="pred") != oracle.run_id(lake, output="pred")


def test_another_model_changes_the_id(lake, tmp_path):
    for rounds in (1, 2):
        train(lake, label="label", features=list("abcd"), rounds=rounds, validation=0, out=tmp_path / f"{rounds}.ubj")
    one, two = (oracle.run_id(lake, model=tmp_path / f"{rounds}.ubj") for rounds in (1, 2))
    assert one != two
    assert oracle.run_id(lake, model=tmp_path / "1.ubj", predict_type="probability") not in (one, two)


def test_another_run_does_not_replace_a_result_unless_allowed(lake, tmp_path):
    explain(lake, output="pred", out=tmp_path / "out")
    for force in (False, True):
        with pytest.raises(UsageError, match="exists already"):
            explain(lake, output="pred", seed=1, fraction=0.5, out=tmp_path / "out", force=force)
    found = explain(lake, output="pred", seed=1, fraction=0.5, out=tmp_path / "out", overwrite=True)
    assert Explanation.load(tmp_path / "out").to_json() == found.to_json()


def test_a_result_that_was_changed_is_not_passed_on(lake, tmp_path):
    explain(lake, output="pred", out=tmp_path / "out")
    (tmp_path / "out" / "features.parquet").write_bytes(b"")
    with pytest.raises(LakeError, match="was changed"):
        explain(lake, output="pred", out=tmp_path / "out")
    explain(lake, output="pred", out=tmp_path / "out", force=True)
    Explanation.load(tmp_path / "out")


def test_a_frame_has_no_id_and_is_computed_every_time(tmp_path):
    found = explain(table(200), output="pred", out=tmp_path / "out")
    assert found.provenance.run_id is None
    with pytest.raises(UsageError, match="exists already"):
        explain(table(200), output="pred", out=tmp_path / "out")


def test_a_sweep_is_not_computed_twice(lake, tmp_path, monkeypatch):
    options = {"output": "pred", "fractions": [0.5], "seeds": 1, "k": 1, "out": tmp_path / "out"}
    first = sweep(lake, **options)
    with pytest.raises(UsageError, match="exists already"):
        sweep(lake, **{**options, "seeds": 2})
    monkeypatch.setattr(sys.modules["excir_dask.sweep.run"], "explain_with", None)
    again = sweep(lake, **options)
    assert again.settings["run_id"] == first.settings["run_id"]
    assert again.chosen == first.chosen


def test_a_sweep_that_trains_is_not_computed_twice(lake, tmp_path, monkeypatch):
    retrain = {"label": "label", "params": {"max_depth": 2}, "rounds": 2}
    options = {"retrain": retrain, "fractions": [0.5], "seeds": 1, "k": 1, "features": list("abcd")}
    first = sweep(lake, **options, out=tmp_path / "out")
    monkeypatch.setattr(sys.modules["excir_dask.sweep.run"], "explain_with", None)
    assert sweep(lake, **options, out=tmp_path / "out").settings == first.settings
    with pytest.raises(UsageError, match="exists already"):
        sweep(lake, **{**options, "retrain": {**retrain, "rounds": 3}}, out=tmp_path / "out")


@pytest.mark.parametrize("name", ["model.ubj", "model.json"])
def test_a_model_is_not_trained_twice(lake, tmp_path, monkeypatch, name):
    options = {"label": "label", "features": list("abcd"), "rounds": 3, "out": tmp_path / name}
    first = train(lake, **options)
    with pytest.raises(UsageError, match="exists already"):
        train(lake, **{**options, "rounds": 4})
    with monkeypatch.context() as patch:
        patch.setattr("excir_dask.training.train.own_client", None)
        again = train(lake, **options)
    assert again.summary() == first.summary()
    assert again.booster.get_dump() == first.booster.get_dump()
    assert again.features == first.features
    content = bytearray((tmp_path / name).read_bytes())
    (tmp_path / name).write_bytes(content + b" ")
    with pytest.raises(ModelError, match="train it again"):
        train(lake, **options)
    train(lake, **options, force=True)
    assert Training.load(tmp_path / name).history == first.history


@pytest.mark.parametrize("damage", ["", "{}", "[]", '{"run_id": 5}'])
def test_a_manifest_that_cannot_be_read_is_of_another_run(lake, saved, tmp_path, damage):
    shutil.copytree(saved, tmp_path / "out")
    (tmp_path / "out" / "manifest.json").write_text(damage)
    with pytest.raises(UsageError, match="exists already"):
        explain(lake, output="pred", out=tmp_path / "out")
    assert os.listdir(tmp_path) == ["out"]
