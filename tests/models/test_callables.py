"""Functions of a DataFrame as models."""

import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from check_scores import check
from oracle import write_lake
from sklearn.linear_model import LogisticRegression

from excir_dask import explain
from excir_dask.errors import ModelError
from excir_dask.models.load import load_model
from excir_dask.models.scoring import open_predictor


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (lambda frame: frame["a"].to_numpy(), ("output",)),
        (lambda frame: frame["a"], ("a",)),
        (lambda frame: frame["a"].rename(None), ("output",)),
        (lambda frame: frame[["a", "b"]].to_numpy(np.float32), ("0", "1")),
        (lambda frame: frame[["c", "a"]], ("c", "a")),
        (lambda frame: frame[["a"]].to_numpy(), ("output",)),
        (lambda frame: (frame["a"] > 0).to_numpy(), ("output",)),
        (lambda frame: frame["a"].round().astype("Int64"), ("a",)),
        (lambda frame: list(frame["a"]), ("output",)),
    ],
)
def test_functions_return_arrays_series_and_frames(complete, function, names):
    model = load_model(function)
    assert (model.kind, model.columns, model.names, model.input_type) == ("callable", None, None, "frame")
    check(model, complete, np.asarray(function(complete), float), names)


def test_missing_values_of_pandas_become_nan(complete):
    values = load_model(lambda frame: frame["a"].where(frame["a"] > 0).astype("Float64")).score(complete)[1]
    np.testing.assert_array_equal(values[0], complete["a"].where(complete["a"] > 0))


def half(frame):
    return frame[: len(frame) // 2].to_numpy()


def words(frame):
    return np.repeat("1", len(frame))


def broken(frame):
    return frame["nowhere"]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (half, r"half returned an array of shape \(120, 3\) for 240 rows; expected \(240,\) or \(240, outputs\)"),
        (words, "words returned <U1 values, for instance np.str_"),
        (lambda frame: frame["a"].astype(str), "<lambda> returned object values, for instance|returned str"),
        (
            broken,
            "broken raised KeyError on a DataFrame of 240 rows with the columns a, b, c: 'nowhere'.*model_columns",
        ),
        (lambda frame: 1.0, "returned float; expected an array, Series or DataFrame of 240 rows"),
        (lambda frame: None, "returned NoneType"),
        (lambda frame: frame.to_numpy()[None], r"shape \(1, 240, 3\)"),
        (lambda frame: frame[["a", "a"]], "outputs with the same name: a, a"),
        (lambda frame: frame.to_numpy() * 1j, "complex128 values, .*; expected numbers"),
        (lambda frame: frame[[]], r"shape \(240, 0\)"),
    ],
)
def test_functions_that_do_not_do_as_agreed(complete, function, message):
    with pytest.raises(ModelError, match=message) as raised:
        load_model(function).score(complete)
    if function is broken:
        assert isinstance(raised.value.__cause__, KeyError)


def test_functions_may_know_their_columns(complete, binary):
    estimator = LogisticRegression().fit(complete[["c", "a"]], binary)
    model = load_model(estimator.predict_proba)
    assert model.columns == ("c", "a")
    check(model, complete, estimator.predict_proba(complete[["c", "a"]]), ("0", "1"))
    with pytest.raises(ModelError, match="column 0 is 'c' in the model but 'a'"):
        load_model(estimator.predict_proba, columns=["a", "c"])
    assert load_model(half, columns=["b"]).columns == ("b",)
    with pytest.raises(ModelError, match="takes column 'z', which is not among"):
        load_model(half, columns=["z"]).score(complete)


def test_functions_that_were_sent_are_opened_once():
    model = load_model(half)
    assert open_predictor(pickle.loads(pickle.dumps(model))) is open_predictor(pickle.loads(pickle.dumps(model)))


def table(rows: int = 3000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(rng.standard_normal((rows, 4)), columns=list("abcd"))


def cir(explanation) -> pd.Series:
    return explanation.of().set_index("feature")["cir"]


def test_masked_values_are_missing():
    found = explain(table(), model=lambda f: np.ma.masked_less(f["a"].to_numpy(), 0.0))
    assert found.facts.rows.without_output == int((table()["a"] < 0).sum())


def test_rows_in_another_order_are_put_back():
    expected = cir(explain(table(), model=lambda f: 2 * f["a"]))
    pd.testing.assert_series_equal(cir(explain(table(), model=lambda f: (2 * f["a"]).sort_values())), expected)
    pd.testing.assert_series_equal(
        cir(explain(table(), model=lambda f: (2 * f["a"]).reset_index(drop=True), fraction=0.9999)),
        cir(explain(table(), model=lambda f: (2 * f["a"]).to_numpy(), fraction=0.9999)),
    )
    with pytest.raises(ModelError, match="another index"):
        explain(table(), model=lambda f: (2 * f["a"]).rename(lambda i: i + 7))


def test_what_is_explained_does_not_change_what_a_function_sees(tmp_path):
    lake = write_lake(tmp_path / "lake", table(), 2)
    everything = cir(explain(lake, model=lambda f: f.sum(axis=1)))
    some = cir(explain(lake, model=lambda f: f.sum(axis=1), features=["a", "b"]))
    np.testing.assert_array_equal(some, everything[some.index])


def test_decimals_reach_a_function_as_floats(tmp_path):
    column = pa.array(np.arange(50)).cast(pa.decimal128(23, 2))
    pq.write_table(pa.table({"d": column, "x": np.arange(50.0)}), tmp_path / "0.parquet")
    assert cir(explain(tmp_path, model=lambda f: f["d"] + 0.5))["x"] == 1.0
