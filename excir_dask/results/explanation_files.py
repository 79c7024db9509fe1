"""The files of a saved explanation: what is written to its folder, and what is checked when it is read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from excir_dask.errors import LakeError
from excir_dask.results.metadata import Provenance
from excir_dask.results.storage import MANIFEST, digests, write_json

if TYPE_CHECKING:
    import pandas as pd

MAIN = "explanation.json"


def outputs_of(found: Any, source: Path) -> pd.DataFrame:
    """The table of outputs in the main file."""
    import pandas as pd

    rows = found if isinstance(found, list) else []
    if not rows or not all(isinstance(row, dict) and isinstance(row.get("output"), str) for row in rows):
        raise LakeError(f"{source} does not list its outputs ('outputs'); compute the explanation again")
    return pd.DataFrame(rows)


def write_manifest(provenance: Provenance, folder: Path) -> None:
    """Write ``manifest.json`` with the digests of all files that are in the folder.

    A report comes after it: it can be made again from the other files, and may be deleted.
    """
    write_json(folder / MANIFEST, {**provenance.to_dict(), "files": digests(folder)})


def named_groups(groups: pd.DataFrame) -> dict[str, list[str]]:
    """Groups for a later run, without those that vectors and columns of categories form by themselves."""
    found = {}
    for name, members in sorted(zip(groups["group"], groups["members"], strict=True)):
        if not all(member.startswith((f"{name}=", f"{name}[")) for member in members):
            found[name] = list(members)
    return found
