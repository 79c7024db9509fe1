"""The state of a lake as a file, compressed; what it holds cannot run code when it is read back."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from excir_dask.errors import DataError, LakeError
from excir_dask.graph.lake_state import LakeState
from excir_dask.graph.segment_states import SegmentStates
from excir_dask.graph.state_format import freeze, thaw

_CODEC = "zstd"

Kind = TypeVar("Kind", LakeState, SegmentStates)


def write_state(state: LakeState | SegmentStates, path: Path) -> None:
    """Equal states give equal files."""
    path.write_bytes(_packed(state))


def read_state(path: Path) -> LakeState:
    """A state that :func:`write_state` wrote; anything else is an error that names the file."""
    return _read(path, LakeState, "the state of a lake")


def read_segments(path: Path) -> SegmentStates:
    """The same for the states of segments."""
    return _read(path, SegmentStates, "the states of segments")


def _read(path: Path, kind: type[Kind], what: str) -> Kind:
    try:
        with pa.input_stream(path, compression=_CODEC) as stream:
            found = thaw(stream.read())
    except FileNotFoundError:
        raise LakeError(f"{path} is not there: the result was saved without its state; compute it again") from None
    except (OSError, DataError) as error:
        raise LakeError(f"{path} is damaged or of another version ({error}); compute the result again") from None
    if not isinstance(found, kind):
        raise LakeError(f"{path} holds {type(found).__name__}, not {what}; compute the result again")
    return found


def state_digest(source: LakeState | Path) -> str:
    """The same for equal states: that of the file, which is not read for it."""
    if isinstance(source, Path):
        with source.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    return hashlib.sha256(_packed(source)).hexdigest()


def _packed(state: LakeState | SegmentStates) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, _CODEC) as stream:
        stream.write(freeze(state))
    return sink.getvalue()
