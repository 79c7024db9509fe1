"""The scores of all runs: one Parquet file per run, never changed, so that audits may write at the same time."""

from __future__ import annotations

import io
import json
import logging
import re
import uuid
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from excir_dask.audit.findings import KINDS
from excir_dask.audit.score_errors import scores_of
from excir_dask.audit.store import RUNS, Store
from excir_dask.common.wording import listed
from excir_dask.errors import nearest
from excir_dask.results.explanation import Explanation
from excir_dask.results.storage import MANIFEST

if TYPE_CHECKING:
    from datetime import date

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
ABOUT = ("run", "audit", "window", "date", "finished", "status", "baseline", "rows")
"""columns that describe the run"""
NEEDED = ("run", "audit", "finished", "output", "kind", "name")
"""columns of every file; others may be newer than a file, and are null there"""
SERIES = ["model", "audit"]
"""columns of a series, whose runs are comparable; the audit's name holds the keys of its window"""
_log = logging.getLogger("excir_dask")


def rows_of(run: Mapping[str, Any], explanation: Explanation) -> pd.DataFrame:
    """The rows of a run: one per output and feature or group."""
    import pandas as pd

    tables = [
        scores_of(explanation, output, kind).assign(output=output, kind=kind)
        for output in explanation.outputs["output"]
        for kind in KINDS
    ]
    about = {name: run[name] for name in ABOUT}
    names: list[str] = SCHEMA.names
    return pd.concat([one for one in tables if len(one)], ignore_index=True).assign(**about)[names]


def append(store: Store, run: Mapping[str, Any], explanation: Explanation) -> None:
    """Add a run."""
    table = pa.Table.from_pandas(rows_of(run, explanation), schema=SCHEMA, preserve_index=False)
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    # a unique name, so that two audits never write the same file
    name = f"{run['run']}-{uuid.uuid4().hex[:12]}.parquet"
    store.put(buffer.getvalue(), *_place(str(run["model"])), name)


def repair(store: Store, model: str, audit: str) -> None:
    """Add runs of an audit that have a folder but no file here, because a process was killed in between."""
    known = {info.base_name.rpartition("-")[0] for info in _files(store, model, audit)}
    for run in [info.base_name for info in store.entries(RUNS)]:
        if run.startswith(f"{audit}-") and run not in known and store.has_run(run):
            about = _about(store, run)
            if (about.get("audit"), about.get("model")) == (audit, model):
                _log.warning("%s was missing from the history and has been added", run)
                append(store, about, store.load(run))


def _about(store: Store, run: str) -> dict[str, Any]:
    """What the manifest of a run says about the audit; nothing if it is damaged."""
    try:
        found = json.loads(store.get(RUNS, run, MANIFEST) or b"{}")["audit"]
        return dict(found)
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        _log.warning("%s of run %s is damaged (%s); the run is left out of the history", MANIFEST, run, error)
        return {}


def read(store: Store, model: str | None = None, columns: list[str] | None = None) -> pd.DataFrame:
    """All runs, or those of one model, by day; files that cannot be read are skipped with a warning."""
    import pandas as pd

    wanted = SCHEMA.names if columns is None else columns
    tables = []
    for info in _files(store, model):
        table = _read(store, info, wanted)
        if table is not None:
            of = unquote(info.path.rsplit("/", 2)[-2].removeprefix("model="))
            tables.append(table.assign(model=of))
    if not tables:
        return pd.DataFrame(columns=[*wanted, "model"])
    return _by_day(pd.concat(tables, ignore_index=True))


def runs(store: Store, model: str | None = None) -> pd.DataFrame:
    """A row per run."""
    return read(store, model, list(ABOUT)).drop_duplicates("run", ignore_index=True)


def previous(store: Store, audit: str, model: str, date: str | None) -> str | None:
    """The last run of the same audit and model, or the last one of a day before ``date``."""
    for table in _newest(store, model, audit, ["run", "audit", "date", "finished"]):
        run = str(table["run"].iloc[0])
        if (date is None or days_of(table).iloc[0] < date) and store.has_run(run):
            return run
    return None


def recent(store: Store, model: str, audit: str, date: str | None, most: int) -> pd.DataFrame | None:
    """All rows of the last runs of an audit up to a date, the oldest run first; None if there is no run."""
    import pandas as pd

    found: list[pd.DataFrame] = []
    for table in _newest(store, model, audit, SCHEMA.names):
        if date is None or days_of(table).iloc[0] <= date:
            found.append(table)
        if len(found) == most:
            break
    return pd.concat(found[::-1], ignore_index=True) if found else None


def days_of(table: pd.DataFrame) -> pd.Series[str]:
    """The day that each row counts for: the date of its window, or the day the run ended if the window has none."""
    return table["date"].fillna(table["finished"]).str[:10]


def latest(table: pd.DataFrame) -> pd.DataFrame:
    """Only the last run of each window that was audited more than once."""
    table = table.assign(place=table["window"].fillna(table["run"]))
    by = [name for name in ("model", "audit", "place", "output", "kind", "name") if name in table]
    found = table.sort_values("finished", kind="stable").drop_duplicates(by, keep="last").drop(columns="place")
    return _by_day(found)


