"""Files that people write by hand, in YAML or JSON: nothing in them is lost, and too large ones are refused early.

A file can be endless, or grow without bound when it is parsed. So size, nesting and the values that aliases stand for
are limited.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import yaml
from yaml.composer import ComposerError
from yaml.constructor import ConstructorError

from excir_dask.common.wording import one_line
from excir_dask.common.yaml_loader import MOST_LEVELS, Loader
from excir_dask.errors import UsageError

MOST_BYTES = 1_000_000
"""of a file; names of 100,000 features in groups take about as much"""


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
    text = _read(source, what)
    try:
        return _parse_json(text, shape) if source.suffix.lower() == ".json" else _parse_yaml(text, shape)
    except ValueError as error:
        raise UsageError(f"{source}: {error}") from None


def brief(value: Any) -> str:
    """A value as a message shows it."""
    shown = repr(value)
    return shown if len(shown) <= 40 else shown[:39] + "…"


def _read(source: Path, what: str) -> str:
    try:
        mode = source.stat().st_mode
        if stat.S_ISDIR(mode):
            raise UsageError(f"{source} is a folder; name the file to read {what} from")
        if not stat.S_ISREG(mode):  # reading a pipe may never end, and reading a device may do anything
            raise UsageError(f"{source} is a pipe or a device; save {what} in a file, and name that")
        with source.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise UsageError(f"{source}: there is no such file to read {what} from") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise UsageError(f"{source} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(content) > MOST_BYTES:
        size = source.stat().st_size
        raise UsageError(f"{source} has {size:,} bytes, and at most {MOST_BYTES:,} are read for {what}; split it")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{source} is not UTF-8 at byte {error.start}; save it as UTF-8") from None


def _parse_json(text: str, shape: str) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise ValueError(f"'{key}' is given twice; merge the two, or rename one")
            found[key] = value
        return found

    too_deep = f"nested more than {MOST_LEVELS} levels deep; make it flatter"
    try:
        content = json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON on line {error.lineno}: {error.msg}; {shape}") from None
    except RecursionError:
        raise ValueError(too_deep) from None
    level = [content]
    for _ in range(MOST_LEVELS):
        texts = (text for one in level for text in (one if isinstance(one, dict) else [one]) if isinstance(text, str))
        if any("\0" in text for text in texts):
            raise ValueError("a text holds a NUL character; remove it")
        level = [inner for one in level if isinstance(one, dict | list) for inner in _inside(one)]
    if level:
        raise ValueError(too_deep)
    return content


def _inside(value: dict[str, Any] | list[Any]) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value


def _parse_yaml(text: str, shape: str) -> Any:
    try:
        return yaml.load(text, Loader)
    except (ComposerError, ConstructorError) as error:  # YAML, but not of a kind that is read here
        raise ValueError(f"line {error.problem_mark.line + 1}: {error.problem}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" on line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or one_line(error)
        raise ValueError(f"not YAML{where}: {problem}; {shape}") from None
