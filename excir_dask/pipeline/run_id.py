"""Run ids: the same options and files have the same id, and are not computed twice."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from excir_dask.lake.locate import locate
from excir_dask.lake.snapshot import take_snapshot
from excir_dask.pipeline.inputs import Inputs
from excir_dask.pipeline.options import OPTIONS, Counts, ExplainOptions
from excir_dask.results.storage import check_target
from excir_dask.version import __version__

log = logging.getLogger(__name__)

DIGITS = 12
"""of a run id: among a million runs, two share one with probability 1/500"""


RESOLVED = {
    "output": "outputs", "model": "model", "predict_type": "model", "model_columns": "selection",
    "features": "selection", "groups": "groups", "group_prefix": "groups", "group_correlated": "groups",
    "weights": "selection", "by": "selection", "fraction": "fraction", "sampling": "sampling", "reference": "reference",
    "budget": "budget", "table_version": "lake",
}  # fmt: skip
"""option that counts by what it stands for -> the part of the id that has this"""


def make_id(parts: Mapping[str, Any]) -> str:
    """An id from everything that decides a result.

    >>> make_id({"lake": "f3a1", "seed": 0}) == make_id({"seed": 0, "lake": "f3a1"})
    True
    """
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def lake_fingerprint(
    lake: Any, storage_options: Mapping[str, Any] | None = None, table_version: int | None = None
) -> str | None:
    """From the footers of a lake's files; None for a DataFrame, which has none."""
    if not isinstance(lake, str | os.PathLike | Sequence):
        return None
    return take_snapshot(locate(lake, storage_options, table_version)).fingerprint


def saved_id(file: Path, place: Sequence[str]) -> str | None:
    """The run id of a saved result; ``place`` are the keys that lead to it in a JSON file.

    None where there is no result, or one without an id: that counts as another run.
    """
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        for key in place:
            found = found[key]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, str) else None


def run_id(inputs: Inputs, options: ExplainOptions) -> str | None:
    """The same for the same options and files; None for a DataFrame or a function that has no identity."""
    model = inputs.outputs.model
    if inputs.snapshot is None or (model is not None and model.sha256 is None):
        return None
    return make_id(
        {
            **identity(inputs, options),
            "names": inputs.outputs.columns.names,
            "fraction": inputs.sample.fraction,
            "sampling": options.sampling if options.adaptive else inputs.sample.by,
            "adaptive": as_counted(options, Counts.ADAPTIVE) if options.adaptive else None,
        }
    )


def identity(inputs: Inputs, options: ExplainOptions) -> dict[str, Any]:
    """What all states of a checkpoint share: everything that decides the result, except the size of the sample."""
    assert inputs.snapshot is not None, "frames cannot be told apart"
    model, selection = inputs.outputs.model, inputs.plan.selection
    return {
        "version": __version__,
        "lake": inputs.snapshot.fingerprint,
        "outputs": inputs.outputs.columns.columns,
        "model": None if model is None else [model.kind, model.sha256, model.predict_type],
        "selection": [
            selection.features, selection.weight, selection.categoricals, selection.model_columns, selection.vectors,
            selection.by,
        ],
        "groups": asdict(inputs.groups),
        "budget": inputs.plan.budget,
        "reference": None if inputs.reference is None else inputs.reference.state.reference,
        "options": as_counted(options, Counts.AS_GIVEN),
    }  # fmt: skip


def as_counted(options: ExplainOptions, *counts: Counts) -> dict[str, Any]:
    """Values of the options that count in some way."""
    return {name: getattr(options, name) for name, option in OPTIONS.items() if option.counts in counts}


@dataclass(frozen=True)
class Target:
    """The folder of a result, and the run whose result is already there."""

    folder: Path | None
    kind: str
    overwrite: bool
    saved: str | None
    """id of the run that is there; None where there is none, or its id is unknown"""

    def holds(self, run: str | None) -> bool:
        return self.saved is not None and self.saved == run

    def finished(self, run: str | None, force: bool) -> Path | None:
        """The folder, if it holds the result of a run and that is not to be computed again.

        Otherwise a result that is there must be one that may be replaced.
        """
        if self.folder is None:
            return None
        if self.holds(run) and not force:
            say_done(run, self.folder)
            return self.folder
        if self.saved is not None:
            check_target(self.folder, self.overwrite or self.holds(run), self.kind)
        return None


def open_target(
    out: str | os.PathLike[str] | None, overwrite: bool, kind: str = "explanation", place: Sequence[str] = ("run_id",)
) -> Target:
    """Look at the folder of a result; one that may not be replaced is refused before anything is read."""
    if out is None:
        return Target(None, kind, overwrite, None)
    folder = Path(out).expanduser()
    saved = saved_id(folder / ("manifest.json" if kind == "explanation" else f"{kind}.json"), place)
    if saved is None:  # reading footers may take minutes
        check_target(out if "://" in os.fspath(out) else folder, overwrite, kind)
    return Target(folder, kind, overwrite, saved)


def say_done(run: str | None, out: str | os.PathLike[str]) -> None:
    log.info("already done (run id %s): %s holds the result; --force (force=True) computes it again", run, out)
