"""Pickles are loaded only if the user allows it."""

import os
import pickle
from hashlib import sha256

import joblib
import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from excir_dask.errors import ModelError
from excir_dask.models.load import load_model


class Bomb:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (self.path,))


@pytest.mark.parametrize("name", ["m.pkl", "m.pickle", "m.sav", "m.joblib", "m.bin", "m.ubj"])
def test_pickles_are_not_loaded_unless_asked(tmp_path, name):
    (tmp_path / name).write_bytes(pickle.dumps(Bomb(str(tmp_path / "boom"))))
    with pytest.raises(ModelError, match="would run any code in it") as raised:
        load_model(tmp_path / name)
    for way in ('save_model("model.ubj")', "booster_.save_model", "skl2onnx", "skops", "allow_pickle=True"):
        assert way in str(raised.value)
    assert not (tmp_path / "boom").exists()


def test_pickles_are_loaded_when_asked(tmp_path, complete, target):
    line = LinearRegression().fit(complete, target)
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(line))
    joblib.dump(line, tmp_path / "m.joblib", compress=3)
    for name in ("m.pkl", "m.joblib"):
        model = load_model(tmp_path / name, allow_pickle=True)
        assert model.kind == "scikit-learn"
        assert model.sha256 == sha256((tmp_path / name).read_bytes()).hexdigest()
        np.testing.assert_array_equal(model.score(complete)[1][0], line.predict(complete))
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(line)[:50])
    with pytest.raises(ModelError, match=r"m.pkl' cannot be unpickled: \w+"):
        load_model(tmp_path / "m.pkl", allow_pickle=True)
