"""Weights of an ONNX model in other files: embedded into the model, so that workers can open it.

onnxruntime would look for them in the working directory of each worker. Here they are read from the model's own folder,
and nowhere else, and are part of the model's digest.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path, PureWindowsPath

from excir_dask.errors import ModelError
from excir_dask.models.protobuf import encode_field, fields
from excir_dask.models.scoring import digest

MAX_BYTES = 2**31 - 1
"""size limit of a protobuf message"""

# field numbers in onnx.proto that lead to tensors
_CONTENTS = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "function": {7: "node", 11: "attribute"},
    "training": {1: "graph", 2: "graph"},
}
_RAW_DATA, _EXTERNAL_DATA, _DATA_LOCATION = 9, 13, 14
_EXTERNAL = 1


class Weights:
    """Weight files of a model, each read once.

    Parameters
    ----------
    folder : Path
        Of the model's file.
    source : str
        What messages call the model.
    """

    def __init__(self, folder: Path, source: str):
        self.folder = folder
        self.source = source
        self.files: dict[str, bytes] = {}
        """name, relative to the folder -> content"""
        self._size = 0

    def embed(self, content: bytes) -> bytes:
        """The model with all weights inside, unchanged if they are already. Raises ValueError if it is not ONNX."""
        if b"location" not in content:  # the key of a tensor's file name: most models need no search
            return content
        self._size = len(content)
        return self._message(content, "model")

    def digest(self, model: str) -> str:
        """SHA-256 of the model and its weights, given that of its file."""
        if not self.files:
            return model
        return digest(json.dumps([model, self.digests()]).encode())

    def digests(self) -> list[list[str]]:
        """Name and SHA-256 of each file."""
        return [[name, digest(content)] for name, content in sorted(self.files.items())]

    def _message(self, message: bytes, kind: str) -> bytes:
        if kind == "tensor":
            return self._tensor(message)
        parts, changed = [], False
        for number, value, start, end in fields(message):
            inside = _CONTENTS[kind].get(number)
            if inside is not None and isinstance(value, bytes):
                embedded = self._message(value, inside)
                changed = changed or embedded is not value
                parts.append(message[start:end] if embedded is value else encode_field(number, embedded))
            else:
                parts.append(message[start:end])
        return b"".join(parts) if changed else message

    def _tensor(self, message: bytes) -> bytes:
        found = list(fields(message))
        locations = [value for number, value, _, _ in found if number == _DATA_LOCATION and isinstance(value, int)]
        if not any(value & 0xFFFFFFFF == _EXTERNAL for value in locations):  # enums are truncated to 32 bits
            return message
        reference = dict(_entry(value) for number, value, _, _ in found if number == _EXTERNAL_DATA)
        replaced = (_RAW_DATA, _EXTERNAL_DATA, _DATA_LOCATION)
        rest = b"".join(message[start:end] for number, _, start, end in found if number not in replaced)
        return rest + encode_field(_RAW_DATA, self._values(reference))

    def _values(self, reference: dict[str, str]) -> bytes:
        name = reference.get("location", "")
        content = self._file(name)
        try:
            start = int(reference.get("offset", "0"))
            size = int(reference.get("length", len(content) - start))
        except ValueError:
            start = size = -1
        if min(start, size) < 0 or start + size > len(content):
            raise ModelError(
                f"{self.source} refers to {reference.get('length', 'all')} bytes at offset "
                f"{reference.get('offset', '0')} of {name!r}, which has {len(content):,} bytes: one of them is "
                "cut off, damaged or of another model; copy both again"
            )
        self._check_size(size)
        return content[start : start + size]

    def _file(self, name: str) -> bytes:
        if name in self.files:
            return self.files[name]
        given = PureWindowsPath(name)  # handles both kinds of slashes, and drives
        if not given.parts or given.anchor or ".." in given.parts:
            raise ModelError(self._outside(name))
        try:
            home = os.path.realpath(self.folder)
            path = os.path.realpath(os.path.join(home, name))
            if os.path.commonpath([home, path]) != home:
                raise ModelError(self._outside(f"{name} -> {path}"))
            about = os.stat(path)
            if not stat.S_ISREG(about.st_mode):
                raise ModelError(f"{self.source} keeps weights in {name!r}, which is not a file; save the model again")
            if about.st_size > MAX_BYTES:
                self._check_size(about.st_size)
            self.files[name] = Path(path).read_bytes()
        except FileNotFoundError as error:
            raise ModelError(
                f"{self.source} keeps weights in {name!r}, but {self.folder.absolute()} has no such file; "
                "copy it next to the model"
            ) from error
        except (OSError, ValueError) as error:
            raise ModelError(f"{self.source} keeps weights in {name!r}, which cannot be read: {error}") from error
        return self.files[name]

    def _check_size(self, size: int) -> None:
        self._size += size
        if self._size > MAX_BYTES:
            raise ModelError(
                f"{self.source} has {self._size:,} bytes with its weights; the limit is {MAX_BYTES:,}: "
                "export a smaller model, for instance in float16"
            )

    def _outside(self, name: str) -> str:
        return (
            f"{self.source} keeps weights in {name!r}, which is not a file in its own folder; save the model and its "
            "weights in one folder (onnx.save_model(model, path, save_as_external_data=True, location='weights.bin'))"
        )


def _entry(value: int | bytes) -> tuple[str, str]:
    """Key and value of a StringStringEntryProto."""
    texts = {number: content for number, content, _, _ in fields(value)} if isinstance(value, bytes) else {}
    key, text = texts.get(1, b""), texts.get(2, b"")
    if not isinstance(key, bytes) or not isinstance(text, bytes):
        raise ValueError("the external data of a tensor are not text")
    return key.decode(), text.decode()
