"""A kind of model is one entry of the registry and one module."""

import sys
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from check_scores import check

from excir_dask import explain
from excir_dask.errors import ModelError
from excir_dask.models.kinds import KINDS, ModelKind, known_files
from excir_dask.models.load import load_model
from excir_dask.models.scoring import Model, digest


@pytest.fixture
def linear(monkeypatch):
    """Models that are a line of text: names and factors."""
    module = ModuleType("excir_dask.models.linear_models")

    def from_file(content, request):
        names = tuple(part.split("=")[0] for part in content.decode().split()[1:])
        return Model("linear", content, digest(content), names, (), ("sum",), "margin", "float64", (), request.source)

    def predictor(model):
        factors = np.array([float(part.split("=")[1]) for part in model.payload.decode().split()[1:]])
        return lambda matrix: (("sum",), (matrix @ factors)[None])

    module.from_file, module.predictor = from_file, predictor
    monkeypatch.setitem(sys.modules, module.__name__, module)
    kind = ModelKind(
        "linear_models", is_file=lambda path, content: content.startswith(b"linear "), file="a linear model (text)"
    )
    monkeypatch.setitem(KINDS, "linear", kind)


def test_a_kind_of_model_is_added_by_one_entry(linear, tmp_path):
    (tmp_path / "model.txt").write_text("linear a=2 b=-1")
    frame = pd.DataFrame(np.random.default_rng(0).standard_normal((300, 3)), columns=["a", "b", "c"])
    model = load_model(tmp_path / "model.txt")
    check(model, frame[["a", "b"]].to_numpy(), 2 * frame["a"] - frame["b"], ("sum",))
    found = explain(frame, model=tmp_path / "model.txt").features["cir"]
    written = frame.assign(sum=2 * frame["a"] - frame["b"])
    np.testing.assert_array_equal(found, explain(written, output="sum", features=["a", "b"]).features["cir"])


def test_messages_name_every_kind_of_file(linear, tmp_path):
    (tmp_path / "model.txt").write_text("nothing")
    assert known_files().endswith("or a linear model (text)")
    with pytest.raises(ModelError, match=r"an ONNX model \(.onnx\) or a linear model \(text\)"):
        load_model(tmp_path / "model.txt")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_recognises_files_or_objects_and_loads_what_it_recognises(kind):
    module = KINDS[kind].load()
    assert callable(module.predictor)
    assert (KINDS[kind].file is not None) == hasattr(module, "from_file")
    assert hasattr(module, "from_file") or hasattr(module, "from_object")
