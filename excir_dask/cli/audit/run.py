"""The command ``excir audit run``."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from excir_dask.cli.audit.options import WINDOW, days_to_audit, keys_of_window
from excir_dask.cli.command import CheckedCommand
from excir_dask.cli.console import say
from excir_dask.cli.options import CONSOLE, LAKE, RUNNING, THREADS, options
from excir_dask.cli.running import running
from excir_dask.cli.types import FilePath
from excir_dask.errors import ExcirError, exit_code_of

if TYPE_CHECKING:
    from datetime import date

    from excir_dask.audit.config import Config

FAILING = {"fail": ("fail",), "warn": ("fail", "warn"), "never": ()}
"""statuses of a run after which ``--fail-on`` ends with 1"""


@dataclass
class _Report:
    """What the audited days have come to so far."""

    name: str
    as_json: bool
    runs: list[dict[str, Any]] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)
    """exit codes of days that could not be audited"""

    def status(self) -> str:
        found = {run["status"] for run in self.runs}
        return next((level for level in ("error", "fail", "warn") if level in found), "ok")

    def code(self, fail_on: str) -> int:
        if self.codes:
            return min(self.codes)  # what a retry cannot help comes before what it may
        return int(any(run["status"] in FAILING[fail_on] for run in self.runs))

    def end(self, status: str, code: int, error: str | None = None) -> None:
        """Print the line of JSON that an audit ends with; at a terminal only if asked for."""
        if self.as_json or not sys.stdout.isatty():
            content = {"audit": self.name, "status": status, "exit_code": code, "runs": self.runs}
            click.echo(json.dumps(content if error is None else {**content, "error": error}, allow_nan=False))


@click.command(cls=CheckedCommand)
@click.argument("config", type=FilePath())
@options(WINDOW)
@click.option("--backfill", nargs=2, metavar="FROM TO", help="All days from one date to another, in order.")
@options(LAKE)
@click.option("--no-baseline", is_flag=True, help="Compare with nothing, as for the run that becomes the baseline.")
@click.option(
    "--fail-on", type=click.Choice(list(FAILING)), default="fail", show_default=True,
    help="From which severity on the exit code is 1.",
)  # fmt: skip
@options(THREADS, RUNNING, CONSOLE)
@click.pass_context
def run(
    ctx: click.Context, /, config: str, *, day: str | None, keys: Sequence[tuple[str, str]],
    backfill: tuple[str, str] | None, storage_options: dict[str, Any] | None, table_version: int | None,
    no_baseline: bool, fail_on: str, as_json: bool, **given: Any,
) -> None:  # fmt: skip
    """Audit the window of CONFIG, a YAML file that docs/AUDIT.md describes.

    It runs where the configuration says, unless --scheduler or --cluster is given.
    """
    from excir_dask.audit.config import read_config, with_options
    from excir_dask.audit.run import error_text
    from excir_dask.render.text.audit import tally

    report = _Report(config, as_json)
    try:
        asked = with_options(read_config(config), storage_options, table_version)
        report.name = asked.name
        days = days_to_audit(asked, day, backfill)
        if given["scheduler"] is None and given["cluster"] is None:
            given |= {"scheduler": asked.scheduler, "cluster": asked.cluster}
        with running({**given, "keys": keys_of_window(keys), "baseline": not no_baseline}) as arguments:
            for one in days:
                _audit(asked, one, arguments, report, one_of_many=backfill is not None)
    except Exception as error:  # the group of all commands prints it
        if not isinstance(error, click.ClickException):
            report.end("error", exit_code_of(error), error_text(error))
        raise
    if backfill and not as_json:
        click.echo(tally([run["status"] for run in report.runs]))
    code = report.code(fail_on)
    report.end(report.status(), code)
    ctx.exit(code)


def _audit(config: Config, day: date | None, arguments: dict[str, Any], report: _Report, *, one_of_many: bool) -> None:
    """Audit one day; a bad day among many is reported, and the others are audited all the same."""
    from excir_dask.audit.run import audit
    from excir_dask.audit.window import WindowMissingError
    from excir_dask.render.text.audit import summary

    try:
        found = audit(config, day, **arguments)
    except ExcirError as error:
        if not (one_of_many and (error.exit_code == 3 or isinstance(error, WindowMissingError))):
            raise
        say(f"excir: {day}: {error}")
        report.runs.append({"date": str(day), "status": "error", "error": str(error)})
        report.codes.append(error.exit_code)
        return
    report.runs.append(found.to_dict())
    if not report.as_json:
        click.echo(summary(found.about, found.violations))
