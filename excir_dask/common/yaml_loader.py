"""YAML's plain types, read so that nothing is lost, nothing explodes and every error has a line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml
from yaml.composer import Composer, ComposerError
from yaml.constructor import ConstructorError, SafeConstructor
from yaml.resolver import Resolver

MOST_LEVELS = 64
"""of nesting; a Kubernetes manifest has about 15"""
MOST_VALUES = 100_000
"""in one file, where an alias counts as often as it is used"""
LONGEST_NUMBER = 100
"""characters of a number or a date; turning a longer one into a value can take minutes"""

_TAG = "tag:yaml.org,2002:"
_WITHOUT_A_VALUE = (f"{_TAG}merge", f"{_TAG}value")
"""keys that are syntax: << and ="""
_LIMITED = {f"{_TAG}int": "whole number", f"{_TAG}float": "number", f"{_TAG}timestamp": "date"}
_KINDS = {**_LIMITED, f"{_TAG}bool": "truth value", f"{_TAG}null": "empty value"}

if not TYPE_CHECKING and yaml.__with_libyaml__:

    class _Plain(Composer, yaml.cyaml.CParser, SafeConstructor, Resolver):
        """libyaml's parser (1 MB in 1.0 s; the one in Python takes 3.3 s) below a composer that can be extended."""

        def __init__(self, text: str):
            yaml.cyaml.CParser.__init__(self, text)
            Composer.__init__(self)
            SafeConstructor.__init__(self)
            Resolver.__init__(self)

else:

    class _Plain(yaml.SafeLoader):  # type: ignore[misc]  # yaml has no annotations
        """All in Python, where PyYAML was built without libyaml."""


class DuplicateKeyError(ValueError):
    """A mapping has a key twice, where YAML takes the last one."""


class Loader(_Plain):
    """A safe loader that refuses repeated keys, deep nesting, and aliases that multiply."""

    def __init__(self, text: str):
        super().__init__(text)
        self.depth = 0
        self.sizes: dict[yaml.Node, int] = {}
        """values in each finished node, aliases written out"""

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()
        self.depth += 1
        if self.depth > MOST_LEVELS:
            raise ComposerError(
                None, None, f"nested more than {MOST_LEVELS} levels deep; make it flatter", event.start_mark
            )
        node = super().compose_node(parent, index)
        self.depth -= 1
        if isinstance(event, yaml.AliasEvent):
            if node not in self.sizes:
                problem = f"*{event.anchor} is inside the value it refers to; write the value out"
                raise ComposerError(None, None, problem, event.start_mark)
        else:
            self.sizes[node] = 1 + sum(self.sizes[child] for child in _children(node))
            if self.sizes[node] > MOST_VALUES:
                problem = f"more than {MOST_VALUES:,} values, aliases written out; split it, or use fewer aliases"
                raise ComposerError(None, None, problem, event.start_mark)
        return node

    def compose_mapping_node(self, anchor: Any) -> Any:
        """Here, not when the value is constructed: by then merge keys have added pairs that may be replaced."""
        node = super().compose_mapping_node(anchor)
        lines: dict[Any, int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            line = key.start_mark.line + 1
            # 1 and "1" look alike, 1 and 0x1 are alike; both are refused
            same = {("text", key.value)}
            if key.tag not in _WITHOUT_A_VALUE:
                same.add(("value", self.construct_object(key)))
            for one in same:
                if one in lines:
                    raise DuplicateKeyError(
                        f"'{key.value}' is given twice, on lines {lines[one]} and {line}; merge the two, or rename one"
                    )
            lines |= dict.fromkeys(same, line)
        return node

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        if isinstance(node, yaml.ScalarNode) and "\0" in node.value:  # no name of a file or column has one
            raise ConstructorError(None, None, "a text holds a NUL character; remove it", node.start_mark)
        try:
            if node.tag in _LIMITED and len(node.value) > LONGEST_NUMBER:
                raise ValueError
            return super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError, OverflowError) as error:
            if not isinstance(node, yaml.ScalarNode):
                raise
            shown = repr(node.value if len(node.value) <= 40 else node.value[:39] + "…")
            problem = f"{shown} is not a {_KINDS.get(node.tag, node.tag)}; put text in quotes"
            raise ConstructorError(None, None, problem, node.start_mark) from error


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [one for pair in node.value for one in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []
