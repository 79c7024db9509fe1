"""The files of a saved explanation: what is written to its folder, and what is checked when it is read."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from excir_dask.errors import LakeError
from excir_dask.graph.state_files import write_state
from excir_dask.results.group_files import write_groups
from excir_dask.results.metadata import Provenance
from excir_dask.results.storage import MANIFEST, STATE, digests, write_json

if TYPE_CHECKING:
    import pandas as pd

    from excir_dask.results.explanation import Explanation

MAIN = "explanation.json"

GROUPS_NOTE = "groups of this explanation; a later run reads them with --groups"


def outputs_of(found: Any, source: Path) -> pd.DataFrame:
    """The table of outputs in the main file."""
    import pandas as pd

    rows = found if isinstance(found, list) else []
    if not rows or not all(isinstance(row, dict) and isinstance(row.get("output"), str) for row in rows):
        raise LakeError(f"{source} does not list its outputs ('outputs'); compute the explanation again")
    return pd.DataFrame(rows)


def write_files(explanation: Explanation, folder: Path) -> None:
    """Fill a folder with everything that :func:`write_manifest` then lists."""
    groups = explanation.groups
    explanation.features.to_parquet(folder / "features.parquet", index=False)
    groups.to_parquet(folder / "groups.parquet", index=False)
    (folder / MAIN).write_text(explanation.to_json(), encoding="utf-8")
    if len(groups) or explanation.facts.settings.group_correlated is not None:
        write_groups(_named_groups(groups), folder / "groups.yaml", GROUPS_NOTE)
    if isinstance(explanation.source, Path):
        shutil.copyfile(explanation.source, folder / STATE)
    elif explanation.source is not None:
        write_state(explanation.source, folder / STATE)


def write_manifest(provenance: Provenance, folder: Path) -> None:
    """Write ``manifest.json`` with the digests of all files that are in the folder.

    A report comes after it: it can be made again from the other files, and may be deleted.
    """
    write_json(folder / MANIFEST, {**provenance.to_dict(), "files": digests(folder)})


def _named_groups(groups: pd.DataFrame) -> dict[str, list[str]]:
    """Groups for a later run, without those that vectors and columns of categories form by themselves."""
    found = {}
    for name, members in sorted(zip(groups["group"], groups["members"], strict=True)):
        if not all(member.startswith((f"{name}=", f"{name}[")) for member in members):
            found[name] = list(members)
    return found
