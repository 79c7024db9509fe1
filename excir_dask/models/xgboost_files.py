"""Check XGBoost files before XGBoost reads them, because a damaged file can crash the process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from excir_dask.errors import ModelError
from excir_dask.models.ubjson import read_ubjson

_NEEDED = {"base_weights", "split_conditions", "default_left", "loss_changes", "sum_hessian", "parents"}
"""fields of a tree with a vector per leaf, without which XGBoost crashes"""

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
        model = booster.get("gbtree", booster)["model"]  # dart nests its trees one level deeper
        trees = model.get("trees", [])
        if sorted(int(tree.get("id", number)) for number, tree in enumerate(trees)) != list(range(len(trees))):
            raise ValueError("its trees do not have the numbers 0, 1, ...")
        for number, tree in enumerate(trees):
            if tree.keys() != trees[0].keys():
                raise ValueError(f"tree {number} has other fields than tree 0: {_difference(tree, trees[0])}")
            _check_tree(tree, features, number)
            _check_leaves(tree, max(int(learner["learner_model_param"].get("num_target", 1)), 1), number)
        _check_order(model, learner["learner_model_param"], len(trees))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ModelError(f"{source} is damaged: {error}; expected {EXPECTED}; copy or save it again") from error


def _check_order(model: Mapping[str, Any], params: Mapping[str, Any], trees: int) -> None:
    """Check to which output and round each tree belongs: XGBoost adds to an output of any number, wherever that is."""
    outputs = max(int(params.get("num_class", 0)), int(params.get("num_target", 1)), 1)
    groups = np.asarray(model.get("tree_info", np.zeros(trees)))
    if len(groups) != trees or (trees and (groups.min() < 0 or groups.max() >= outputs)):
        raise ValueError(f"its {trees} trees do not all add to one of {outputs} outputs")
    rounds = np.asarray(model.get("iteration_indptr", [0, trees]))
    if len(rounds) < 1 or rounds[0] != 0 or rounds[-1] != trees or (np.diff(rounds) < 0).any():
        raise ValueError(f"its rounds do not hold its {trees} trees")


def _difference(tree: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    return ", ".join(repr(str(key)) for key in sorted(tree.keys() ^ other.keys())[:2])


def _check_tree(tree: Mapping[str, Any], features: int, number: int) -> None:
    """Check that nodes form a tree and split on known features: else a prediction reads out of bounds or never ends."""
    nodes = int(tree["tree_param"]["num_nodes"])
    left, right = (np.asarray(tree[side]) for side in ("left_children", "right_children"))
    split = np.asarray(tree["split_indices"])
    if not len(left) == len(right) == len(split) == nodes or nodes < 1:
        raise ValueError(f"tree {number} declares {nodes} nodes, but describes {len(left)}")
    for key in ("default_left", "split_conditions", "split_type", "parents", "loss_changes", "sum_hessian"):
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


def _check_leaves(tree: Mapping[str, Any], targets: int, number: int) -> None:
    """Check the weights of a tree with a vector per leaf: XGBoost reads as many as the tree declares."""
    size = int(tree["tree_param"].get("size_leaf_vector", 1))
    if size not in (0, 1, targets):
        raise ValueError(f"tree {number} has {size} values per leaf, but there are {targets} targets")
    nodes, width = len(tree["left_children"]), max(size, 1)
    if "base_weights" in tree and len(tree["base_weights"]) != nodes * width:
        raise ValueError(f"tree {number} has {nodes} nodes of {width} weights and {len(tree['base_weights'])} weights")
    if size > 1 and not tree.keys() >= _NEEDED:
        raise ValueError(f"tree {number} lacks {', '.join(sorted(_NEEDED - tree.keys()))}")
    if size > 1 and "leaf_weights" in tree:
        leaf = np.asarray(tree["left_children"]) == -1
        places = np.asarray(tree["right_children"])[leaf]  # a leaf has the place of its vector there
        if len(tree["leaf_weights"]) != leaf.sum() * size or places.min() < 0 or places.max() >= leaf.sum():
            raise ValueError(f"tree {number} has {leaf.sum()} leaves whose vectors it does not have")
