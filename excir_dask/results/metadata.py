"""What an explanation says beside its tables: facts that repeat with the run, and where everything came from.

Attribute names are those of the fields in ``explanation.json`` (docs/FIELDS.md) and ``manifest.json``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from excir_dask.results.record import OLDER, Record


@dataclass(frozen=True, kw_only=True)
class ModelSettings(Record):
    """The model as it was asked for."""

    kind: str
    """such as xgboost"""
    predict_type: str
    """such as margin"""


@dataclass(frozen=True, kw_only=True)
class RunSettings(Record):
    """What the run was asked for."""

    outputs: Mapping[str, str | None]
    """output -> its column; None where a model made it"""
    model: ModelSettings | None
    """None where outputs are columns of the lake"""
    fraction: float
    """share of the rows"""
    sampling: str
    """what a sample is drawn from: rows or row-groups"""
    seed: int
    weights: str | None
    """column of row weights"""
    centering: str
    rank_by: str
    """what ranks follow: strength, dependence or cir"""
    categoricals: str
    """what became of text columns: omit or indicators"""
    max_categories: int
    """most categories per column that are features"""
    group_correlated: float | None
    """correlation from which on groups were found; None where none were looked for"""
    group_rows: int | None
    """rows in which groups were looked for"""
    where: str | None = None
    """condition on the rows; None where all count"""
    dependence: bool = True
    """rows were counted by cells"""
    by: tuple[str, ...] = ()
    """columns whose values are the segments"""


@dataclass(frozen=True, kw_only=True)
class RowCounts(Record):
    """How many rows, by what became of them."""

    lake: int
    """in the lake, or in the window of it"""
    sampled: int
    without_output: int
    """dropped because an output is missing"""
    without_weight: int
    """dropped because the weight is missing or zero"""
    used: int
    """rows that were scored"""
    row_groups: int
    """row groups that were read; 0 for a DataFrame"""
    filtered_out: int = 0
    """dropped because they do not match the row filter; only in the sampled row groups, where whole ones are drawn"""


@dataclass(frozen=True, kw_only=True)
class SegmentFacts(RowCounts):
    """The same for one segment."""

    name: str

    @property
    def counts(self) -> RowCounts:
        """Without the name."""
        return RowCounts(**{each.name: getattr(self, each.name) for each in fields(RowCounts)})


@dataclass(frozen=True, kw_only=True)
class AutoStep(Record):
    """One sample that ``fraction="auto"`` tried."""

    fraction: float
    rows: int
    jaccard: float
    """expected Jaccard of its top with that of all rows"""
    probability: float
    """that the target is met"""


@dataclass(frozen=True, kw_only=True)
class AutoSampling(Record):
    """How ``fraction="auto"`` chose the sample."""

    target_jaccard: float
    confidence: float
    """probability that was asked for"""
    k: int
    """size of the top"""
    steps: tuple[AutoStep, ...]
    """samples that were tried, in order"""


@dataclass(frozen=True, kw_only=True)
class Facts(Record):
    """Everything beside the scores that must be the same when the run is repeated."""

    settings: RunSettings
    rows: RowCounts
    constant: tuple[str, ...] = field(metadata={OLDER: "still"})
    """features that vary in no row of the lake; listed for samples"""
    out_of_range: tuple[str, ...] = field(metadata={OLDER: "unlike"})
    """outputs and weights that reach far beyond the sample in row groups outside it"""
    left_out: Mapping[str, str]
    """column that was not explained -> reason"""
    converted: Mapping[str, str]
    """column whose type was changed -> the types it has in the files"""
    segments: tuple[SegmentFacts, ...] = ()
    """rows of each segment, those with most of them first"""
    auto: AutoSampling | None = None
    """None where the fraction was given"""


@dataclass(frozen=True, kw_only=True)
class LakeSource(Record):
    """What was read. A DataFrame has a name only."""

    name: str
    files: int | None = None
    rows: int | None = None
    bytes: int | None = None
    fingerprint: str | None = None
    """SHA-256 over the files' paths, sizes, times and schemas"""
    remarks: tuple[str, ...] = ()
    """what a reader must know about these files"""
    page_checksums: Mapping[str, Any] | None = None
    """whether they were verified, files that were looked at, and files without any"""
    table: str | None = None
    """kind of table: Delta Lake or Iceberg"""
    version: int | None = None
    """of the table"""


@dataclass(frozen=True, kw_only=True)
class ModelSource(Record):
    """The model that made the outputs; ``extra`` has what its kind tells, such as the number of trees."""

    kind: str
    sha256: str | None
    """None for a function that cannot be pickled"""
    predict_type: str
    columns: tuple[str, ...]
    """columns that it was given, in its order"""


@dataclass(frozen=True, kw_only=True)
class Provenance(Record):
    """What may differ between two runs with the same result."""

    lake: LakeSource
    model: ModelSource | None
    """None where outputs are columns of the lake"""
    slices: int
    budget: int
    """decoded bytes per slice"""
    bytes_read: int
    """compressed bytes"""
    resumed_states: int | None
    """states that came from a checkpoint; None without one"""
    seconds: float
    finished: str
    """date and time in UTC, ISO 8601"""
    versions: Mapping[str, str]
    """package -> version"""
    run_id: str | None = None
    """the same for the same options and files; None for a DataFrame"""
    merged: tuple[str, ...] | None = None
    """ids of the runs whose states were added up; None for a run of its own"""
    audit: Mapping[str, Any] | None = None
    """what manifest.json of an audited window says about the audit"""
