"""ONNX models score as onnxruntime does, and close to the model they were made from."""

import json
from functools import partial

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from check_scores import check
from onnx import TensorProto, helper
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType, StringTensorType
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from excir_dask import explain
from excir_dask.errors import ModelError
from excir_dask.models.load import load_model

OPSET = {"": 17, "ai.onnx.ml": 3}  # what the oldest onnxruntime that is allowed knows
COLUMNS = ["a", "b", "c"]


def export(path, estimator, X, zipmap=None, **options):
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    chosen = {**({} if zipmap is None else {"zipmap": zipmap}), **options}
    found = to_onnx(estimator, X[:1], options={id(last): chosen} if chosen else None, target_opset=OPSET)
    path.write_bytes(found.SerializeToString())
    return path


check_close = partial(check, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("zipmap", [None, False, "columns"])
@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        GradientBoostingClassifier(n_estimators=3),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ],
    ids=["linear", "trees", "pipeline"],
)
def test_classifiers_with_and_without_zipmap(tmp_path, complete, binary, three, zipmap, estimator):
    X = complete.to_numpy(np.float32)
    estimator.fit(X, np.array(["low", "mid", "high"])[three])
    model = load_model(export(tmp_path / "three.onnx", estimator, X, zipmap), columns=COLUMNS)
    assert (model.kind, model.input_type, model.predict_type) == ("onnx", "float32", "as exported")
    check_close(model, X, estimator.predict_proba(X), ("high", "low", "mid"))
    estimator.fit(X, binary)
    model = load_model(export(tmp_path / "two.onnx", estimator, X, zipmap), columns=COLUMNS)
    check_close(model, X, estimator.predict_proba(X)[:, 1], ("1",))


def test_scores_equal_those_of_onnxruntime(tmp_path, complete, three):
    X = complete.to_numpy(np.float32)
    path = export(tmp_path / "m.onnx", LogisticRegression().fit(X, three), X, False)
    expected = onnxruntime.InferenceSession(path).run(["probabilities"], {"X": X})[0]
    np.testing.assert_array_equal(load_model(path, columns=COLUMNS).score(X)[1], expected.T)


def test_raw_scores_are_margins(tmp_path, complete, binary):
    X = complete.to_numpy(np.float32)
    estimator = LogisticRegression().fit(X, binary)
    path = export(tmp_path / "m.onnx", estimator, X, False, raw_scores=True)
    check_close(load_model(path, columns=COLUMNS), X, estimator.decision_function(X), ("1",))


def test_regressors_of_one_and_two_targets(tmp_path, complete, target):
    X = complete.to_numpy(np.float32)
    one = RandomForestRegressor(5, random_state=0).fit(X, target)
    check_close(load_model(export(tmp_path / "1.onnx", one, X), columns=COLUMNS), X, one.predict(X), ("prediction",))
    two = LinearRegression().fit(X, np.column_stack([target, -target]))
    check_close(load_model(export(tmp_path / "2.onnx", two, X), columns=COLUMNS), X, two.predict(X), ("0", "1"))


def test_columns_come_from_the_argument_or_the_metadata(tmp_path, complete, binary):
    X = complete.to_numpy(np.float32)
    path = export(tmp_path / "m.onnx", LogisticRegression().fit(X, binary), X)
    with pytest.raises(ModelError, match=r"m.onnx does not name its columns; .*the 3 names"):
        load_model(path)
    with pytest.raises(ModelError, match="takes 3 columns, but model_columns names 1"):
        load_model(path, columns=["a"])
    graph = onnx.load(path)
    onnx.helper.set_model_props(graph, {"feature_names": json.dumps(COLUMNS)})
    onnx.save(graph, tmp_path / "named.onnx")
    assert load_model(tmp_path / "named.onnx").columns == ("a", "b", "c")
    with pytest.raises(ModelError, match="column 0 is 'a' in the model but 'c'"):
        load_model(tmp_path / "named.onnx", columns=["c", "b", "a"])
    onnx.helper.set_model_props(graph, {"feature_names": json.dumps(["a"])})
    onnx.save(graph, tmp_path / "wrong.onnx")
    with pytest.raises(ModelError, match="takes 3 columns, but its metadata feature_names has 1"):
        load_model(tmp_path / "wrong.onnx")


def test_one_input_for_each_column_names_them(tmp_path, complete, target):
    estimator = make_pipeline(StandardScaler(), LinearRegression()).fit(complete, target)
    found = to_onnx(
        estimator, initial_types=[(name, FloatTensorType([None, 1])) for name in COLUMNS], target_opset=OPSET
    )
    (tmp_path / "m.onnx").write_bytes(found.SerializeToString())
    model = load_model(tmp_path / "m.onnx")
    assert (model.columns, model.input_type) == (("a", "b", "c"), "float32")
    check_close(model, complete.to_numpy(), estimator.predict(complete), ("prediction",))


