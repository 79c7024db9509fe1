"""What people write by hand, in YAML or JSON: read so that nothing in it is lost without a word."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from excir_dask.errors import UsageError


def read_text_file(path: str | os.PathLike[str], what: str, shape: str) -> Any:
    """The content of a JSON file (by its suffix) or a YAML file, in UTF-8.

    A key that is written twice is an error, where YAML and JSON would take the last one.

    Parameters
    ----------
    path : path
    what : str
        What is read from it, for messages.
    shape : str
        How it is to be written, for messages.
    """
    source = Path(path)
    try:
        text = source.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise UsageError(f"{source}: there is no such file to read {what} from") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{source} is not UTF-8 at byte {error.start}; save it as UTF-8") from None
    except OSError as error:
        raise UsageError(f"{source} cannot be read: {error.strerror}") from None
    try:
        return _parse_json(text) if source.suffix.lower() == ".json" else _parse_yaml(text, shape)
    except ValueError as error:
        raise UsageError(f"{source}: {error}") from None
    except RecursionError:
        raise UsageError(f"{source} is nested too deeply; {shape}") from None


def brief(value: Any) -> str:
    """A value as a message shows it."""
    shown = repr(value)
    return shown if len(shown) <= 40 else shown[:39] + "…"


def _parse_json(text: str) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise ValueError(f"'{key}' is there twice; merge the two, or rename one")
            found[key] = value
        return found

    return json.loads(text, object_pairs_hook=unique)


def _parse_yaml(text: str, shape: str) -> Any:
    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc]  # yaml has no annotations
        """YAML's plain types, without a mapping in which a later entry replaces an earlier one."""

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            lines: dict[Any, int] = {}
            for key_node, _ in node.value:
                if isinstance(key_node, yaml.ScalarNode):
                    key, line = key_node.value, key_node.start_mark.line + 1
                    if key in lines:
                        raise ValueError(
                            f"'{key}' is there twice, on lines {lines[key]} and {line}; merge the two, or rename one"
                        )
                    lines[key] = line
            found: dict[Any, Any] = super().construct_mapping(node, deep)
            return found

    try:
        return yaml.load(text, Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" on line {mark.line + 1}" if mark else ""
        raise ValueError(f"not YAML{where}: {getattr(error, 'problem', None) or error}; {shape}") from None
