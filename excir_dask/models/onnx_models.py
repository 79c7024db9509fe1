"""ONNX models, scored with onnxruntime: what scikit-learn, CatBoost, PyTorch and others export."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from excir_dask.errors import ModelError
from excir_dask.models.naming import Asked, class_names, numbered, settle_columns
from excir_dask.models.onnx_graph import Graph, read_graph, with_output
from excir_dask.models.onnx_weights import Weights
from excir_dask.models.scoring import Model, Predictor, Scored, digest, outputs_first

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


def from_file(content: bytes, asked: Asked, folder: Path) -> Model:
    """A model from the bytes of a file: it gives what was exported, probabilities of most classifiers.

    Labels are never used. A classifier of two classes has one output: the second, positive class. Weights in other
    files are taken from ``folder``.
    """
    weights = Weights(folder, asked.source)
    own = digest(content)
    try:
        content = weights.embed(content)
        graph = read_graph(content)
    except (ValueError, KeyError, RecursionError) as error:
        raise ModelError(f"{asked.source} is damaged, cut off or no ONNX model: {error}") from error
    for _, tensor in graph.zipmaps:  # the tensor before it: a dict for each row would cost 100 times the memory
        content = with_output(content, tensor)
    session = _open(content, asked.source)
    outputs = _choose_outputs(session, graph, asked.source)
    named, dtypes, count = _inputs(session, asked.source)
    columns = settle_columns(named, count, asked)
    model = Model(
        kind="onnx",
        payload=content,
        sha256=weights.digest(own),
        columns=columns,
        categories=(),
        names=None,
        predict_type="as exported",
        wants=_wants(dtypes),
        details=(
            ("outputs", list(outputs)),
            ("producer", session.get_modelmeta().producer_name),
            *([("weight_files", weights.digests())] if weights.files else []),
        ),
        source=asked.source,
        options=(("outputs", outputs), ("labels", graph.labels), ("dtypes", dtypes)),
    )
    return replace(model, names=_names(model))


def predictor(model: Model) -> Predictor:
    """Open the payload: a function from a block to the outputs."""
    import onnxruntime

    session = _open(model.payload, model.source)
    options = dict(model.options)
    outputs, labels, dtypes = options["outputs"], options["labels"], options["dtypes"]
    inputs = [place.name for place in session.get_inputs()]
    classifies = bool(labels) or any(place.type not in _FLOATS for place in session.get_outputs())
    run = onnxruntime.RunOptions()
    run.only_execute_path_to_fetches = True  # neither labels nor a ZipMap

    def score(data: Any) -> Scored:
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
        own = outputs if len(outputs) == len(values) else numbered(len(values))
        if classifies and len(values) == 2:
            values, own = np.ascontiguousarray(values[1:]), own[1:] if len(outputs) == 2 else outputs
        if own == ("variable",):  # what skl2onnx calls the output of a regressor
            own = ("prediction",)
        return class_names(labels, len(values)) or own, values

    return score


def _open(content: bytes, source: str) -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise ModelError(
            f"{source} is an ONNX model, and onnxruntime is not installed: pip install 'excir-dask[onnx]'"
        ) from error
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    settings.log_severity_level = 4  # what goes wrong is raised; the rest is noise on a worker's standard error
    try:
        return onnxruntime.InferenceSession(content, settings, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise ModelError(
            f"{source} is damaged, cut off or no ONNX model, or of a later opset than onnxruntime "
            f"{onnxruntime.__version__} knows: {error}"
        ) from error


def _inputs(session: Any, source: str) -> tuple[tuple[str, ...] | None, tuple[str, ...], int | None]:
    """Names of the columns if the model knows them, the type of each input, and the number of columns if known."""
    places = session.get_inputs()
    for place in places:
        if place.type not in _DTYPES:
            raise ModelError(
                f"{source} has the input '{place.name}' of type {place.type}; tables give numbers and text"
            )
        if not place.shape or len(place.shape) > 2 or (len(place.shape) == 1 and len(places) == 1):
            raise ModelError(f"{source} has the input '{place.name}' of shape {place.shape}; expected (rows, columns)")
        if isinstance(place.shape[0], int):
            raise ModelError(
                f"{source} was exported for blocks of exactly {place.shape[0]} rows; export it with a free first axis"
            )
    dtypes = tuple(_DTYPES[place.type] for place in places)
    if len(places) > 1:
        for place in places:
            if list(place.shape[1:]) != [1]:
                raise ModelError(
                    f"{source} has {len(places)} inputs, of which '{place.name}' has the shape {place.shape}; "
                    "expected one input for all columns, or one of shape (rows, 1) for each"
                )
        return tuple(place.name for place in places), dtypes, len(places)
    width = places[0].shape[1]
    written = session.get_modelmeta().custom_metadata_map.get("feature_names")
    try:
        named = None if written is None else json.loads(written)
    except ValueError:
        named = None  # somebody else's metadata of that name
    names = tuple(str(name) for name in named) if isinstance(named, list) else None
    if names is not None and isinstance(width, int) and len(names) != width:
        raise ModelError(f"{source} takes {width} columns, but its metadata feature_names has {len(names)}")
    return names, dtypes, width if isinstance(width, int) else None


def _choose_outputs(session: Any, graph: Graph, source: str) -> tuple[str, ...]:
    """Outputs with scores, never labels: one tensor, or one for each class."""
    tensors = [tensor for _, tensor in graph.zipmaps]
    if len(tensors) == 1:
        return (tensors[0],)
    places = [place for place in session.get_outputs() if place.type in _FLOATS and place.name not in tensors]
    if len(places) > 1:
        places = [place for place in places if place.name in _SCORES] or places
    if len(places) == 1:
        return (places[0].name,)
    if places and all(len(place.shape) == 1 or list(place.shape[1:]) == [1] for place in places):
        return tuple(place.name for place in places)
    shown = ", ".join(f"'{place.name}' {place.type} {place.shape}" for place in session.get_outputs())
    raise ModelError(f"{source} has no output that is clearly its scores: {shown}; export a single tensor of numbers")


def _wants(dtypes: tuple[str, ...]) -> str:
    if "object" in dtypes:
        return "frame"
    return "float32" if set(dtypes) <= {"float32", "bool"} else "float64"


def _cast(block: Any, dtype: str, name: str, source: str) -> Any:
    """A block as the type of its input; only numbers with a fraction can be missing."""
    if dtype in ("float32", "float64"):
        return np.ascontiguousarray(block, dtype)
    import pandas as pd

    if pd.isna(block).any():
        raise ModelError(f"{source} takes '{name}' as {dtype}, but there are missing values; leave such rows out")
    return np.ascontiguousarray(block.astype(str).astype(object) if dtype == "object" else block.astype(dtype))


def _names(model: Model) -> tuple[str, ...] | None:
    """Names from a row of zeros, which also shows that the model can predict; text is not made up."""
    if model.wants == "frame":
        return None
    return model.score(np.zeros((1, len(model.columns or ()))))[0]
