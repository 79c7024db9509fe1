"""The state of a lake as a file; what it holds cannot run code when it is read back."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from excir_dask.errors import DataError, LakeError, changed_file
from excir_dask.graph.lake_state import LakeState
from excir_dask.graph.pass_scan import References
from excir_dask.graph.segment_states import SegmentStates
from excir_dask.graph.state_format import freeze, thaw
from excir_dask.kernels.reference import Reference

Kind = TypeVar("Kind", LakeState, SegmentStates)


@dataclass(frozen=True)
class StateFile:
    """A state that :func:`write_state` wrote."""

    path: Path
    sha256: str | None = None
    """of the file as it was written; None where nobody has recorded it"""

    def read(self, known: References | None = None) -> LakeState:
        """The state; ``known`` references are not read again, but taken in place of those with the same ids."""
        references = () if known is None else (known.features, known.outputs, known.indicators)
        return self._read(LakeState, "the state of a lake", references)

    def read_segments(self) -> SegmentStates:
        """The states of segments."""
        return self._read(SegmentStates, "the states of segments")

    def _read(self, kind: type[Kind], what: str, known: tuple[Reference, ...] = ()) -> Kind:
        """What the file holds; a file that holds anything else is an error that names it."""
        path = self.path
        try:
            content = path.read_bytes()
            if self.sha256 is not None and hashlib.sha256(content).hexdigest() != self.sha256:
                raise changed_file(path, "explanation")
            found = thaw(content, whole=self.sha256 is not None, known=known)
        except FileNotFoundError:
            raise LakeError(f"{path} is not there: the result was saved without its state; compute it again") from None
        except (OSError, DataError) as error:
            raise LakeError(f"{path} is damaged or of another version ({error}); compute the result again") from None
        if not isinstance(found, kind):
            raise LakeError(f"{path} holds {type(found).__name__}, not {what}; compute the result again")
        return found

    def digest(self) -> str:
        """The same for equal states; the file is not read for it if its digest is on record."""
        return self.sha256 or hashlib.sha256(self.path.read_bytes()).hexdigest()


def write_state(state: LakeState | SegmentStates, path: Path) -> None:
    """Equal states give equal files."""
    path.write_bytes(freeze(state))


def state_digest(source: LakeState | StateFile) -> str:
    """The same for equal states, whether they are in a file or not."""
    return source.digest() if isinstance(source, StateFile) else hashlib.sha256(freeze(source)).hexdigest()
