"""XGBoost's parameters: parsed, completed, and tried before anything is read."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from excir_dask.common.textfile import read_text_file
from excir_dask.errors import ModelError, SchemaError, UsageError, nearest
from excir_dask.training.labels import LabelValues, Target

_OPTIONS = {
    "n_estimators": "rounds",
    "num_boost_round": "rounds",
    "num_round": "rounds",
    "early_stopping_rounds": "early_stopping",
}
"""names in XGBoost's other interfaces -> our arguments"""

_TRIAL_ROWS = 8


def parse_params(items: Sequence[str]) -> dict[str, Any]:
    """Parameters from ``key=value`` texts, whose values are JSON where they can be, and ``@file`` of JSON or YAML.

    >>> parse_params(["max_depth=4", "eval_metric=auc", "monotone_constraints=[1,0]"])
    {'max_depth': 4, 'eval_metric': 'auc', 'monotone_constraints': [1, 0]}
    """
    params: dict[str, Any] = {}
    for item in items:
        if item.startswith("@"):
            params.update(_from_file(item[1:]))
            continue
        key, equals, value = item.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"'{item}' is not of the form key=value; write for instance max_depth=6 or @params.json")
        try:
            params[key.strip()] = json.loads(value)
        except ValueError:
            params[key.strip()] = value
    return params


def complete(params: Mapping[str, Any], target: Target, seed: int) -> dict[str, Any]:
    """Parameters with those that target and seed add."""
    full: dict[str, Any] = {"tree_method": "hist", "seed": seed, **params, "objective": target.objective}
    if target.objective.startswith("multi:"):
        full["num_class"] = len(target.values)
    if params.get("num_class", full.get("num_class")) != full.get("num_class"):
        raise UsageError(
            f"num_class is {params['num_class']}, but column '{target.label}' has {len(target.values)} classes; "
            "leave num_class out"
        )
    return full


def check(params: Mapping[str, Any]) -> None:
    """Refuse parameters that do not work with rows in partitions."""
    for name, option in _OPTIONS.items():
        if name in params:
            raise UsageError(f"'{name}' is not a booster parameter here; use '{option}'")
    for name, value in params.items():
        if not _finite(value):
            raise UsageError(f"{name} is {value}; give a finite number")
    objective = params.get("objective")
    if objective is not None and not isinstance(objective, str):
        raise UsageError(f"objective is a {type(objective).__name__}; name one of XGBoost's objectives")
    if objective is not None and objective.startswith("rank:"):
        raise UsageError(f"objective {objective} needs query groups, which a lake does not have")
    if objective == "survival:aft":
        raise UsageError("objective survival:aft needs two bounds per row, but the label is one column")
    if params.get("tree_method", "hist") not in ("hist", "auto"):
        raise UsageError(f"tree_method is '{params['tree_method']}'; only hist works with partitions")
    if params.get("booster", "gbtree") not in ("gbtree", "dart"):
        raise UsageError(f"booster is '{params['booster']}'; only trees (gbtree, dart) can be cut after the best round")


def _finite(value: Any) -> bool:
    """Whether a parameter is not a number beyond all others, or none at all: XGBoost trains with such, in vain."""
    try:
        return math.isfinite(value if isinstance(value, int | float) else float(str(value)))
    except OverflowError:
        return False
    except ValueError:  # a word
        return True


def check_names(features: Sequence[str]) -> None:
    for name in features:
        if any(mark in name for mark in "[]<"):
            raise SchemaError(
                f"column '{name}' cannot be a feature: XGBoost allows no '[', ']' or '<' in names; "
                "rename it, or choose features without it"
            )


def rehearse(params: Mapping[str, Any], features: Sequence[str], target: Target, found: LabelValues) -> None:
    """Train one round on a few made-up rows, so that a mistyped objective or metric fails before the lake is read."""
    import xgboost

    if not str(params.get("device", "cpu")).startswith("cpu"):
        return  # this machine may lack the device that the workers have
    labels = range(len(target.values)) if target.values else found.values
    y = np.resize(np.asarray(list(labels), dtype=np.float32), _TRIAL_ROWS)
    X = np.zeros((_TRIAL_ROWS, len(features)), dtype=np.float32)
    X[1::2] = 1.0
    try:
        data = xgboost.DMatrix(X, y, feature_names=list(features), nthread=1)
        xgboost.train({**params, "nthread": 1}, data, 1, evals=[(data, "train")], verbose_eval=False)
    except xgboost.core.XGBoostError as error:
        raise model_error(error) from error
    except (TypeError, ValueError) as error:
        raise ModelError(f"XGBoost cannot use these parameters: {error}") from error


def model_error(error: Exception) -> ModelError:
    """XGBoost's message without source position and stack."""
    text = re.sub(r"^\[\d+:\d+:\d+\] \S+:\d+: ", "", str(error).split("\nStack trace:")[0].strip())
    objective = re.search(r"Unknown objective function: `(.*)`", text)
    if objective:
        known = re.findall(r"Objective candidate: (\S+)", text)
        return ModelError(
            f"objective '{objective[1]}' is not one of XGBoost's{nearest(objective[1], known)} "
            f"({', '.join(sorted(known))})"
        )
    return ModelError(f"XGBoost cannot train: {' '.join(text.split())}")


def _from_file(name: str) -> dict[str, Any]:
    shape = "write a mapping such as {max_depth: 6}"
    found = read_text_file(name, "parameters", shape)
    if not isinstance(found, dict):
        raise UsageError(f"{name} is not a mapping of parameters; {shape}")
    return {str(key): value for key, value in found.items()}
