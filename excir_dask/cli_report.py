"""The command ``excir report``: a saved result as one page for a browser."""

from __future__ import annotations

import json
from pathlib import Path

import click

from excir_dask.cli_config import CONFIG, Command
from excir_dask.cli_options import CONSOLE, options
from excir_dask.cli_running import loudly
from excir_dask.cli_types import FilePath
from excir_dask.errors import LakeError
from excir_dask.folders import REPORT


@click.command(cls=Command)
@click.argument("folder", type=FilePath())
@options(CONFIG)
@click.option("--out", type=FilePath(dir_okay=False), help="File to write. [default: report.html in FOLDER]")
@options(CONSOLE)
def report(folder: str, out: str | None, as_json: bool, quiet: bool, verbose: bool) -> None:
    """Write a saved explanation, sweep or audit as one HTML file that works offline.

    FOLDER is what `excir explain --out` or `excir sweep --out` saved, or a run of an audit (RESULTS/runs/...). The
    page holds scores and counts, never rows: ranking, all features to search and sort, groups, what was left out,
    quality, provenance; of an audit the verdict, what changed and trends.

    \b
    excir report result/
    excir report sweep/ --out sweep.html
    excir report audits/runs/RUN
    """
    from excir_dask.audit.result import VIOLATIONS, AuditResult
    from excir_dask.explanation import Explanation
    from excir_dask.report.page import require
    from excir_dask.transfer.result import Sweep

    require()
    source = Path(folder)
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
    with loudly(quiet, verbose):
        made = str(kind.load(source).report(source / REPORT if out is None else out))
    click.echo(json.dumps({"report": made}) if as_json else made)
