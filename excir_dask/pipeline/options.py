"""Every option of :func:`~excir_dask.explain`, in one place: default, values it takes, and what it decides.

The command line, files of options, audits, sweeps and the run id read these fields. A new option is a field here and a
documented keyword of ``explain``.
"""

# ruff: noqa: RUF009 (_option makes a field, which is no shared default)
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import TYPE_CHECKING, Any

from excir_dask.errors import UsageError
from excir_dask.kernels.centers import CENTERINGS
from excir_dask.kernels.scores import RANKINGS
from excir_dask.lake.plan import DEFAULT_BUDGET
from excir_dask.lake.sample import SAMPLINGS
from excir_dask.models.load import PREDICT_TYPES
from excir_dask.pipeline.option_kinds import (
    Bytes,
    Choice,
    Columns,
    Flag,
    Groups,
    Integer,
    Kind,
    Model,
    Names,
    Path,
    Result,
    Scheduler,
    Secrets,
    Share,
    Text,
    Where,
)

if TYPE_CHECKING:
    from distributed import Client

    from excir_dask.results.explanation import Explanation

AUTO = "auto"
"""fraction of a sample that grows until it is large enough"""


class Counts(Enum):
    """How an option counts for the run id."""

    AS_GIVEN = "as given"
    RESOLVED = "by what it stands for in a lake: columns, the bytes of a model, members of groups"
    ADAPTIVE = "as given, where the fraction is auto"
    NEVER = "never: the result does not depend on it"


@dataclass(frozen=True)
class Option:
    """All that is known of an option, except its default."""

    kind: Kind
    help: str
    """one line, for the command line"""
    counts: Counts
    metavar: str | None
    """what the command line calls its value"""
    typed: bool
    """it is an option of the command line"""


def _option(
    default: Any,
    kind: Kind,
    help: str,
    counts: Counts = Counts.AS_GIVEN,
    *,
    metavar: str | None = None,
    typed: bool = True,
) -> Any:
    """A field of the dataclass."""
    option = Option(kind, help, counts, metavar, typed)
    return field(default=default, repr=not isinstance(kind, Secrets), metadata={"option": option})


