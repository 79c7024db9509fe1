"""ONNX models, scored with onnxruntime: exports of scikit-learn, CatBoost, PyTorch and others."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np

from excir_dask.common.wording import count
from excir_dask.errors import ModelError
from excir_dask.models.naming import LoadRequest, class_names, numbered_names, resolve_columns
from excir_dask.models.onnx_graph import Graph, read_graph, with_output
from excir_dask.models.onnx_weights import Weights
from excir_dask.models.scoring import Model, NamedOutputs, Predictor, digest, outputs_first

_DTYPES = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    "tensor(int64)": "int64",
    "tensor(int32)": "int32",
    "tensor(bool)": "bool",
    "tensor(string)": "object",
}
_FLOATS = ("tensor(float)", "tensor(double)")
_SCORES = ("probabilities", "output_probability", "probability", "scores")


def from_file(content: bytes, request: LoadRequest) -> Model:
    """A model from the content of a file: it gives what was exported, for most classifiers probabilities.

    Labels are never used. A classifier of two classes has one output: that of the second, positive class.
    """
    weights = Weights(request.folder, request.source)
    file_digest = digest(content)
    try:
        content = weights.embed(content)
        graph = read_graph(content)
    except (ValueError, KeyError, RecursionError) as error:
        raise ModelError(f"{request.source} is damaged, cut off or not an ONNX model: {error}") from error
    for _, tensor in graph.zipmaps:  # its input, because a dict per row takes 100 times the memory
        content = with_output(content, tensor)
    session = _open(content, request.source)
    outputs = _choose_outputs(session, graph, request.source)
    named, dtypes, width = _inputs(session, request.source)
    columns = resolve_columns(named, width, request)
    model = Model(
        kind="onnx",
        payload=content,
        sha256=weights.digest(file_digest),
        columns=columns,
        categories=(),
        names=None,
        predict_type="as exported",
        input_type=_input_type(dtypes),
        details=(
            ("outputs", list(outputs)),
            ("producer", session.get_modelmeta().producer_name),
            *([("weight_files", weights.digests())] if weights.files else []),
        ),
        source=request.source,
        options=(("outputs", outputs), ("labels", graph.labels), ("dtypes", dtypes)),
    )
    return replace(model, names=_names(model))


def predictor(model: Model) -> Predictor:
    """Open the payload: a function that scores a block."""
    import onnxruntime

    session = _open(model.payload, model.source)
    options = dict(model.options)
    outputs, labels, dtypes = options["outputs"], options["labels"], options["dtypes"]
    inputs = [each.name for each in session.get_inputs()]
    is_classifier = bool(labels) or any(each.type not in _FLOATS for each in session.get_outputs())
    run = onnxruntime.RunOptions()
    run.only_execute_path_to_fetches = True  # skip labels and ZipMap

    def score(data: Any) -> NamedOutputs:
        table = np.asarray(data)
        blocks = [table] if len(inputs) == 1 else np.split(table, len(inputs), axis=1)
        fed = {
            name: _cast(block, dtype, name, model.source)
            for name, block, dtype in zip(inputs, blocks, dtypes, strict=True)
        }
        try:
            found = session.run(list(outputs), fed, run)
        except Exception as error:
            raise ModelError(f"{model.source} failed on {len(table)} rows: {error}") from error
        values = np.concatenate([outputs_first(part, len(table), model.source) for part in found])
        names = outputs if len(outputs) == len(values) else numbered_names(len(values))
        if is_classifier and len(values) == 2:
            values, names = np.ascontiguousarray(values[1:]), names[1:] if len(outputs) == 2 else outputs
        if names == ("variable",):  # the name that skl2onnx gives to the output of a regressor
            names = ("prediction",)
        return class_names(labels, len(values)) or names, values

    return score


def _open(content: bytes, source: str) -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise ModelError(
            f"{source} is an ONNX model, but onnxruntime is not installed; pip install 'excir-dask[onnx]'"
        ) from error
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    settings.log_severity_level = 4  # errors are raised; warnings would only clutter the logs of workers
    try:
        session = onnxruntime.InferenceSession(content, settings, providers=["CPUExecutionProvider"])
        # names that are not UTF-8 raise an error when they are asked for
        _ = (
            session.get_modelmeta().producer_name,
            [str(each) for each in (*session.get_inputs(), *session.get_outputs())],
        )
        return session
    except Exception as error:
        raise ModelError(
            f"{source} is damaged, cut off or not an ONNX model, or its opset is too new for onnxruntime "
            f"{onnxruntime.__version__}: {error}"
        ) from error


def _inputs(session: Any, source: str) -> tuple[tuple[str, ...] | None, tuple[str, ...], int | None]:
    """Names of the columns, if the model knows them, the type of each input, and the number of columns, if fixed."""
    inputs = session.get_inputs()
    for each in inputs:
        if each.type not in _DTYPES:
            raise ModelError(f"{source} has the input '{each.name}' of type {each.type}; expected numbers or text")
        if not each.shape or len(each.shape) > 2 or (len(each.shape) == 1 and len(inputs) == 1):
            raise ModelError(f"{source} has the input '{each.name}' of shape {each.shape}; expected (rows, columns)")
        if isinstance(each.shape[0], int):
            raise ModelError(
                f"{source} was exported for exactly {count(each.shape[0], 'row')}; export it with a dynamic first axis"
            )
    dtypes = tuple(_DTYPES[each.type] for each in inputs)
    if len(inputs) > 1:
        for each in inputs:
            if list(each.shape[1:]) != [1]:
                raise ModelError(
                    f"{source} has {len(inputs)} inputs, of which '{each.name}' has the shape {each.shape}; "
                    "expected one input for all columns, or one of shape (rows, 1) for each"
                )
        return tuple(each.name for each in inputs), dtypes, len(inputs)
    width = inputs[0].shape[1]
    written = session.get_modelmeta().custom_metadata_map.get("feature_names")
    try:
        named = None if written is None else json.loads(written)
    except ValueError:
        named = None  # metadata of another program
    names = tuple(str(name) for name in named) if isinstance(named, list) else None
    if names is not None and isinstance(width, int) and len(names) != width:
        raise ModelError(f"{source} takes {width} columns, but its metadata feature_names has {len(names)}")
    return names, dtypes, width if isinstance(width, int) else None


def _choose_outputs(session: Any, graph: Graph, source: str) -> tuple[str, ...]:
    """Outputs with scores, never labels: one tensor, or one per class."""
    tensors = [tensor for _, tensor in graph.zipmaps]
    if len(tensors) == 1:
        return (tensors[0],)
    floats = [each for each in session.get_outputs() if each.type in _FLOATS and each.name not in tensors]
    if len(floats) > 1:
        floats = [each for each in floats if each.name in _SCORES] or floats
    if len(floats) == 1:
        return (floats[0].name,)
    if floats and all(len(each.shape) == 1 or list(each.shape[1:]) == [1] for each in floats):
        return tuple(each.name for each in floats)
    shown = ", ".join(f"'{each.name}' {each.type} {each.shape}" for each in session.get_outputs())
    raise ModelError(f"{source} has no output that is clearly its scores: {shown}; export a single numeric tensor")


def _input_type(dtypes: tuple[str, ...]) -> str:
    if "object" in dtypes:
        return "frame"
    return "float32" if set(dtypes) <= {"float32", "bool"} else "float64"


def _cast(block: Any, dtype: str, name: str, source: str) -> Any:
    """A block in the type of its input; only floats can be missing."""
    if dtype in ("float32", "float64"):
        return np.ascontiguousarray(block, dtype)
    import pandas as pd

    if pd.isna(block).any():
        raise ModelError(f"{source} takes '{name}' as {dtype}, but the block has missing values; leave out such rows")
    return np.ascontiguousarray(block.astype(str).astype(object) if dtype == "object" else block.astype(dtype))


def _names(model: Model) -> tuple[str, ...] | None:
    """Names from a row of zeros, which also checks that the model can predict; None if it takes text."""
    if model.input_type == "frame":
        return None
    return model.score(np.zeros((1, len(model.columns or ()))))[0]
