"""Predictors are opened once per process and shared by threads."""

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

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