@dataclass(frozen=True, kw_only=True)
class ExplainOptions:
    """The options of one explanation; :func:`~excir_dask.explain` says more of each."""

    output: str | Sequence[str] | Mapping[str, str] | None = _option(
        None, Columns(), "Column of model outputs, optionally with a name; repeat for several.",
        Counts.RESOLVED, metavar="[CLASS=]COLUMN",
    )  # fmt: skip
    model: Any = _option(
        None, Model(), "In place of --output: an XGBoost, LightGBM or ONNX file.", Counts.RESOLVED, metavar="FILE"
    )
    predict_type: str = _option("margin", Choice(PREDICT_TYPES), "Output of the model to explain.", Counts.RESOLVED)
    model_columns: Sequence[str] | None = _option(
        None, Names(), "Columns of a model that does not name them, in its order.", Counts.RESOLVED
    )
    allow_pickle: bool = _option(
        False, Flag(), "Load a pickle or joblib file, which runs the code in it.", Counts.NEVER
    )
    features: str | Sequence[str] | None = _option(
        None, Names(), "Names or patterns to explain; '!name' excludes columns.", Counts.RESOLVED
    )
    categoricals: str = _option(
        "omit", Choice(("omit", "indicators")), "Text columns: left out, or one 0/1 feature per category."
    )
    max_categories: int = _option(
        20, Integer(1), "Largest categories of a column that become features; the others become one."
    )
    groups: Mapping[str, Sequence[str]] | str | os.PathLike[str] | None = _option(
        None, Groups(), "YAML or JSON file of groups: name: [features].", Counts.RESOLVED, metavar="FILE"
    )
    group_prefix: str | None = _option(
        None, Text(), "Group features by their names up to the last SEP.", Counts.RESOLVED, metavar="SEP"
    )
    group_correlated: float | None = _option(
        None, Share(), "Find groups with rank correlations of at least R.", Counts.RESOLVED, metavar="R"
    )
    group_rows: int = _option(5000, Integer(2), "Rows to find groups in.")
    weights: str | None = _option(None, Text(), "Column of row weights.", Counts.RESOLVED, metavar="COLUMN")
    where: str | None = _option(
        None, Where(), "Rows to explain, such as \"date >= '2026-09-01' and region == 'EU'\".", metavar="CONDITION"
    )
    by: str | Sequence[str] | None = _option(
        None, Names(), "Column whose values are segments, each with its own scores; repeat for two columns.",
        Counts.RESOLVED, metavar="COLUMN",
    )  # fmt: skip
    fraction: float | str = _option(
        1.0, Share(AUTO), "Share of the rows to use, or 'auto' for as many as the target takes.", Counts.RESOLVED
    )
    sampling: str | None = _option(
        None, Choice(SAMPLINGS),
        "Draw rows, or whole row groups and read only those. [default: rows; auto chooses]",
        Counts.RESOLVED,
    )  # fmt: skip
    seed: int = _option(0, Integer(), "Seed of the row sample.")
    target_jaccard: float = _option(
        0.9, Share(), "With --fraction auto: Jaccard of the top features with those of all rows.", Counts.ADAPTIVE
    )
    confidence: float = _option(
        0.95, Share(), "With --fraction auto: probability that the target is met.", Counts.ADAPTIVE
    )
    k: int = _option(8, Integer(1), "Size of the top.", Counts.ADAPTIVE)
    centering: str = _option("midhinge", Choice(CENTERINGS), "Centre of features and outputs.")
    rank_by: str = _option("strength", Choice(RANKINGS), "Value to rank by.")
    dependence: bool = _option(True, Flag(), "Count rows by cells, for dependence and what bends.")
    reference: str | os.PathLike[str] | Explanation | None = _option(
        None, Result(), "Saved result whose provisional centres to use, so that both can be merged: there is no pilot.",
        Counts.RESOLVED, metavar="RUN",
    )  # fmt: skip
    budget: int | str = _option(DEFAULT_BUDGET, Bytes(), "Decoded bytes that one slice may hold.", Counts.RESOLVED)
    scheduler: str | Client | None = _option(
        None, Scheduler(), "Address of a dask scheduler. [default: this machine]", Counts.NEVER, metavar="ADDRESS"
    )
    cluster: str | os.PathLike[str] | None = _option(
        None, Path(), "In place of --scheduler: a file such as those in cluster/.", Counts.NEVER, metavar="FILE"
    )
    checkpoint: str | os.PathLike[str] | None = _option(
        None, Path(url=True),
        "Save the states of finished slices here (a path or URL that workers reach); the same command resumes.",
        Counts.NEVER, metavar="FOLDER",
    )  # fmt: skip
    storage_options: Mapping[str, Any] | None = _option(
        None, Secrets(), "For the store of LAKE, as fsspec calls it; a.b=VALUE for nested ones; repeat for several.",
        Counts.NEVER, metavar="KEY=VALUE",
    )  # fmt: skip
    table_version: int | None = _option(
        None, Integer(), "Version of a Delta Lake table, or snapshot id of an Iceberg one. [default: the current one]",
        Counts.RESOLVED, metavar="N",
    )  # fmt: skip
    verify_checksums: bool = _option(
        True, Flag(), "Verify the checksums of pages; a mismatch ends the run.", Counts.NEVER
    )
    progress: bool | None = _option(None, Flag(), "Show progress.", Counts.NEVER, typed=False)
    out: str | os.PathLike[str] | None = _option(
        None, Path(), "Folder to save the result in.", Counts.NEVER, metavar="FOLDER"
    )
    overwrite: bool = _option(False, Flag(), "Replace another result that is already there.", Counts.NEVER)
    force: bool = _option(
        False, Flag(), "Compute again, even if the result of the same options and files is there.", Counts.NEVER
    )

    def __post_init__(self) -> None:
        for name in OPTIONS:
            check_option(name, getattr(self, name))
        if self.rank_by == "dependence" and not self.dependence:
            raise UsageError(
                "rank_by is 'dependence', and dependence is off; leave out --no-dependence, or rank by strength or cir"
            )

    @property
    def adaptive(self) -> bool:
        """The sample grows until it is large enough."""
        return self.fraction == AUTO


OPTIONS: dict[str, Option] = {found.name: found.metadata["option"] for found in fields(ExplainOptions)}
"""in the order of the keywords of ``explain``"""

DEFAULTS: dict[str, Any] = {found.name: found.default for found in fields(ExplainOptions)}


def check_option(name: str, value: Any, label: str | None = None) -> None:
    """Reject a value that an option does not take; messages call the option ``label``."""
    if value is not None or DEFAULTS[name] is not None:
        OPTIONS[name].kind.check(label or name, value)
