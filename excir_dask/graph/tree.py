"""A merge tree whose shape depends only on the number of leaves, so that schedulers cannot change the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

FAN_IN = 8
"""states merged by one task"""

Key = Any
"""of a task"""

Graph = dict[Any, Any]


def merge_tree(graph: Graph, leaves: Sequence[Key], merge: Callable[[list[Any]], Any], name: str, *labels: int) -> Key:
    """Add tasks to ``graph`` that merge ``leaves`` in order; returns the key of the last one.

    >>> graph = {}
    >>> merge_tree(graph, [f"leaf {i}" for i in range(20)], list, "merge", 7)
    ('merge', 7, 1, 0)
    >>> len(graph)
    4
    """
    level = 0
    while len(leaves) > 1:
        keys = []
        for i in range(0, len(leaves), FAN_IN):
            key = (name, *labels, level, i // FAN_IN)
            graph[key] = (merge, list(leaves[i : i + FAN_IN]))
            keys.append(key)
        leaves = keys
        level += 1
    return leaves[0]
