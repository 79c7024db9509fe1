"""Check XGBoost files before XGBoost reads them, because a damaged file can crash the process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from excir_dask.errors import ModelError
from excir_dask.models.ubjson import read_ubjson

EXPECTED = 'an XGBoost model, saved with model.save_model("model.ubj") or "model.json"'


def check_xgboost_file(content: bytes, source: str) -> None:
    """Raise a ModelError unless the content is a complete XGBoost model in JSON or UBJSON."""
    text = content.lstrip()[1:].lstrip()[:1] in (b'"', b"}")
    language = "JSON" if text else "UBJSON"
    try:
        document = json.loads(content) if text else read_ubjson(content)
    except (ValueError, RecursionError) as error:
        raise ModelError(
            f"{source} is damaged or cut off: its {len(content)} bytes start as {language}, but {error}; "
            f"expected {EXPECTED}; copy or save it again"
        ) from error
    if isinstance(document, dict) and "tree_info" in document:
        raise ModelError(
            f"{source} is a JSON dump of a LightGBM model, which cannot be loaded; "
            'save the model with booster.save_model("model.txt")'
        )
    try:
        learner = document["learner"]
        booster = learner["gradient_booster"]
        features = int(learner["learner_model_param"]["num_feature"])
    except (KeyError, TypeError, ValueError) as error:
        keys = f"the keys {', '.join(list(document)[:5])}" if isinstance(document, dict) else "a list"
        raise ModelError(f"{source} is {language} with {keys}, but not {EXPECTED}") from error
    try:
        trees = booster.get("gbtree", booster)["model"].get("trees", [])  # dart nests its trees one level deeper
        for number, tree in enumerate(trees):
            _check_tree(tree, features, number)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelError(f"{source} is damaged: {error}; expected {EXPECTED}; copy or save it again") from error


def _check_tree(tree: Mapping[str, Any], features: int, number: int) -> None:
    """Check that nodes form a tree and split on known features: else a prediction reads out of bounds or never ends."""
    nodes = int(tree["tree_param"]["num_nodes"])
    left, right = (np.asarray(tree[side]) for side in ("left_children", "right_children"))
    split = np.asarray(tree["split_indices"])
    if not len(left) == len(right) == len(split) == nodes or nodes < 1:
        raise ValueError(f"tree {number} declares {nodes} nodes, but describes {len(left)}")
    for key in ("default_left", "split_conditions", "split_type", "parents"):
        if key in tree and len(tree[key]) != nodes:
            raise ValueError(f"tree {number} has {nodes} nodes and {len(tree[key])} {key}")
    inner = left != -1
    children = np.concatenate([left[inner], right[inner]])
    if children.size and (children.min() < 1 or children.max() >= nodes or len(np.unique(children)) < children.size):
        raise ValueError(f"the nodes of tree {number} do not form a tree")
    if "parents" in tree and (np.asarray(tree["parents"])[children] != np.tile(np.flatnonzero(inner), 2)).any():
        raise ValueError(f"the nodes of tree {number} have parents and children that disagree")
    if inner.any() and (split[inner].min() < 0 or split[inner].max() >= features):
        raise ValueError(f"tree {number} splits on feature {split[inner].max()}, but there are {features}")
    segments, sizes = (np.asarray(tree.get(key, []), np.int64) for key in ("categories_segments", "categories_sizes"))
    nodes_of = np.asarray(tree.get("categories_nodes", []), np.int64)
    if not len(segments) == len(sizes) == len(nodes_of):
        raise ValueError(f"tree {number} has categories without nodes")
    if sizes.size:
        ends = segments + sizes
        if min(segments.min(), sizes.min()) < 0 or ends.max() > len(tree["categories"]):
            raise ValueError(f"tree {number} has {len(tree['categories'])} categories, but needs {ends.max()}")
        if nodes_of.min() < 0 or nodes_of.max() >= nodes:
            raise ValueError(f"tree {number} has categories for node {nodes_of.max()} of {nodes}")
