"""XGBoost models: UBJ and JSON files, boosters and scikit-learn wrappers."""

from __future__ import annotations

import json
import re
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from excir_dask.errors import ModelError
from excir_dask.models.encode import encode
from excir_dask.models.naming import LoadRequest, class_names, numbered_names, resolve_columns
from excir_dask.models.scoring import Model, NamedOutputs, Predictor, digest
from excir_dask.models.xgboost_files import EXPECTED, check_xgboost_file

# objectives whose value is a probability; multi:softmax predicts labels, so its margins are transformed here
PROBABILITIES = ("binary:logistic", "reg:logistic", "multi:softprob", "multi:softmax")
# objectives whose margin is the prediction; others have a link function, such as the logarithm
IDENTITY = (
    "reg:squarederror", "reg:squaredlogerror", "reg:pseudohubererror", "reg:absoluteerror", "reg:quantileerror",
)  # fmt: skip


def from_file(content: bytes, request: LoadRequest) -> Model:
    """A model from the content of a file. If a scikit-learn wrapper saved it, it stops at its best iteration."""
    import xgboost

    check_xgboost_file(content, request.source)
    try:
        return _from_booster(_open(content, request.source), request)
    except xgboost.core.XGBoostError as error:  # a rule that only some of its functions check
        raise ModelError(f"{request.source} is damaged: {_first_line(error)}; copy or save it again") from error


def _from_booster(booster: Any, request: LoadRequest) -> Model:
    wrapped = booster.attr("scikit_learn")
    if wrapped is None:
        return _model(booster, request)
    # XGBClassifier accepts only the labels 0, 1, ...
    classes = numbered_names(max(2, _count_classes(booster))) if "classifier" in wrapped else None
    return _model(booster, request, classes, _best_iteration(booster))


def from_object(model: Any, request: LoadRequest) -> Model:
    """A model from a Booster, which uses all its trees, or from a wrapper, which stops at its best iteration."""
    import xgboost

    if isinstance(model, xgboost.Booster):
        return _model(model, request)
    if not isinstance(model, xgboost.XGBModel):
        raise ModelError(f"{request.source} is neither a Booster nor an XGBModel; pass one of those, or a saved file")
    try:
        booster = model.get_booster()
    except Exception as error:
        raise ModelError(f"{request.source} is not fitted; call fit first") from error
    missing = None if model.missing is None or np.isnan(model.missing) else float(model.missing)
    return _model(booster, request, getattr(model, "classes_", None), _best_iteration(booster), missing)


def predictor(model: Model) -> Predictor:
    """Open the payload: a function that scores a block."""
    options = dict(model.options)
    booster = _open(model.payload, model.source)
    names, rounds = model.names or (), (0, options["rounds"])
    missing = np.nan if options["missing"] is None else options["missing"]
    apply_softmax = model.predict_type == "probability" and options["objective"] == "multi:softmax"
    predict_type = "value" if model.predict_type == "probability" and not apply_softmax else "margin"
    lock = threading.Lock()

    def score(data: Any) -> NamedOutputs:
        matrix = encode(model, data, "float32") if model.input_type == "frame" else data
        if options["booster"] == "gblinear":  # has no inplace_predict, and is not thread-safe
            with lock:
                values = _predict_linear(booster, matrix, predict_type, missing)
        else:
            values = booster.inplace_predict(
                matrix, iteration_range=rounds, predict_type=predict_type, missing=missing,
                validate_features=False, strict_shape=True,
            )  # fmt: skip
        return names, np.ascontiguousarray((_softmax(values) if apply_softmax else values).T)

    return score


def _model(
    booster: Any, request: LoadRequest, classes: Any = None, best: int | None = None, missing: float | None = None
) -> Model:
    payload = bytes(booster.save_raw("ubj"))
    booster = _open(payload, request.source)  # a copy, so that the caller's keeps its number of threads
    config = json.loads(booster.save_config())["learner"]
    objective, kind = config["objective"]["name"], config["gradient_booster"]["name"]
    if request.predict_type == "probability" and objective not in PROBABILITIES:
        raise ModelError(
            f"{request.source} has the objective {objective}, which has no probabilities; use predict_type='margin'"
        )
    known = tuple(booster.feature_names) if booster.feature_names else None
    columns = resolve_columns(known, booster.num_features(), request)
    categories = _categories(booster, columns)
    outputs = _count_outputs(booster, len(columns), kind, request.source)
    return Model(
        kind="xgboost",
        payload=payload,
        sha256=request.sha256 or digest(payload),
        columns=columns,
        categories=categories,
        names=_names(booster, objective, request, classes, outputs),
        predict_type=request.predict_type,
        input_type="frame" if any(values is not None for _, values in categories) else "float32",
        details=(("objective", objective), ("booster", kind), *_size(booster, config, kind, best)),
        source=request.source,
        options=(
            ("rounds", 0 if best is None or kind == "gblinear" else best + 1),  # 0: all of them
            ("missing", missing),
            ("objective", objective),
            ("booster", kind),
        ),
    )


