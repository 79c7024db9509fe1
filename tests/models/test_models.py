"""The entrance: files of all sorts, pickles, options, and predictors that are opened once."""

import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256

import joblib
import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from skl2onnx import to_onnx
from sklearn.linear_model import LinearRegression, LogisticRegression

from excir_dask.errors import ModelError, UsageError
from excir_dask.models import scoring
from excir_dask.models.load import load_model

opened = []


class Counted:
    """A function that counts how often it is unpickled."""

    def __init__(self, number):
        self.number = number

    def __setstate__(self, state):
        opened.append(state["number"])
        self.__dict__.update(state)

    def __call__(self, frame):
        return frame["a"] * self.number


@pytest.fixture
def files(tmp_path, table, complete, binary):
    """One whole file of each kind."""
    booster = xgb.train(
        {"objective": "binary:logistic", "max_depth": 3}, xgb.DMatrix(table, binary, enable_categorical=True), 3
    )
    booster.save_model(tmp_path / "m.ubj")
    booster.save_model(tmp_path / "m.json")
    settings = {"objective": "binary", "num_leaves": 5, "verbosity": -1}
    lgb.train(settings, lgb.Dataset(table, binary), 3).save_model(tmp_path / "m.txt")
    X = complete.to_numpy(np.float32)
    (tmp_path / "m.onnx").write_bytes(
        to_onnx(LogisticRegression().fit(X, binary), X[:1], target_opset=17).SerializeToString()
    )
    return tmp_path


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


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("m.ubj", b"", "'.*m.ubj' is empty; expected an XGBoost model"),
        ("m.ubj", b"\x89PNG\r\n\x1a\n....", "looks like a PNG image; expected an XGBoost model"),
        ("m.onnx", b"PAR1....PAR1", "looks like a Parquet file"),
        ("m.model", b"binf\x00\x00", "the old binary format; load it with the version that saved it"),
        ("m.bin", b"CBM1\x00", "a CatBoost model; save it with format='onnx'"),
        ("m.skops", b"PK\x03\x04", "a zip archive; load a skops file with skops.io.load"),
        ("m.txt", b"hello world", "text that starts with 'hello world'"),
        ("m.bin", bytes(range(200, 250)), "binary data that starts with c8 c9 ca"),
        ("m.onnx", bytes(range(200, 250)), "damaged, cut off or not an ONNX model"),
        ("m.json", b'{"a": 1, "b": 2}', "is JSON with the keys a, b, but not an XGBoost model"),
        ("m.json", b'{"learner": 3}', "is JSON with the keys learner, but not an XGBoost model"),
        ("m.json", b'{"a": 1', "damaged or cut off: its 7 bytes start as JSON"),
        ("m.json", b'{"a":' * 100_000, "damaged or cut off"),
        ("m.json", b'{"tree_info": [], "name": "tree"}', "a JSON dump of a LightGBM model, which cannot be loaded"),
        ("m.ubj", b"{L" + b"\xff" * 20, "damaged or cut off: its 22 bytes start as UBJSON"),
        ("m.ubj", b"{i\x01a[" + b"[" * 500, "nested more than 100 levels deep"),
        ("m.txt", b"tree\nversion=v4\n", "start as a LightGBM model, but it has no complete list of trees"),
    ],
)
def test_files_that_are_no_models(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ModelError, match=message) as raised:
        load_model(tmp_path / name)
    assert name in str(raised.value)
    assert raised.value.exit_code == 3


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ModelError, match=r"the model file '.*nothing.ubj' does not exist; expected"):
        load_model(tmp_path / "nothing.ubj")
    with pytest.raises(ModelError, match="models are read from local files: download it first"):
        load_model("s3://bucket/model.ubj")
    (tmp_path / "inside.ubj").touch()
    with pytest.raises(ModelError, match=r"is a directory \(inside.ubj\); name the model file"):
        load_model(tmp_path)


CUT = """
import sys
from excir_dask.errors import ModelError
from excir_dask.models.load import load_model
path, copy, columns = sys.argv[1], sys.argv[2], sys.argv[3].split(",") if sys.argv[3] else None
content = open(path, "rb").read()
load_model(path, columns=columns)
for end in range(1, len(content) - 20, max(1, len(content) // 150)):
    open(copy, "wb").write(content[:end])
    try:
        load_model(copy, columns=columns)
        raise SystemExit(f"{end} bytes of {len(content)} were taken for a model")
    except ModelError as error:
        assert copy in str(error)
for place in range(0, len(content), max(1, len(content) // 60)):
    open(copy, "wb").write(content[:place] + bytes(8) + content[place + 8:])
    try:
        load_model(copy, columns=columns)
    except ModelError:
        pass
"""


@pytest.mark.parametrize("name", ["m.ubj", "m.json", "m.txt", "m.onnx"])
def test_a_file_that_was_cut_off_is_an_error_and_not_a_crash(files, name):
    columns = "a,b,c" if name == "m.onnx" else ""
    arguments = [sys.executable, "-c", CUT, str(files / name), str(files / f"cut-{name}"), columns]
    found = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
    assert found.returncode == 0, found.stderr[-2000:]


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


def test_a_predictor_is_opened_once_however_many_threads_ask():
    opened.clear()
    sent = pickle.dumps(load_model(Counted(3)))
    frame = pd.DataFrame({"a": [1.0, 2.0]})
    together = threading.Barrier(8)

    def score(_):
        together.wait()
        return pickle.loads(sent).score(frame)[1]

    with ThreadPoolExecutor(8) as pool:
        for values in pool.map(score, range(8)):
            np.testing.assert_array_equal(values, [[3.0, 6.0]])
    assert opened == [3]


def test_only_a_few_predictors_stay_open():
    opened.clear()
    frame = pd.DataFrame({"a": [1.0]})
    numbers = list(range(10, 11 + scoring.MAX_OPEN_PREDICTORS))
    models = [pickle.loads(pickle.dumps(load_model(Counted(number)))) for number in numbers]
    for model in models:
        model.score(frame)
    models[-1].score(frame)
    assert opened == numbers
    models[0].score(frame)
    assert opened == [*numbers, 10]


def test_files_are_opened_once_for_each_way_to_use_them(files):
    margin, probability = (load_model(files / "m.ubj", predict_type=kind) for kind in ("margin", "probability"))
    first = scoring.open_predictor(margin)
    assert scoring.open_predictor(pickle.loads(pickle.dumps(margin))) is first
    assert scoring.open_predictor(probability) is not first


@pytest.mark.parametrize("name", ["m.ubj", "m.txt", "m.onnx"])
def test_threads_get_the_scores_of_their_own_blocks(files, table, name):
    model = load_model(files / name, columns=["a", "b", "c"] if name == "m.onnx" else None)
    codes = table.assign(word=table["word"].cat.codes, size=table["size"].cat.codes)  # for xgboost before 3.1
    block = table if model.input_type == "frame" else codes[list(model.columns)].fillna(0.0).to_numpy()
    parts = [block[start : start + 20] for start in range(0, 240, 20)] * 4
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(model.score, parts))
    np.testing.assert_array_equal(np.hstack([values for _, values in found[:12]]), model.score(block)[1])
    for place, (_, values) in enumerate(found):
        np.testing.assert_array_equal(values, found[place % 12][1])
