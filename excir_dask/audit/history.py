"""The scores of all runs: one Parquet file a run, never changed, so that any number of audits may write at once."""

from __future__ import annotations

import io
import logging
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.parquet as pq

from excir_dask.audit.findings import KINDS
from excir_dask.audit.scores import scores_of
from excir_dask.audit.store import Store
from excir_dask.explanation import Explanation

if TYPE_CHECKING:
    import pandas as pd

FOLDER = "history"
SCHEMA = pa.schema(
    [
        ("run", pa.string()),
        ("audit", pa.string()),
        ("window", pa.string()),
        ("date", pa.string()),
        ("finished", pa.string()),
        ("status", pa.string()),
        ("baseline", pa.string()),
        ("rows", pa.int64()),
        ("output", pa.string()),
        ("kind", pa.string()),
        ("name", pa.string()),
        ("cir", pa.float64()),
        ("error", pa.float64()),
        ("strength", pa.float64()),
        ("rank", pa.int64()),
        ("n", pa.int64()),
        ("missing", pa.int64()),
    ]
)
_log = logging.getLogger("excir_dask")


def append(store: Store, model: str, run: Mapping[str, Any], explanation: Explanation) -> None:
    """Add a run: a row per output and feature or group."""
    import pandas as pd

    tables = [
        scores_of(explanation, output, kind).assign(output=output, kind=kind)
        for output in explanation.outputs["output"]
        for kind in KINDS
    ]
    about = {name: run[name] for name in ("run", "audit", "window", "date", "finished", "status", "baseline", "rows")}
    table = pd.concat([one for one in tables if len(one)], ignore_index=True).assign(**about)
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pandas(table[SCHEMA.names], schema=SCHEMA, preserve_index=False), buffer)
    # the file's name is its own, so that two audits cannot write the same one
    name = f"{run['run']}-{uuid.uuid4().hex[:12]}.parquet"
    store.put(buffer.getvalue(), FOLDER, f"model={quote(model, safe='')}", name)


def read(store: Store, model: str | None = None, columns: list[str] | None = None) -> pd.DataFrame:
    """All runs, or those of one model, by date and time; a file that cannot be read is left out with a warning."""
    import pandas as pd

    parts = [FOLDER] if model is None else [FOLDER, f"model={quote(model, safe='')}"]
    wanted = SCHEMA.names if columns is None else columns
    tables = []
    for info in store.inside(*parts, recursive=True):
        if not info.base_name.endswith(".parquet"):
            continue
        try:
            table = pq.read_table(info.path, filesystem=store.filesystem, columns=wanted, partitioning=None)
        except (pa.ArrowException, OSError) as error:
            _log.warning("%s is left out of the history: %s", info.path, error)
            continue
        of = unquote(info.path.rsplit("/", 2)[-2].removeprefix("model="))
        tables.append(table.to_pandas().assign(model=of))
    if not tables:
        return pd.DataFrame(columns=[*wanted, "model"])
    found = pd.concat(tables, ignore_index=True)
    by = [name for name in ("date", "finished", "run") if name in found]
    return found.sort_values(by, kind="stable", ignore_index=True, na_position="first")


def runs(store: Store, model: str | None = None) -> pd.DataFrame:
    """A row per run."""
    columns = ["run", "audit", "window", "date", "finished", "status", "baseline", "rows"]
    return read(store, model, columns).drop_duplicates("run", ignore_index=True)


def previous(store: Store, audit: str, model: str, date: str | None) -> str | None:
    """The run of the same audit and model before a date (or simply the last one, without dates)."""
    table = runs(store, model)
    table = table[table["audit"] == audit]
    if date is not None:
        table = table[table["date"].notna() & (table["date"].astype(str) < date)]
    return next((run for run in reversed(table["run"].tolist()) if store.has(run)), None)


def trend(
    store: Store, name: str, audit: str | None = None, model: str | None = None, output: str | None = None,
    kind: str | None = None,
) -> pd.DataFrame:  # fmt: skip
    """Scores of one feature or group, a row per run; of a window that was audited twice, the later run."""
    table = read(store, model)
    wanted = {"name": name, "audit": audit, "output": output, "kind": kind}
    for column, value in wanted.items():
        if value is not None:
            table = table[table[column] == value]
    table = table.assign(place=table["window"].fillna(table["run"]))
    by = ["model", "audit", "place", "output", "kind"]
    latest = table.sort_values("finished", kind="stable").drop_duplicates(by, keep="last")
    return latest.drop(columns="place").sort_values(
        ["output", "kind", "date", "finished"], kind="stable", ignore_index=True
    )
