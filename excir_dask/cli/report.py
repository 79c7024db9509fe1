"""The command ``excir report``: a saved result as one page for a browser."""

from __future__ import annotations

import json
import webbrowser
from pathlib import Path
from typing import Any

import click

from excir_dask.cli.config_file import CONFIG, Command
from excir_dask.cli.console import log_to_stderr, say
from excir_dask.cli.options import CONSOLE, options
from excir_dask.cli.storage_options import storage_option
from excir_dask.cli.types import FilePath
from excir_dask.errors import LakeError, UsageError
from excir_dask.results.storage import REPORT


@click.command(cls=Command)
@click.argument("folder", type=FilePath())
@options(CONFIG)
@click.option("--out", type=FilePath(dir_okay=False), help="File to write. [default: report.html in FOLDER]")
@click.option("--open", "opened", is_flag=True, help="Open the file in a browser.")
@storage_option("For the store of FOLDER, as fsspec calls it; a.b=VALUE for nested ones; repeat for several.")
@options(CONSOLE)
def report(
    folder: str,
    out: str | None,
    opened: bool,
    storage_options: dict[str, Any] | None,
    as_json: bool,
    quiet: bool,
    verbose: bool,
) -> None:
    """Write a saved explanation, sweep or audit as one HTML file that works offline.

    FOLDER is a result of `excir explain --out` or `excir sweep --out`, or a run of an audit (RESULTS/runs/...), which
    may be in an object store. The page holds scores and counts, never rows: ranking, all features to search and sort,
    groups, columns left out, quality, provenance; for an audit the verdict, changes and trends.

    \b
    excir report result/ --open
    excir report sweep/ --out sweep.html
    excir report audits/runs/RUN
    excir report s3://bucket/audits/runs/RUN --out run.html
    """
    from excir_dask.render.html.page import require

    require()
    with log_to_stderr(quiet, verbose):
        made = _stored(folder, out, storage_options) if "://" in folder else _saved(Path(folder), out)
    click.echo(json.dumps({"report": made}) if as_json else made)
    if opened:
        _open(made)


def _open(made: str) -> None:
    """Show a local file in a browser."""
    if "://" in made:
        raise UsageError(
            f"the report was written to {made}, which a browser may not open; name a local file with --out"
        )
    if not webbrowser.open(Path(made).absolute().as_uri()):
        say(f"no browser could be started; open {made} yourself")


def _saved(source: Path, out: str | None) -> str:
    """Write the report of a local folder; returns the file's name."""
    from excir_dask.results.audit import VIOLATIONS, AuditResult
    from excir_dask.results.explanation import Explanation
    from excir_dask.results.sweep import Sweep

    # an audit's run holds an explanation too
    kinds: dict[str, type[AuditResult] | type[Explanation] | type[Sweep]] = {
        VIOLATIONS: AuditResult, "explanation.json": Explanation, "sweep.json": Sweep,
    }  # fmt: skip
    kind = next((kinds[name] for name in kinds if (source / name).is_file()), None)
    if kind is None:
        raise LakeError(
            f"{source} is not a saved result (it holds none of {', '.join(kinds)}); save one with "
            "`excir explain ... --out FOLDER` or `excir sweep ... --out FOLDER`"
        )
    return str(kind.load(source).report(source / REPORT if out is None else out))


def _stored(run: str, out: str | None, storage_options: dict[str, Any] | None) -> str:
    """Write the report of an audit's run at a URL, beside the run if no file is named."""
    from excir_dask.audit.store import RUNS, open_store, split_run
    from excir_dask.audit.window import join_path
    from excir_dask.results.audit import AuditResult

    try:
        results, name = split_run(run)
    except UsageError:
        raise UsageError(
            "only runs of audits (RESULTS/runs/NAME) are read from a URL; copy the folder here, and name the copy"
        ) from None
    store = open_store(results, storage_options)
    with store.local_folder(store.check_run(name)) as source:
        made = AuditResult.load(source).report(source / REPORT if out is None else out)
        if out is not None:
            return str(made)
        store.put(made.read_bytes(), RUNS, name, REPORT)
    return join_path(store.name, RUNS, name, REPORT)