def test_text_columns_make_it_take_a_frame(tmp_path, complete, table, target):
    frame = complete.assign(word=table["word"].astype(object))[["a", "word"]]
    encoder = make_column_transformer((OneHotEncoder(), ["word"]), remainder="passthrough")
    estimator = make_pipeline(encoder, Ridge()).fit(frame, target)
    types = [("a", FloatTensorType([None, 1])), ("word", StringTensorType([None, 1]))]
    (tmp_path / "m.onnx").write_bytes(to_onnx(estimator, initial_types=types, target_opset=OPSET).SerializeToString())
    model = load_model(tmp_path / "m.onnx")
    assert (model.columns, model.input_type, model.names) == (("a", "word"), "frame", None)
    check_close(model, frame, estimator.predict(frame), ("prediction",))
    with pytest.raises(ModelError, match="takes 'word' as object, but the block has missing values"):
        model.score(frame.assign(word=None))


def graph_of(
    path, shape, kind=TensorProto.FLOAT, output=("y", TensorProto.FLOAT, (None, 3)), op="Identity", **attributes
):
    nodes = [helper.make_node(op, ["x"], [output[0]], **attributes)]
    inputs = [helper.make_tensor_value_info("x", kind, shape)]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info(*output)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def test_graphs_that_tables_cannot_feed(tmp_path):
    with pytest.raises(ModelError, match="exactly 1 row; export it with a dynamic first axis"):
        load_model(graph_of(tmp_path / "m.onnx", [1, 3], output=("y", TensorProto.FLOAT, [1, 3])), columns=COLUMNS)
    deep, labels = ("y", TensorProto.FLOAT, ["n", 3, 8]), ("y", TensorProto.INT64, ["n", 3])
    with pytest.raises(ModelError, match=r"shape \['n', 3, 8\]; expected \(rows, columns\)"):
        load_model(graph_of(tmp_path / "m.onnx", ["n", 3, 8], output=deep), columns=COLUMNS)
    with pytest.raises(ModelError, match="no output that is clearly its scores: 'y' tensor\\(int64\\)"):
        load_model(
            graph_of(tmp_path / "m.onnx", ["n", 3], output=labels, op="Cast", to=TensorProto.INT64), columns=COLUMNS
        )


def test_whole_numbers_cannot_be_missing(tmp_path):
    path = graph_of(tmp_path / "m.onnx", ["n", 3], TensorProto.INT64, op="Cast", to=TensorProto.FLOAT)
    model = load_model(path, columns=COLUMNS)
    assert model.names == ("0", "1", "2")
    block = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(model.score(block)[1], block.T)
    block[0, 0] = np.nan
    with pytest.raises(ModelError, match="takes 'x' as int64, but the block has missing values"):
        model.score(block)


def test_sessions_use_one_thread(tmp_path, complete, target):
    X = complete.to_numpy(np.float32)
    model = load_model(export(tmp_path / "m.onnx", LinearRegression().fit(X, target), X), columns=COLUMNS)
    from excir_dask.models.onnx_models import _open

    settings = _open(model.payload, "m").get_session_options()
    assert (settings.intra_op_num_threads, settings.inter_op_num_threads) == (1, 1)


def test_frames_are_taken_as_blocks_too(tmp_path, complete, target):
    X = complete.to_numpy(np.float32)
    model = load_model(export(tmp_path / "m.onnx", LinearRegression().fit(X, target), X), columns=COLUMNS)
    np.testing.assert_array_equal(model.score(pd.DataFrame(X))[1], model.score(X)[1])


def test_names_with_spaces_are_found_though_the_export_changed_them(tmp_path, complete, target):
    named = complete.rename(columns={"a": "oil temp (C)", "b": "rpm/s"})
    steps = make_column_transformer(("passthrough", list(named.columns)))
    model = make_pipeline(steps, LinearRegression()).fit(named, target)
    (tmp_path / "model.onnx").write_bytes(
        to_onnx(model, named[:1].astype("float32"), target_opset=OPSET).SerializeToString()
    )
    found = explain(named, model=tmp_path / "model.onnx").features.set_index("feature")["cir"]
    expected = explain(named.assign(out=model.predict(named)), output="out").features.set_index("feature")["cir"]
    np.testing.assert_allclose(found[expected.index], expected, atol=1e-4)
