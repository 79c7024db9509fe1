"""Is a LightGBM text whole? Asked before LightGBM reads it: of 300 texts cut off at different places 269 killed it."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from excir_dask.errors import ModelError

EXPECTED = 'a LightGBM model as booster.save_model("model.txt") writes it'


def read_header(content: bytes, source: str) -> dict[str, str]:
    """The lines before the trees as key and value, after a check that all trees are there and are trees."""
    try:
        text = content.decode("utf-8")
        if "\0" in text or "\r" in text:
            raise ValueError("it holds characters that LightGBM does not write, as after a copy in text mode")
        header = _key_values(text.split("\n\n", 1)[0])
        begin, end = text.index("\nTree=0\n"), text.index("\nend of trees")
        trees = [_key_values(part) for part in text[begin:end].split("\nTree=")[1:]]
        sizes = [int(size) for size in header["tree_sizes"].split()]
        # sizes are in bytes, and names of columns may have characters of several bytes, but trees have none
        if len(trees) != len(sizes) or sum(sizes) != end - begin:
            raise ValueError(f"{len(trees)} trees of {len(sizes)} are there, in {end - begin} bytes of {sum(sizes)}")
        if len(trees) % int(header["num_tree_per_iteration"]) or int(header["num_class"]) < 1:
            raise ValueError(f"{len(trees)} trees do not make whole rounds")
        _check_parameters(text[end:], any(int(tree["num_cat"]) for tree in trees))
        features = int(header["max_feature_idx"]) + 1
        for key in ("feature_names", "feature_infos"):
            if len(header[key].split()) != features:
                raise ValueError(f"it has {features} features and {len(header[key].split())} {key}")
        for number, tree in enumerate(trees):
            _check_tree(tree, features, number)
    except (ValueError, KeyError) as error:
        what = f"'{error.args[0]}' is not there" if isinstance(error, KeyError) else error
        raise ModelError(
            f"{source} is damaged or cut off: its {len(content)} bytes begin as a LightGBM model, but {what}; "
            f"expected {EXPECTED}: copy or save it again"
        ) from error
    return header


def categorical_columns(text: str, columns: tuple[str, ...], source: str) -> dict[str, tuple[Any, ...] | None]:
    """Categorical columns and their values, None where only codes are known.

    The text has the values of all pandas categoricals in the order of the columns, but says only of those that
    LightGBM treats as categories which columns they are.
    """
    match = re.search(r"^\[categorical_feature: ([0-9,]*)\]$", text, re.MULTILINE)
    places = sorted({int(place) for place in match[1].split(",") if place}) if match else []
    tail = re.search(r"^pandas_categorical:(.*)$", text, re.MULTILINE)
    try:
        values = json.loads(tail[1]) if tail else None
    except ValueError as error:
        raise ModelError(f"{source} is cut off: it ends within the values of its categories: {error}") from error
    if not values:
        return {columns[place]: None for place in places}
    if len(values) != len(places):
        raise ModelError(
            f"{source} was trained on {len(values)} pandas categoricals and treats {len(places)} columns as categories "
            "(ordered ones are numbers to it), and its text does not say which; pass booster.predict as a function"
        )
    return {columns[place]: tuple(known) for place, known in zip(places, values, strict=True)}


def _key_values(part: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in part.split("\n") if "=" in line)


def _check_parameters(text: str, needed: bool) -> None:
    """What follows the trees is whole; without it nobody knows which columns are categorical."""
    inside, found, rest = text.partition("\nparameters:\n")[2].partition("\nend of parameters")
    if (needed or inside) and not found:
        raise ValueError("it ends before the end of its parameters")
    for line in inside.split("\n"):
        if line and not re.fullmatch(r"\[\w+: .*\]", line):
            raise ValueError(f"one of its parameters is {line!r}")
    if rest.strip() and not rest.strip().startswith("pandas_categorical:"):
        raise ValueError(f"it ends with {rest.strip()[-40:]!r}")


def _check_tree(tree: dict[str, str], features: int, number: int) -> None:
    """Nodes point forward at nodes, at leaves and at features: else a walk leaves the tree or never ends."""
    for key, value in tree.items():  # LightGBM ends the process where it expects a number and finds none
        np.array(value.split(), np.int64 if key.endswith("_count") else np.float64)
    leaves = int(tree["num_leaves"])
    if leaves < 1 or len(tree["leaf_value"].split()) != leaves:
        raise ValueError(f"tree {number} says that it has {leaves} leaves, but describes another number")
    if leaves == 1:
        return
    left, right, split, kinds = (
        np.array(tree[key].split(), np.int64) for key in ("left_child", "right_child", "split_feature", "decision_type")
    )
    thresholds = np.array(tree["threshold"].split(), np.float64)
    if not len(left) == len(right) == len(split) == len(kinds) == len(thresholds) == leaves - 1:
        raise ValueError(f"tree {number} says that it has {leaves} leaves, but describes {len(left) + 1}")
    place = np.arange(leaves - 1)
    for child in (left, right):
        if ((child >= 0) & (child <= place)).any() or child.max() >= leaves - 1 or child.min() < -leaves:
            raise ValueError(f"the nodes of tree {number} do not form a tree")
    if split.min() < 0 or split.max() >= features:
        raise ValueError(f"tree {number} splits on feature {split.max()}, but there are {features}")
    categorical = (kinds & 1) == 1
    if categorical.any():
        bounds = np.array(tree["cat_boundaries"].split(), np.int64)
        words = len(tree["cat_threshold"].split())
        if (
            len(bounds) != int(tree["num_cat"]) + 1
            or (np.diff(bounds) < 0).any()
            or bounds[0] != 0
            or bounds[-1] != words
        ):
            raise ValueError(f"the categories of tree {number} do not fit")
        if thresholds[categorical].min() < 0 or thresholds[categorical].max() >= len(bounds) - 1:
            raise ValueError(f"tree {number} splits on categories that it does not have")
