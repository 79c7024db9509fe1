"""Files that are not models are named with what they are, and damaged ones never crash the process."""

import copy
import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import xgboost

from excir_dask.errors import ModelError
from excir_dask.models.load import load_model


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
times = int(sys.argv[4])
content = open(path, "rb").read()
load_model(path, columns=columns)
for end in range(1, len(content) - 20, max(1, len(content) // times)):
    open(copy, "wb").write(content[:end])
    try:
        load_model(copy, columns=columns)
        raise SystemExit(f"{end} bytes of {len(content)} were taken for a model")
    except ModelError as error:
        assert copy in str(error)
for place in range(0, len(content), max(1, 2 * len(content) // times)):
    open(copy, "wb").write(content[:place] + bytes(8) + content[place + 8:])
    try:
        load_model(copy, columns=columns)
    except ModelError:
        pass
"""


@pytest.mark.parametrize("times", [30, pytest.param(150, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["m.ubj", "m.json", "m.txt", "m.onnx"])
def test_a_file_that_was_cut_off_is_an_error_and_not_a_crash(files, name, times):
    columns = "a,b,c" if name == "m.onnx" else ""
    arguments = [sys.executable, "-c", CUT, str(files / name), str(files / f"cut-{name}"), columns, str(times)]
    found = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
    assert found.returncode == 0, found.stderr[-2000:]


@pytest.fixture(scope="module")
def vectors() -> dict[str, Any]:
    """An XGBoost model whose leaves hold a vector, as a document."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    data = xgboost.DMatrix(X, np.stack([X[:, 0], X[:, 1], -X[:, 0]], 1), feature_names=["a", "b", "c"])
    booster = xgboost.train({"multi_strategy": "multi_output_tree", "tree_method": "hist", "max_depth": 2}, data, 3)
    return dict(json.loads(booster.save_raw("json")))


def trees_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    return document["learner"]["gradient_booster"]["model"]["trees"]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda trees: trees[1].pop("leaf_weights"), "tree 1 has other fields than tree 0: 'leaf_weights'"),
        (lambda trees: trees[0].pop("split_conditions"), "tree 0 lacks split_conditions"),
        (lambda trees: [tree.pop("sum_hessian") for tree in trees], "tree 0 lacks sum_hessian"),
        (lambda trees: trees.pop(), "do not all add to one of 3 outputs"),
        (lambda trees: trees[2].update(id=1), r"its trees do not have the numbers 0, 1, \.\.\."),
        (lambda trees: trees[1]["leaf_weights"].pop(), "leaves whose vectors it does not have"),
        (lambda trees: trees[1]["base_weights"].pop(), "weights and .* weights"),
        (lambda trees: trees[1]["tree_param"].update(size_leaf_vector="7"), "7 values per leaf, .* 3 targets"),
        (lambda trees: trees[1]["right_children"].__setitem__(-1, 99), "leaves whose vectors it does not have"),
    ],
)  # fmt: skip
def test_a_damaged_model_with_vectors_in_its_leaves_never_reaches_xgboost(tmp_path, vectors, damage, message):
    document = copy.deepcopy(vectors)
    path = tmp_path / "m.json"
    path.write_text(json.dumps(document))
    assert len(load_model(path).names or ()) == 3
    damage(trees_of(document))
    path.write_text(json.dumps(document))
    with pytest.raises(ModelError, match=message):
        load_model(path)


@pytest.mark.parametrize(("field", "missing"), [("num_cat", "cat_boundaries"), ("is_linear", "leaf_const")])
def test_a_lightgbm_model_that_lacks_what_it_declares_never_reaches_lightgbm(files, field, missing):
    path = files / "declares-m.txt"
    path.write_text((files / "m.txt").read_text().replace(f"{field}=0", f"{field}=1"))
    with pytest.raises(ModelError, match=f"it has no '{missing}'"):
        load_model(path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("is_linear=0", "isOlinear=0", "other fields than tree"),
        ("split_gain=", "split_gain9", "not of the form field=values"),
    ],
)
def test_a_damaged_field_of_a_lightgbm_model_never_reaches_lightgbm(files, old, new, message):
    path = files / "field-m.txt"
    path.write_text((files / "m.txt").read_text().replace(old, new, 1))
    with pytest.raises(ModelError, match=message):
        load_model(path)


@pytest.mark.parametrize("field", ["leaf_weight", "leaf_count", "internal_value", "internal_count", "split_gain"])
def test_a_damaged_list_in_a_lightgbm_model_never_reaches_lightgbm(files, field):
    text = (files / "m.txt").read_text()
    start = text.index(f"\n{field}=") + len(field) + 2
    values = text[start : text.index("\n", start)]
    shorter = " ".join(values.split()[:-1])
    path = files / "list-m.txt"
    padded = shorter + shorter[-1] * (len(values) - len(shorter))
    path.write_text(text[:start] + padded + text[start + len(values) :])
    with pytest.raises(ModelError, match=f"values of {field}, and needs"):
        load_model(path)


@pytest.mark.parametrize("name", [b"skl2onnx", b"output_probability"])
def test_an_onnx_model_with_a_name_that_is_not_utf8_is_damaged(files, name):
    content = (files / "m.onnx").read_bytes()
    assert name in content
    path = files / "name-m.onnx"
    path.write_bytes(content.replace(name, b"\xec" + name[1:]))
    with pytest.raises(ModelError, match="damaged, cut off or not an ONNX model"):
        load_model(path, columns=["a", "b", "c"])


@pytest.mark.parametrize(
    ("field", "values", "message"),
    [
        ("tree_info", [0, 0, 7], "do not all add to one of 3 outputs"),
        ("tree_info", [0, -1, 0], "do not all add to one of 3 outputs"),
        ("iteration_indptr", [0, 2, 1, 3], "its rounds do not hold its 3 trees"),
        ("iteration_indptr", [0, 1, 2, 9], "its rounds do not hold its 3 trees"),
    ],
)
def test_trees_of_outputs_and_rounds_that_are_not_there_never_reach_xgboost(tmp_path, vectors, field, values, message):
    document = copy.deepcopy(vectors)
    document["learner"]["gradient_booster"]["model"][field] = values
    path = tmp_path / "m.json"
    path.write_text(json.dumps(document))
    with pytest.raises(ModelError, match=message):
        load_model(path)