def _open(content: bytes, source: str) -> Any:
    import xgboost

    try:
        booster = xgboost.Booster({"nthread": 1, "verbosity": 0})
        booster.load_model(bytearray(content))
        booster.set_param({"nthread": 1, "device": "cpu"})
    except Exception as error:  # XGBoostError, or UnicodeDecodeError from its message
        raise ModelError(f"{source} cannot be loaded: {_first_line(error)}; expected {EXPECTED}") from error
    return booster


def _predict_linear(booster: Any, matrix: NDArray[Any], predict_type: str, missing: float) -> NDArray[Any]:
    import xgboost

    data = xgboost.DMatrix(matrix, missing=missing, nthread=1)
    found = booster.predict(data, output_margin=predict_type == "margin", validate_features=False, strict_shape=True)
    return np.asarray(found)


def _count_outputs(booster: Any, width: int, kind: str, source: str) -> int:
    """Number of outputs, from a row of missing values; this also checks that the model can predict."""
    row = np.full((1, width), np.nan, np.float32)
    try:
        if kind == "gblinear":
            return int(_predict_linear(booster, row, "margin", np.nan).shape[1])
        found = booster.inplace_predict(row, predict_type="margin", validate_features=False, strict_shape=True)
    except Exception as error:
        raise ModelError(f"{source} loads but cannot predict: {_first_line(error)}") from error
    return int(found.size)


def _names(booster: Any, objective: str, request: LoadRequest, classes: Any, outputs: int) -> tuple[str, ...]:
    written = booster.attr("classes")
    if written is not None:
        classes = _json_list(written) or classes
    is_classifier = objective.startswith("multi:") or (outputs == 1 and objective.startswith("binary:"))
    if is_classifier and classes is not None:  # several outputs of another objective are targets, not classes
        named = class_names(classes, outputs)
        if named is None:
            raise ModelError(
                f"{request.source} has {outputs} outputs, but {len(classes)} classes: {', '.join(map(str, classes))}; "
                "name each class once"
            )
        return named
    if outputs > 1:
        return numbered_names(outputs)
    if objective.startswith("rank:"):
        return ("score",)
    return ("prediction",) if objective in IDENTITY else (request.predict_type,)


def _categories(booster: Any, columns: tuple[str, ...]) -> tuple[tuple[str, tuple[Any, ...] | None], ...]:
    types = booster.feature_types or []
    indices = [index for index, kind in enumerate(types) if kind == "c"]
    if not indices:
        return ()
    values: list[tuple[Any, ...] | None] = [None] * len(columns)
    if hasattr(booster, "get_categories"):  # since 3.1; models of earlier versions know only codes
        found = booster.get_categories(export_to_arrow=True)
        if not found.empty():
            values = [None if array is None else _values(array) for _, array in found.to_arrow()]
    return tuple((columns[index], values[index]) for index in indices)


def _values(array: Any) -> tuple[Any, ...]:
    """Categories of a column. XGBoost 3 counts characters instead of bytes, which cuts off text that is not ASCII."""
    try:
        values = tuple(array.to_pylist())
    except UnicodeDecodeError:
        values = ("\ufffd",)
    if any(isinstance(value, str) and not value.isascii() for value in values):
        raise ModelError(
            "the model has categories with characters beyond ASCII, which XGBoost stores incompletely; train it with "
            "ASCII names, or with numeric codes"
        )
    return values


def _size(booster: Any, config: dict[str, Any], kind: str, best: int | None) -> tuple[tuple[str, Any], ...]:
    if kind == "gblinear":
        return ()
    part = config["gradient_booster"]
    trees = int(part.get("gbtree", part)["gbtree_model_param"]["num_trees"])
    rounds = booster.num_boosted_rounds()
    used = rounds if best is None else min(best + 1, rounds)
    return (("rounds", used), ("trees", trees * used // rounds if rounds else 0), ("trees_in_model", trees))


def _best_iteration(booster: Any) -> int | None:
    best = booster.attr("best_iteration")
    return None if best is None else int(best)


def _count_classes(booster: Any) -> int:
    return int(json.loads(booster.save_config())["learner"]["learner_model_param"]["num_class"])


def _json_list(text: str) -> list[Any] | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None  # an attribute of another program
    return found if isinstance(found, list) else None


def _softmax(margins: NDArray[Any]) -> NDArray[Any]:
    powers: NDArray[Any] = np.exp(margins - margins.max(axis=1, keepdims=True))
    powers /= powers.sum(axis=1, keepdims=True)
    return powers


def _first_line(error: Exception) -> str:
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return re.sub(r"^\[[^]]*\] \S+:\d+: ", "", line)
