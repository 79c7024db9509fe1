"""Weights that an ONNX model keeps in other files: put into the model, so that it is whole wherever it is opened.

onnxruntime would look for them in the folder in which the process runs, on every worker. They are taken from the
model's own folder and from nowhere else, and count for the model's digest.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path, PureWindowsPath

from excir_dask.errors import ModelError
from excir_dask.models.onnx_graph import field, fields
from excir_dask.models.scoring import digest

LARGEST = 2**31 - 1
"""bytes of a model in one piece, which protobuf allows"""

# numbers of fields in onnx.proto: where tensors are
_INSIDE = {
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
    """Files with weights of a model, each read once.

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
        """The model with all weights inside; the same bytes where they are already. Raises ValueError for no ONNX."""
        if b"location" not in content:  # the key under which a tensor names its file: most models need no search
            return content
        self._size = len(content)
        return self._message(content, "model")

    def digest(self, model: str) -> str:
        """SHA-256 of the model and its weights, from that of its file."""
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
        for number, value, begin, end in fields(message):
            inside = _INSIDE[kind].get(number)
            if inside is not None and isinstance(value, bytes):
                made = self._message(value, inside)
                changed = changed or made is not value
                parts.append(message[begin:end] if made is value else field(number, made))
            else:
                parts.append(message[begin:end])
        return b"".join(parts) if changed else message

    def _tensor(self, message: bytes) -> bytes:
        found = list(fields(message))
        locations = [value for number, value, _, _ in found if number == _DATA_LOCATION and isinstance(value, int)]
        if not any(value & 0xFFFFFFFF == _EXTERNAL for value in locations):  # an enum has 32 bits, whatever is written
            return message
        told = dict(_entry(value) for number, value, _, _ in found if number == _EXTERNAL_DATA)
        replaced = (_RAW_DATA, _EXTERNAL_DATA, _DATA_LOCATION)
        rest = b"".join(message[begin:end] for number, _, begin, end in found if number not in replaced)
        return rest + field(_RAW_DATA, self._values(told))

    def _values(self, told: dict[str, str]) -> bytes:
        name = told.get("location", "")
        content = self._file(name)
        try:
            start = int(told.get("offset", "0"))
            size = int(told.get("length", len(content) - start))
        except ValueError:
            start = size = -1
        if min(start, size) < 0 or start + size > len(content):
            raise ModelError(
                f"{self.source} takes {told.get('length', 'all')} bytes from {told.get('offset', '0')} on of "
                f"{name!r}, which has {len(content):,} bytes: one of them is cut off, damaged or of another model; "
                "copy both again"
            )
        self._check_size(size)
        return content[start : start + size]

    def _file(self, name: str) -> bytes:
        if name in self.files:
            return self.files[name]
        given = PureWindowsPath(name)  # knows both kinds of slashes, and drives
        if not given.parts or given.anchor or ".." in given.parts:
            raise ModelError(self._outside(name))
        try:
            home = os.path.realpath(self.folder)
            path = os.path.realpath(os.path.join(home, name))
            if os.path.commonpath([home, path]) != home:
                raise ModelError(self._outside(f"{name} -> {path}"))
            about = os.stat(path)
            if not stat.S_ISREG(about.st_mode):
                raise ModelError(f"{self.source} keeps weights in {name!r}, which is no file; save the model again")
            if about.st_size > LARGEST:
                self._check_size(about.st_size)
            self.files[name] = Path(path).read_bytes()
        except FileNotFoundError as error:
            raise ModelError(
                f"{self.source} keeps weights in {name!r}, and there is no such file in {self.folder.absolute()}; "
                "copy it there, beside the model"
            ) from error
        except (OSError, ValueError) as error:
            raise ModelError(f"{self.source} keeps weights in {name!r}, which cannot be read: {error}") from error
        return self.files[name]

    def _check_size(self, size: int) -> None:
        self._size += size
        if self._size > LARGEST:
            raise ModelError(
                f"{self.source} takes {self._size:,} bytes with its weights; at most {LARGEST:,} can be scored with: "
                "export a smaller model, such as one in float16"
            )

    def _outside(self, name: str) -> str:
        return (
            f"{self.source} keeps weights in {name!r}, which is not a file in its own folder; save the model and its "
            "weights in one folder (onnx.save_model(model, path, save_as_external_data=True, location='weights.bin'))"
        )


def _entry(value: int | bytes) -> tuple[str, str]:
    """Key and value of a StringStringEntryProto."""
    texts = {number: text for number, text, _, _ in fields(value)} if isinstance(value, bytes) else {}
    key, told = texts.get(1, b""), texts.get(2, b"")
    if not isinstance(key, bytes) or not isinstance(told, bytes):
        raise ValueError("a tensor's external data are no texts")
    return key.decode(), told.decode()
