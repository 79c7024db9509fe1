"""The folder of an explanation: what is read back from it, and what its files are called."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from excir_dask.errors import LakeError
from excir_dask.graph.state_files import StateFile
from excir_dask.results.metadata import Facts, Provenance
from excir_dask.results.record import required
from excir_dask.results.segments import STATES, read_tables
from excir_dask.results.storage import (
    MANIFEST,
    STATE,
    check_digests,
    check_format,
    digests,
    read_json,
    write_json,
)
from excir_dask.results.tables import CHANCE_COLUMNS, DEPENDENCE_COLUMNS, completed

if TYPE_CHECKING:
    import pandas as pd

FORMAT = "excir-explanation"
VERSION = 1
MAIN = "explanation.json"


def read_files(folder: Path, check_state: bool = True) -> dict[str, Any]:
    """The fields of a saved explanation; a file that changed since is an error, states only if they are checked."""
    import pandas as pd

    content = read_json(folder, MAIN, "explanation")
    manifest = read_json(folder, MANIFEST, "explanation")
    files = manifest.pop("files", None)
    check_digests(folder, files, "explanation", later=() if check_state else (STATE, STATES))
    check_format(folder, content, FORMAT, VERSION)
    main = str(folder / MAIN)
    groups = completed(pd.read_parquet(folder / "groups.parquet"), CHANCE_COLUMNS, "numerator")
    groups["members"] = [list(members) for members in groups["members"]]
    features = pd.read_parquet(folder / "features.parquet")
    return {
        "features": completed(features, (*CHANCE_COLUMNS, *DEPENDENCE_COLUMNS), "stderr_rows"),
        "groups": groups,
        "outputs": _outputs(required(content, "outputs", main), main),
        "facts": Facts.from_dict(required(content, "facts", main), main, "facts"),
        "provenance": Provenance.from_dict(manifest, str(folder / MANIFEST)),
        "source": StateFile(folder / STATE, files.get(STATE)) if (folder / STATE).is_file() else None,
        "by": read_tables(folder, files),
    }


def _outputs(found: Any, source: str) -> pd.DataFrame:
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
