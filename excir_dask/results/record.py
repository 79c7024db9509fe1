"""Frozen records and the plain dictionaries that JSON files hold of them: the one place that converts between the two.

A field without a default is required in the file. A field with one may be absent, and is left out where it is None.
Fields that the class does not name, such as those of a newer version, are kept in ``extra`` and written back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from types import NoneType, UnionType
from typing import Any, NamedTuple, Self, get_args, get_origin, get_type_hints

from excir_dask.errors import LakeError

OLDER = "older"
"""metadata of a field that older files have under another name: ``field(metadata={OLDER: "its name"})``"""


@dataclass(frozen=True, kw_only=True)
class Record:
    """Base of everything that is saved beside the tables of a result."""

    extra: Mapping[str, Any] = field(default_factory=dict)
    """fields beyond those named here: specific to a kind of model, or written by a newer version"""

    def to_dict(self) -> dict[str, Any]:
        """Plain values that JSON can hold."""
        found = dict(self.extra)
        for name, column in _columns(type(self)).items():
            value = getattr(self, name)
            if value is not None or column.required:
                found[name] = _plain(value)
        return found

    @classmethod
    def from_dict(cls, content: Any, source: str, path: str = "") -> Self:
        """The record that a file holds.

        Parameters
        ----------
        content : mapping
            As :meth:`to_dict` gives it, possibly with further fields.
        source : str
            The file, for messages.
        path : str
            Where in the file the record is, such as ``facts.rows``.
        """
        if not isinstance(content, Mapping):
            kind = type(content).__name__
            raise LakeError(f"{source} holds a {kind} as '{path}' where a mapping belongs; {_REMEDY}")
        columns = _columns(cls)
        given: dict[str, Any] = {}
        for name, column in columns.items():
            key = name if name in content or column.older not in content else column.older
            if column.required or key in content:
                value = required(content, key, source, path)
                given[name] = _typed(column.hint, value, source, _place(path, key))
        known = {*columns, *(column.older for column in columns.values())}
        return cls(**given, extra={key: value for key, value in content.items() if key not in known})


_REMEDY = "load it with the version that wrote it, or compute it again"


def required(content: Mapping[str, Any], key: str, source: str, path: str = "") -> Any:
    """A field that a file must have; ``source`` and ``path`` say where it should be."""
    if key not in content:
        raise LakeError(f"{source} lacks the field '{_place(path, key)}'; {_REMEDY}")
    return content[key]


class _Column(NamedTuple):
    """How a file holds a field."""

    older: str
    """its name in older files"""
    hint: Any
    required: bool


def _columns(cls: type[Record]) -> dict[str, _Column]:
    hints = get_type_hints(cls)
    return {
        one.name: _Column(
            one.metadata.get(OLDER, one.name),
            hints[one.name],
            required=one.default is MISSING and one.default_factory is MISSING,
        )
        for one in fields(cls)
        if one.name != "extra"
    }


def _place(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _plain(value: Any) -> Any:
    if isinstance(value, Record):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {key: _plain(inside) for key, inside in value.items()}
    return [_plain(inside) for inside in value] if isinstance(value, tuple) else value


_WORDS = {str: "text", int: "whole number", float: "number", bool: "truth value"}


def _typed(hint: Any, value: Any, source: str, path: str) -> Any:
    """A value from a file as the type hint wants it, with records and tuples where it names them."""
    allowed = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    if (value is None and NoneType in allowed) or Any in allowed:
        return value
    for one in allowed:
        if isinstance(one, type) and issubclass(one, Record):
            return one.from_dict(value, source, path)
        if get_origin(one) is tuple:
            _expect(isinstance(value, list), "list", value, source, path)
            return tuple(_typed(get_args(one)[0], each, source, f"{path}[{n}]") for n, each in enumerate(value))
        if get_origin(one) is Mapping:
            _expect(isinstance(value, dict), "mapping", value, source, path)
            return {key: _typed(get_args(one)[1], each, source, _place(path, key)) for key, each in value.items()}
    plain = tuple(one for one in allowed if one in _WORDS)
    fits = isinstance(value, plain) or (float in plain and isinstance(value, int))
    _expect(fits and (not isinstance(value, bool) or bool in plain), _WORDS[plain[0]], value, source, path)
    return value


def _expect(fits: bool, word: str, value: Any, source: str, path: str) -> None:
    if not fits:
        raise LakeError(f"{source} holds a {type(value).__name__} as '{path}' where a {word} belongs; {_REMEDY}")
