"""load_model takes files and objects, and says what is wrong with the rest."""

import pickle
from hashlib import sha256

import pytest
from sklearn.linear_model import LogisticRegression

from excir_dask.errors import ModelError, UsageError
from excir_dask.models.load import load_model


def test_wrong_predict_type_and_columns(files):
    with pytest.raises(UsageError, match="predict_type is 'margins'; did you mean 'margin'"):
        load_model(files / "m.ubj", predict_type="margins")
    with pytest.raises(UsageError, match="columns is the string 'a'; pass a list"):
        load_model(files / "m.onnx", columns="a")
    with pytest.raises(ModelError, match="model_columns names a column twice: a, a, b"):
        load_model(files / "m.onnx", columns=["a", "a", "b"])


def test_models_carry_the_digest_of_the_file(files):
    for name in ("m.ubj", "m.json", "m.txt"):
        model = load_model(files / name)
        assert model.sha256 == sha256((files / name).read_bytes()).hexdigest()
        assert str(files / name) == model.source
        assert "payload" not in repr(model)
        assert pickle.loads(pickle.dumps(model)) == model
        hash(model)


def test_what_is_no_model(complete):
    for thing in (3, complete, LogisticRegression, {"a": 1}):
        with pytest.raises(UsageError, match="a model is a file, a fitted model of XGBoost"):
            load_model(thing)
    with pytest.raises(UsageError, match="the booster is its item 'booster'"):
        load_model({"booster": None, "history": {}})
