"""The result of a training: the model and its metadata."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from excir_dask.common.atomic import unwritable_parent, write_file
from excir_dask.errors import ModelError, UsageError
from excir_dask.results import views
from excir_dask.results.metadata import LakeSource
from excir_dask.results.record import Record, required
from excir_dask.results.storage import check_format, read_json

if TYPE_CHECKING:
    from xgboost import Booster

FORMAT = "excir-training"
VERSION = 1
SUFFIXES = (".ubj", ".json")


@dataclass(frozen=True, kw_only=True)
class TrainingProvenance(Record):
    """Where a model came from."""

    lake: LakeSource
    workers: int
    partitions: int
    finished: str
    """date and time in UTC, ISO 8601"""
    versions: Mapping[str, str]
    """package -> version"""
    run_id: str | None = None
    """the same for the same options and files"""


@dataclass(frozen=True)
class Training:
    """A trained model with its history."""

    model: bytes
    """the trees up to the best round, as XGBoost's UBJSON"""
    features: tuple[str, ...]
    """in the order of the model's inputs"""
    label: str
    classes: tuple[str, ...]
    """names in the order of the model's outputs; empty if it predicts a number"""
    objective: str
    metric: str
    """that decides the best round"""
    best_iteration: int
    """last round that the model keeps, counted from 0"""
    best_score: float
    """the metric after that round, on the validation rows if there are any"""
    history: dict[str, dict[str, list[float]]]
    """``train`` and ``validation`` -> metric -> value after each round"""
    rows: dict[str, int]
    """numbers of rows: lake, sampled, without_label, without_weight, train, validation"""
    params: dict[str, Any]
    """all of XGBoost's parameters"""
    settings: dict[str, Any]
    """the other arguments that decide the model"""
    left_out: dict[str, str]
    """column that is not numeric and was not asked for -> reason"""
    provenance: TrainingProvenance
    """what may differ between two runs with the same model"""
    seconds: float
    path: Path | None = None
    """where it was saved"""

    @property
    def booster(self) -> Booster:
        import xgboost

        return xgboost.Booster(model_file=bytearray(self.model))

    def summary(self) -> dict[str, Any]:
        """The main facts as plain values."""
        return {
            "objective": self.objective,
            "classes": list(self.classes),
            "features": len(self.features),
            "rows": self.rows,
            "metric": self.metric,
            **{part: metrics[self.metric][self.best_iteration] for part, metrics in self.history.items()},
            "best_iteration": self.best_iteration,
            "rounds": len(self.history["train"][self.metric]),
            "seconds": self.seconds,
        }

    def __str__(self) -> str:
        return views.text(self)

    def __repr__(self) -> str:
        return views.text(self)

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> Training:
        """Write the model (``.ubj`` or ``.json``), and beside it ``<stem>.training.json`` with its metadata.

        Each file appears whole or not at all, the model last.
        """
        target = check_model_path(path, overwrite)
        content = self.model if target.suffix == ".ubj" else bytes(self.booster.save_raw("json"))
        about = {
            "format": FORMAT,
            "version": VERSION,
            "file": target.name,
            "sha256": hashlib.sha256(content).hexdigest(),
            **{name: value for name, value in asdict(self).items() if name not in ("model", "path")},
            "provenance": self.provenance.to_dict(),
        }
        target.parent.mkdir(parents=True, exist_ok=True)
        write_file(sidecar(target), (json.dumps(about, indent=1, sort_keys=True) + "\n").encode())
        write_file(target, content)
        return replace(self, path=target)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Training:
        """Load a saved model and its metadata; a model that was changed since is an error."""
        import xgboost

        target = Path(path)
        source = sidecar(target)
        about = read_json(source.parent, source.name, "training")
        check_format(source, about, FORMAT, VERSION)
        content = target.read_bytes()
        if hashlib.sha256(content).hexdigest() != required(about, "sha256", str(source)):
            raise ModelError(f"{target} is not the model that {source.name} describes; train it again")
        model = content
        if target.suffix != ".ubj":
            model = bytes(xgboost.Booster(model_file=bytearray(content)).save_raw("ubj"))
        saved = [each.name for each in fields(cls) if each.name not in ("model", "path")]
        known = {name: required(about, name, str(source)) for name in saved}
        lists = {name: tuple(known[name]) for name in ("features", "classes")}
        made = TrainingProvenance.from_dict(known["provenance"], str(source), "provenance")
        return cls(**{**known, **lists, "provenance": made, "model": model, "path": target})


def sidecar(model: Path) -> Path:
    """The file beside a model that holds its metadata.

    >>> sidecar(Path("models/risk.ubj")).name
    'risk.training.json'
    """
    return model.with_name(f"{model.stem}.training.json")


def check_model_path(path: str | os.PathLike[str], overwrite: bool = False) -> Path:
    """The path, if a model may be saved there; checked before hours of work."""
    if "://" in os.fspath(path):
        raise UsageError(f"{path} is a URL; save the model on this machine, and copy it from there")
    target = Path(path)
    if target.suffix not in SUFFIXES:
        raise UsageError(f"a model is saved as {' or '.join(SUFFIXES)}, not as '{target.name}'; rename it")
    if (parent := unwritable_parent(target)) is not None:
        raise UsageError(f"{target} cannot be created: {parent} is not a writable folder; choose another one")
    for file in (target, sidecar(target)):
        if file.is_dir():
            raise UsageError(f"{file} is a folder; choose another name")
        if file.exists() and not overwrite:
            raise UsageError(f"{file} exists already; choose another name, or allow it to be overwritten (--overwrite)")
    _check_replaceable(target)
    return target


def _check_replaceable(target: Path) -> None:
    """Refuse to replace a model that no training wrote, or the metadata of another model."""
    about = sidecar(target)
    try:
        found = json.loads(about.read_bytes())
        described = found["file"] if found["format"] == FORMAT else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        described = None
    for file in (about, target):
        if file.exists() and described != target.name:
            reason = (
                f"describes {described}" if described is not None and file == about else "was not written by a training"
            )
            raise UsageError(f"{file} {reason}, so it is not replaced; move it elsewhere, or choose another name")