def trend(
    store: Store, name: str, audit: str | None = None, model: str | None = None, output: str | None = None,
    kind: str | None = None,
) -> pd.DataFrame:  # fmt: skip
    """Scores of one feature or group: a row per run, series by series.

    Of a window that was audited twice, the later run counts.
    """
    table = of_audit(read(store, model), audit)
    wanted = {"name": name, "output": output, "kind": kind}
    for column, value in wanted.items():
        if value is not None:
            table = table[table[column] == value]
    return latest(table).sort_values([*SERIES, "output", "kind"], kind="stable", ignore_index=True)


def of_audit(table: pd.DataFrame, audit: str | None) -> pd.DataFrame:
    """Rows of one series, or of all series of an audit: ``credit`` includes ``credit,region=eu``."""
    if audit is None:
        return table
    return table[(table["audit"] == audit) | table["audit"].str.startswith(f"{audit},")].reset_index(drop=True)


def newest(table: pd.DataFrame, last: int | None, since: date | None) -> pd.DataFrame:
    """The runs of each series since a day, and of these the last ``last``."""
    if since is not None:
        table = table[days_of(table) >= since.isoformat()]
    if last is not None:
        runs = table.drop_duplicates("run").groupby(SERIES, sort=False)["run"].tail(min(last, len(table)))
        table = table[table["run"].isin(runs)]
    return table.reset_index(drop=True)


def why_empty(store: Store, asked: Mapping[str, str | None], since: str | None) -> str:
    """Why a query finds nothing: its first part (audit, model, output, features or groups) that matches no run.

    ``since`` is given if there are such runs, and all of them are older.
    """
    table = read(store, None, ["audit", "kind", "name", "output", "date", "finished"])
    if len(table) == 0:
        return f"{store.name} has no runs; give the folder that audits name as results"
    for word, value in asked.items():
        if value is None:
            continue
        if word in KINDS:
            table = table[table["kind"] == word]
        column = "name" if word in KINDS else word
        there = sorted(table[column].unique())
        table = of_audit(table, value) if word == "audit" else table[table[column] == value]
        if len(table) == 0:
            several = word if word in KINDS else f"{word}s"
            close = nearest(value, there) if word in KINDS else ""
            hint = close or (f": {listed(there)}" if there else ": there are none")
            return f"{store.name} has no '{value}' among its {several}{hint}"
    return f"{store.name} has no such runs since {since}; the last one is from {days_of(table).max()}"


def _by_day(table: pd.DataFrame) -> pd.DataFrame:
    """Rows ordered by the day that they count for, then by the time the run ended."""
    found = table.assign(day=days_of(table)).sort_values(["day", "finished"], kind="stable", ignore_index=True)
    return found.drop(columns="day")


def _place(model: str) -> tuple[str, str]:
    return FOLDER, f"model={quote(model, safe='')}"


def _files(store: Store, model: str | None, audit: str = "") -> list[fs.FileInfo]:
    """Files of the history, of one audit if given."""
    parts = (FOLDER,) if model is None else _place(model)
    return [
        info
        for info in store.entries(*parts, recursive=True)
        if info.base_name.endswith(".parquet") and info.base_name.startswith(f"{audit}-" if audit else "")
    ]


def _newest(store: Store, model: str, audit: str, columns: list[str]) -> Iterator[pd.DataFrame]:
    """Runs of an audit, one table each, the newest first; files are read as they are asked for."""
    for info in sorted(_files(store, model, audit), key=lambda info: _stamp(info.base_name, audit), reverse=True):
        table = _read(store, info, columns)
        if table is not None and len(table) and table["audit"].iloc[0] == audit:
            yield table


def _stamp(file: str, audit: str) -> str:
    """Day and time of a run from the name of its file, so that files need not be read to be ordered.

    >>> _stamp("plant-2026-09-01-20260902T031500Z-1a2b3c-4d.parquet", "plant")
    '2026-09-01-20260902T031500Z-1a2b3c-4d.parquet'
    >>> _stamp("plant-20260902T031500Z-1a2b3c-4d.parquet", "plant")
    '2026-09-02-20260902T031500Z-1a2b3c-4d.parquet'
    """
    return re.sub(r"^(\d{4})(\d\d)(\d\d)T", r"\1-\2-\3-\g<0>", file.removeprefix(f"{audit}-"))


def _read(store: Store, info: fs.FileInfo, columns: list[str]) -> pd.DataFrame | None:
    """Some columns of a file; a column that the file does not have is null, unless no run is known without it."""
    try:
        with pq.ParquetFile(info.path, filesystem=store.filesystem) as file:
            table = file.read(columns)
        absent = [name for name in columns if name not in table.column_names]
        if lost := [name for name in absent if name in NEEDED]:
            raise pa.ArrowInvalid(f"it has no column {listed(lost)}")
        for name in absent:
            kind = SCHEMA.field(name).type
            table = table.append_column(name, pa.nulls(len(table), kind))
        table = table.select(columns)
    except (pa.ArrowException, OSError) as error:
        _log.warning("%s cannot be read and is left out of the history: %s", info.path, error)
        return None
    frame: pd.DataFrame = table.to_pandas()
    return frame
