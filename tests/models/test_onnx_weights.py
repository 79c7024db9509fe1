"""Weights that an ONNX model keeps in other files come from beside it, travel with it, and count for its digest."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import oracle
import pandas as pd
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper, numpy_helper

from excir_dask import Explanation, explain
from excir_dask.cli import excir
from excir_dask.errors import ModelError
from excir_dask.models import onnx_weights
from excir_dask.models.load import load_model

COLUMNS = ["a", "b", "c"]
X = np.random.default_rng(0).standard_normal((50, 3)).astype(np.float32)
SLOPES = np.array([3.0, -2.0, 1.0], np.float32)


def network(slopes: np.ndarray) -> onnx.ModelProto:
    """x times slopes in a branch, plus a constant: weights in initializers, in attributes and in graphs of nodes."""
    rows = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, 1])
    branches = {
        name: helper.make_graph(
            [helper.make_node("MatMul", ["x", name], ["y"])],
            name, [], [rows], [numpy_helper.from_array(sign * slopes.reshape(3, 1), name)],
        )
        for name, sign in (("then_branch", 1), ("else_branch", -1))
    }  # fmt: skip
    nodes = [
        helper.make_node("Constant", [], ["shift"], value=numpy_helper.from_array(np.full((1, 1), 7, np.float32), "k")),
        helper.make_node("If", ["yes"], ["product"], **branches),
        helper.make_node("Add", ["product", "shift"], ["score"]),
    ]
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 3])],
        [helper.make_tensor_value_info("score", TensorProto.FLOAT, [None, 1])],
        [numpy_helper.from_array(np.array(True), "yes")],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def save(path: Path, slopes: np.ndarray = SLOPES, location: str = "weights.bin", **options: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    (path.parent / location).unlink(missing_ok=True)  # onnx would append to it
    options = {"all_tensors_to_one_file": True, "size_threshold": 0, "convert_attribute": True, **options}
    onnx.save_model(network(slopes), path, save_as_external_data=True, location=location, **options)
    return path


def located(path: Path, location: str, **told: str) -> Path:
    """The model with another place for every weight, as no exporter would write it."""
    model = onnx.load(path, load_external_data=False)
    for tensor in onnx.external_data_helper._get_all_tensors(model):
        del tensor.external_data[:]
        for key, value in {"location": location, **told}.items():
            tensor.external_data.add(key=key, value=value)
    path.write_bytes(model.SerializeToString())
    return path


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which this process runs: not the model's."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("one_file", [True, False])
def test_scores_are_those_of_onnxruntime_in_whichever_folder_it_runs(tmp_path, elsewhere, one_file):
    path = save(tmp_path / "home" / "m.onnx", all_tensors_to_one_file=one_file)
    complete = network(SLOPES).SerializeToString()
    expected = onnxruntime.InferenceSession(complete).run(["score"], {"x": X})[0]
    model = load_model(path, columns=COLUMNS)
    for file in path.parent.iterdir():
        file.unlink()  # workers on other machines have none of them
    for each in (model, pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(each.score(X)[1], expected.T)
    np.testing.assert_allclose(expected[:, 0], X @ SLOPES + 7, rtol=1e-5)
    assert len(dict(model.details)["weight_files"]) == (1 if one_file else 4)


def test_files_of_the_same_name_in_the_working_folder_are_not_taken(tmp_path, elsewhere):
    path = save(tmp_path / "home" / "m.onnx")
    save(elsewhere / "m.onnx", -SLOPES)
    np.testing.assert_allclose(load_model(path, columns=COLUMNS).score(X)[1][0], X @ SLOPES + 7, rtol=1e-5)
    (path.parent / "weights.bin").unlink()
    with pytest.raises(ModelError, match=r"'weights.bin', but .*home has no such file; copy it next to the model"):
        load_model(path, columns=COLUMNS)


def test_other_weights_are_another_model_and_another_run(tmp_path, monkeypatch):
    pd.DataFrame(X, columns=COLUMNS).to_parquet(tmp_path / "lake.parquet")
    path = save(tmp_path / "m.onnx")
    file = path.read_bytes()
    options = {"model": path, "model_columns": COLUMNS, "out": tmp_path / "out"}
    ids = [oracle.run_id(tmp_path / "lake.parquet", model=path, model_columns=COLUMNS)]
    first = explain(tmp_path / "lake.parquet", **options)
    save(path, np.ascontiguousarray(SLOPES[::-1]))
    assert path.read_bytes() == file
    ids.append(oracle.run_id(tmp_path / "lake.parquet", model=path, model_columns=COLUMNS))
    assert ids[0] != ids[1]
    second = explain(tmp_path / "lake.parquet", **options, overwrite=True)
    assert first.top(1)["feature"][0] == "a"
    assert second.top(1)["feature"][0] == "c"
    assert Explanation.load(tmp_path / "out").facts == second.facts
    save(path)
    assert oracle.run_id(tmp_path / "lake.parquet", model=path, model_columns=COLUMNS) == ids[0]


def test_a_model_without_other_files_keeps_the_digest_of_its_file(tmp_path):
    model = network(SLOPES)
    helper.set_model_props(model, {"location": "a word that is no key of a tensor"})
    onnx.save_model(model, tmp_path / "m.onnx")
    found = load_model(tmp_path / "m.onnx", columns=COLUMNS)
    assert found.sha256 == onnx_weights.digest((tmp_path / "m.onnx").read_bytes())
    assert found.payload == (tmp_path / "m.onnx").read_bytes()
    assert "weight_files" not in dict(found.details)


@pytest.mark.parametrize(
    "location",
    ["../weights.bin", "below/../../weights.bin", "{root}/weights.bin", "..\\weights.bin", "C:\\weights.bin", "", ".",
     "*/_ORT_MEM_ADDR_/*", "weights\0.bin", "x" * 5000, "below"],
)  # fmt: skip
def test_weights_outside_the_models_folder_are_refused(tmp_path, elsewhere, location):
    path = save(tmp_path / "home" / "m.onnx")
    (tmp_path / "home" / "below").mkdir()
    for folder in (tmp_path, elsewhere):
        (folder / "weights.bin").write_bytes((path.parent / "weights.bin").read_bytes())
    located(path, location.format(root=tmp_path), offset="0", length="4")
    with pytest.raises(ModelError, match="keeps weights in"):
        load_model(path, columns=COLUMNS)


@pytest.mark.parametrize("link", ["weights.bin", "below"])
def test_links_that_lead_out_of_the_models_folder_are_refused_and_others_are_followed(tmp_path, link):
    (tmp_path / "home" / "below").mkdir(parents=True)
    location = "weights.bin" if link == "weights.bin" else "below/weights.bin"
    path = save(tmp_path / "home" / "m.onnx", location=location)
    (path.parent / link).rename(path.parent / "moved")
    (path.parent / link).symlink_to("moved")
    np.testing.assert_allclose(load_model(path, columns=COLUMNS).score(X)[1][0], X @ SLOPES + 7, rtol=1e-5)
    (path.parent / "moved").rename(tmp_path / "moved")
    (path.parent / link).unlink()
    (path.parent / link).symlink_to(tmp_path / "moved")
    with pytest.raises(ModelError, match="not a file in its own folder; save the model and its weights in one folder"):
        load_model(path, columns=COLUMNS)


@pytest.mark.parametrize(
    "told", [{"offset": "-1"}, {"offset": "1000000"}, {"length": "1000000"}, {"length": "many"}, {"length": "2"}]
)
def test_weights_that_do_not_fit_the_file_are_refused(tmp_path, told):
    path = located(save(tmp_path / "m.onnx"), "weights.bin", **told)
    with pytest.raises(ModelError, match=r"m\.onnx"):
        load_model(path, columns=COLUMNS)


def test_a_pipe_is_not_waited_for(tmp_path):
    path = save(tmp_path / "m.onnx")
    (tmp_path / "weights.bin").unlink()
    os.mkfifo(tmp_path / "weights.bin")
    with pytest.raises(ModelError, match="which is not a file"):
        load_model(path, columns=COLUMNS)


def test_many_tensors_of_one_place_do_not_fill_the_memory(tmp_path, monkeypatch):
    path = located(save(tmp_path / "m.onnx"), "weights.bin")
    monkeypatch.setattr(onnx_weights, "MAX_BYTES", path.stat().st_size + 50)
    with pytest.raises(ModelError, match="bytes with its weights; the limit is"):
        load_model(path, columns=COLUMNS)


def test_the_command_ends_with_3_and_one_line(tmp_path):
    pd.DataFrame(X, columns=COLUMNS).to_parquet(tmp_path / "lake.parquet")
    path = located(save(tmp_path / "home" / "m.onnx"), "../weights.bin")
    done = CliRunner().invoke(
        excir, ["explain", str(tmp_path / "lake.parquet"), "--model", str(path), "--model-columns", "a,b,c"]
    )
    assert done.exit_code == 3
    assert "keeps weights in '../weights.bin'" in done.output
    assert "Traceback" not in done.output
