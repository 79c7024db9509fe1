"""The segments of an explanation: tables with a column ``segment``, and their states."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from excir_dask.graph.segment_states import SegmentStates
from excir_dask.graph.state_files import StateFile, write_state
from excir_dask.results.tables import group_table

if TYPE_CHECKING:
    import pandas as pd

TABLES = {
    "features": "segments.parquet",
    "groups": "segment_groups.parquet",
    "outputs": "segment_outputs.parquet",
}
"""table -> its file"""

STATES = "segments.bin"
"""file with the states"""


@dataclass(frozen=True)
class Segments:
    """Scores of every segment; those with most rows come first."""

    features: pd.DataFrame
    groups: pd.DataFrame
    outputs: pd.DataFrame
    source: SegmentStates | StateFile | None = field(default=None, compare=False)
    """what :attr:`states` come from: states, or the file of them"""

    @property
    def names(self) -> list[str]:
        return [str(name) for name in self.outputs["segment"].unique()]

    @property
    def states(self) -> SegmentStates | None:
        return self.source.read_segments() if isinstance(self.source, StateFile) else self.source

    def of(self, name: str) -> dict[str, pd.DataFrame]:
        """The tables of one segment."""
        tables = {kind: getattr(self, kind) for kind in TABLES}
        return {
            kind: table[table["segment"] == name].drop(columns="segment").reset_index(drop=True)
            for kind, table in tables.items()
        }

    def regrouped(self, groups: Mapping[str, Sequence[str]], rank_by: str) -> Segments:
        """The same with other groups."""
        return replace(self, groups=segment_groups(self.features, groups, rank_by))

    def write(self, folder: Path) -> None:
        for kind, file in TABLES.items():
            getattr(self, kind).to_parquet(folder / file, index=False)
        if isinstance(self.source, StateFile):
            shutil.copyfile(self.source.path, folder / STATES)
        elif self.source is not None:
            write_state(self.source, folder / STATES)


def segment_groups(features: pd.DataFrame, groups: Mapping[str, Sequence[str]], rank_by: str) -> pd.DataFrame:
    """Groups of every segment, from its features."""
    import pandas as pd

    parts = []
    for name, table in features.groupby("segment", sort=False):
        found = group_table(table, groups, rank_by)
        found.insert(0, "segment", name)
        parts.append(found)
        if not groups:  # a table without rows is the same for all
            break
    return pd.concat(parts, ignore_index=True)


def read_tables(folder: Path, files: Mapping[str, str]) -> Segments | None:
    """The segments of a saved explanation, whose files have these digests; None where it has none."""
    import pandas as pd

    if not (folder / TABLES["features"]).is_file():
        return None
    tables = {kind: pd.read_parquet(folder / file) for kind, file in TABLES.items()}
    tables["groups"]["members"] = [list(members) for members in tables["groups"]["members"]]
    return Segments(
        **tables, source=StateFile(folder / STATES, files.get(STATES)) if (folder / STATES).is_file() else None
    )
