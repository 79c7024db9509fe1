"""Check LightGBM files before LightGBM reads them: of 300 truncations of a model, 269 crashed the process."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from excir_dask.common.wording import count
from excir_dask.errors import ModelError

_CATEGORIES = ("cat_boundaries", "cat_threshold")
_LINEAR = ("leaf_const", "num_features", "leaf_features", "leaf_coeff")
"""fields of trees with categories, and of trees with a linear model per leaf"""
_PER_LEAF = ("leaf_weight", "leaf_count")
_PER_NODE = ("internal_value", "internal_weight", "internal_count", "split_gain")
"""fields with a value per leaf and per inner node, beside those that decide the prediction"""

EXPECTED = 'a LightGBM model, saved with booster.save_model("model.txt")'


def read_header(content: bytes, source: str) -> dict[str, str]:
    """Keys and values of the header, after a check that the trees are complete and valid."""
    try:
        text = content.decode("utf-8")
        if "\0" in text or "\r" in text:
            raise ValueError("it has characters that LightGBM does not write, as after a copy in text mode")
        header = _key_values(text.split("\n\n", 1)[0])
        start, end = text.find("\nTree=0\n"), text.find("\nend of trees")
        if not 0 <= start < end:
            raise ValueError("it has no complete list of trees")
        trees = [_key_values(part) for part in text[start:end].split("\nTree=")[1:]]
        sizes = [int(size) for size in header["tree_sizes"].split()]
        # sizes are in bytes; unlike column names, trees have only characters of one byte
        if len(trees) != len(sizes) or sum(sizes) != end - start:
            raise ValueError(f"it has {len(trees)} of {len(sizes)} trees, in {end - start} of {sum(sizes)} bytes")
        if len(trees) % int(header["num_tree_per_iteration"]) or int(header["num_class"]) < 1:
            raise ValueError(f"its {len(trees)} trees do not make complete rounds")
        _check_parameters(text[end:], any(int(tree["num_cat"]) for tree in trees))
        features = int(header["max_feature_idx"]) + 1
        for key in ("feature_names", "feature_infos"):
            if len(header[key].split()) != features:
                raise ValueError(f"it has {features} features and {len(header[key].split())} {key}")
        for number, tree in enumerate(trees):
            _check_tree(tree, features, number)
        _check_fields(text[start:end].split("\nTree=")[1:], trees)
    except (ValueError, KeyError) as error:
        what = f"it has no '{error.args[0]}'" if isinstance(error, KeyError) else error
        raise ModelError(
            f"{source} is damaged or cut off: its {len(content)} bytes start as a LightGBM model, but {what}; "
            f"expected {EXPECTED}; copy or save it again"
        ) from error
    return header


def categorical_columns(text: str, columns: tuple[str, ...], source: str) -> dict[str, tuple[Any, ...] | None]:
    """Categorical columns and their values; None if only codes are known.

    The text has the values of all pandas categoricals in column order, but names the columns only of those that
    LightGBM treats as categories.
    """
    match = re.search(r"^\[categorical_feature: ([0-9,]*)\]$", text, re.MULTILINE)
    indices = sorted({int(index) for index in match[1].split(",") if index}) if match else []
    tail = re.search(r"^pandas_categorical:(.*)$", text, re.MULTILINE)
    try:
        values = json.loads(tail[1]) if tail else None
    except ValueError as error:
        raise ModelError(
            f"{source} is cut off within the values of its categories: {error}; copy or save it again"
        ) from error
    if not values:
        return {columns[index]: None for index in indices}
    if len(values) != len(indices):
        raise ModelError(
            f"{source} was trained on {count(len(values), 'pandas categorical')} but treats "
            f"{count(len(indices), 'column')} as categories (ordered ones are numbers to it), and does not say which; "
            "pass booster.predict as a function"
        )
    return {columns[index]: tuple(known) for index, known in zip(indices, values, strict=True)}


def _key_values(part: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in part.split("\n") if "=" in line)


def _check_fields(parts: list[str], trees: list[dict[str, str]]) -> None:
    """Check that trees of one kind have the same fields: LightGBM crashes where one is missing."""
    first: dict[tuple[bool, ...], tuple[int, dict[str, str]]] = {}
    for number, (part, tree) in enumerate(zip(parts, trees, strict=True)):
        if any("=" not in line for line in part.strip().split("\n")[1:]):
            raise ValueError(f"tree {number} has a line that is not of the form field=values")
        kind = int(tree["num_leaves"]) > 1, int(tree["num_cat"]) > 0, int(tree.get("is_linear", 0)) > 0
        other, fields = first.setdefault(kind, (number, tree))
        if tree.keys() != fields.keys():
            differ = ", ".join(repr(key) for key in sorted(tree.keys() ^ fields.keys())[:2])
            raise ValueError(f"tree {number} has other fields than tree {other}: {differ}")


def _check_parameters(text: str, needed: bool) -> None:
    """Check that the parameters after the trees are complete; they say which columns are categorical."""
    parameters, end, rest = text.partition("\nparameters:\n")[2].partition("\nend of parameters")
    if (needed or parameters) and not end:
        raise ValueError("it ends within its parameters")
    for line in parameters.split("\n"):
        if line and not re.fullmatch(r"\[\w+: .*\]", line):
            raise ValueError(f"it has the parameter {line!r}")
    if rest.strip() and not rest.strip().startswith("pandas_categorical:"):
        raise ValueError(f"it ends with {rest.strip()[-40:]!r}")


def _check_tree(tree: dict[str, str], features: int, number: int) -> None:
    """Check that nodes form a tree and split on known features: else a prediction reads out of bounds or never ends."""
    for key, value in tree.items():  # LightGBM aborts the process if a number is malformed
        np.array(value.split(), np.int64 if key.endswith("_count") else np.float64)
    leaves = int(tree["num_leaves"])
    if leaves < 1 or len(tree["leaf_value"].split()) != leaves:
        raise ValueError(f"tree {number} declares {leaves} leaves, but describes {len(tree['leaf_value'].split())}")
    needed = [*(_CATEGORIES if int(tree["num_cat"]) else ()), *(_LINEAR if int(tree.get("is_linear", 0)) else ())]
    for key in needed:  # LightGBM aborts the process where one is missing
        tree[key]
    if leaves == 1:
        return
    for keys, expected in ((_PER_LEAF, leaves), (_PER_NODE, leaves - 1)):  # LightGBM aborts the process otherwise
        for key in keys:
            if key in tree and len(tree[key].split()) != expected:
                raise ValueError(f"tree {number} has {len(tree[key].split())} values of {key}, and needs {expected}")
    left, right, split, kinds = (
        np.array(tree[key].split(), np.int64) for key in ("left_child", "right_child", "split_feature", "decision_type")
    )
    thresholds = np.array(tree["threshold"].split(), np.float64)
    if not len(left) == len(right) == len(split) == len(kinds) == len(thresholds) == leaves - 1:
        raise ValueError(f"tree {number} declares {leaves} leaves, but describes {len(left) + 1}")
    position = np.arange(leaves - 1)
    for child in (left, right):
        if ((child >= 0) & (child <= position)).any() or child.max() >= leaves - 1 or child.min() < -leaves:
            raise ValueError(f"the nodes of tree {number} do not form a tree")
    if split.min() < 0 or split.max() >= features:
        raise ValueError(f"tree {number} splits on feature {split.max()}, but there are {features}")
    categorical = (kinds & 1) == 1
    if categorical.any() or int(tree["num_cat"]):
        bounds = np.array(tree["cat_boundaries"].split(), np.int64)
        thresholds_of_categories = len(tree["cat_threshold"].split())
        if (
            len(bounds) != int(tree["num_cat"]) + 1
            or (np.diff(bounds) < 0).any()
            or bounds[0] != 0
            or bounds[-1] != thresholds_of_categories
        ):
            raise ValueError(f"the categories of tree {number} are inconsistent")
        chosen = thresholds[categorical]
        if (chosen < 0).any() or (chosen >= len(bounds) - 1).any():
            raise ValueError(f"tree {number} splits on categories that it does not have")
