"""A model that does not fit the lake ends a run with exit code 3 before a row is read, and says why."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from category_models import stores_categories
from oracle import write_lake


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wrong")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((300, 3)), columns=list("abc"))
    frame["city"] = rng.choice(["Oslo", "Rome"], 300)
    write_lake(folder / "lake", frame, 2)
    good = xgb.XGBRegressor(n_estimators=3).fit(frame[list("abc")], frame["a"])
    good.save_model(folder / "good.ubj")
    whole = (folder / "good.ubj").read_bytes()
    (folder / "cut.ubj").write_bytes(whole[: len(whole) // 2])
    (folder / "empty.ubj").write_bytes(b"")
    (folder / "text.json").write_text('{"a": 1}')
    (folder / "picture.ubj").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    (folder / "model.pkl").write_bytes(b"\x80\x04N.")
    other = frame.rename(columns={"c": "colour", "b": "B"})
    xgb.XGBRegressor(n_estimators=3).fit(other[["a", "B", "colour"]], frame["a"]).save_model(folder / "other.ubj")
    towns = frame.assign(city=frame["city"].replace("Rome", "Lima")).astype({"city": "category"})
    categorical = xgb.XGBRegressor(n_estimators=3, enable_categorical=True).fit(towns[["a", "city"]], frame["a"])
    categorical.save_model(folder / "towns.ubj")
    return folder


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("nowhere.ubj", ["nowhere.ubj"]),
        ("cut.ubj", ["cut.ubj"]),
        ("empty.ubj", ["empty.ubj", "empty"]),
        ("text.json", ["text.json"]),
        ("picture.ubj", ["picture.ubj"]),
        ("lake/part-0000.parquet", ["part-0000.parquet"]),
        ("model.pkl", ["model.pkl", "save_model", "allow"]),
        ("other.ubj", ["lacks 2: B, colour", "3 columns that the model does not use: b, c, city"]),
        pytest.param("towns.ubj", ["'city'", "'Rome'", "Lima, Oslo"], marks=stores_categories),
    ],
)
def test_a_wrong_model_ends_with_exit_code_3_and_the_difference(place, model, words):
    arguments = ["explain", str(place / "lake"), "--model", str(place / model)]
    found = subprocess.run([sys.executable, "-m", "excir_dask", *arguments], capture_output=True, text=True)
    assert found.returncode == 3, found.stderr
    assert found.stderr.count("\n") == 1, found.stderr
    for word in words:
        assert word in found.stderr


def test_the_right_one_works(place, tmp_path):
    arguments = ["explain", str(place / "lake"), "--model", str(place / "good.ubj"), "--out", str(tmp_path / "out")]
    found = subprocess.run([sys.executable, "-m", "excir_dask", *arguments], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert "prediction" in found.stdout
