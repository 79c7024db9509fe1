"""The commands of ``excir audit``: run, validate, baseline, history and compare."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from excir_dask.cli.lake_options import lake_options
from excir_dask.cli.options import CONSOLE, JSON, RUNNING, THREADS, options
from excir_dask.cli.running import running
from excir_dask.cli.types import FilePath
from excir_dask.errors import MISTAKE, ExcirError, UsageError, exit_code_of, nearest

if TYPE_CHECKING:
    from datetime import date

    from excir_dask.audit.config import Config
    from excir_dask.audit.store import Store


class AuditGroup(click.Group):
    """``excir audit CONFIG.yaml`` is short for ``excir audit run CONFIG.yaml``."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in self.commands:
            meant = nearest(args[0], self.commands)
            if meant and not os.path.exists(args[0]):
                raise UsageError(f"'{args[0]}' is neither a command of excir audit nor a file{meant}")
            args = ["run", *args]
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """1 means that a check failed, so an error that nobody foresaw has a code of its own."""
        try:
            return super().invoke(ctx)
        except (ExcirError, OSError, click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception:
            traceback.print_exc()
            ctx.exit(MISTAKE)


class Key(click.ParamType[Any]):
    """NAME=VALUE"""

    name = "NAME=VALUE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        name, equals, text = value.partition("=")
        if not (name and equals and text):
            self.fail(f"'{value}' is not of the form NAME=VALUE", param, ctx)
        return name, text


_DATE = click.option("--date", "day", metavar="DATE", help="Window's date, today or yesterday. [default: yesterday]")
_KEYS = click.option("--key", "keys", multiple=True, type=Key(), help="Another field of the window; repeat for more.")
_K = click.option("--k", type=click.IntRange(min=1), default=8, show_default=True, help="Size of the top.")


@click.group(cls=AuditGroup)
def audit() -> None:
    """Audit a lake's windows against a baseline.

    \b
    excir audit audit.yaml                              yesterday's window
    excir audit audit.yaml --date 2026-09-01            another one
    excir audit audit.yaml --backfill 2026-09-01 2026-09-30
    excir audit validate audit.yaml                     check everything, run nothing
    excir audit baseline set production audits/runs/RUN
    excir audit history audits/ --feature rpm --plot rpm.png
    excir audit compare audits/runs/A audits/runs/B

    Exits with 0 (done), 1 (a check failed), 2 (configuration), 3 (lake or model), 70 (a mistake of this program) or 75
    (try again later). The last line of standard output is JSON, unless it is a terminal.
    """


@audit.command()
@click.argument("config", type=FilePath())
@_DATE
@click.option("--backfill", nargs=2, metavar="FROM TO", help="All days from one date to another, in order.")
@_KEYS
@lake_options
@click.option("--no-baseline", is_flag=True, help="Compare with nothing, as for the run that becomes the baseline.")
@click.option(
    "--fail-on", type=click.Choice(["fail", "warn", "never"]), default="fail", show_default=True,
    help="From which severity on the exit code is 1.",
)  # fmt: skip
@options(THREADS, RUNNING, CONSOLE)
@click.pass_context
def run(
    ctx: click.Context, config: str, day: str | None, backfill: tuple[str, str] | None, keys: Sequence[tuple[str, str]],
    storage_options: dict[str, Any] | None, table_version: int | None, no_baseline: bool, fail_on: str,
    threads: int | None, scheduler: str | None, cluster: str | None, performance_report: str | None,
    as_json: bool, quiet: bool, verbose: bool,
) -> None:  # fmt: skip
    """Audit the window of CONFIG, a YAML file that docs/AUDIT.md describes.

    Where it runs is the configuration's, unless --scheduler or --cluster says otherwise.
    """
    from excir_dask.audit.config import read_config, with_options
    from excir_dask.audit.run import audit as run_audit
    from excir_dask.audit.run import told
    from excir_dask.audit.window import NotThereError
    from excir_dask.render.text.audit import summary, tally

    done: list[dict[str, Any]] = []
    codes: list[int] = []
    name, code = config, 0
    try:
        asked = with_options(read_config(config), storage_options, table_version)
        name = asked.name
        days = _days(asked, day, backfill)
        if scheduler is None and cluster is None:
            scheduler, cluster = asked.scheduler, asked.cluster
        with running(quiet, verbose, scheduler, performance_report, threads, cluster) as where:
            for one in days:
                try:
                    found = run_audit(asked, one, dict(keys), baseline=not no_baseline, **where)
                except ExcirError as error:
                    of_day = error.exit_code == 3 or isinstance(error, NotThereError)
                    if not (backfill and of_day):
                        raise
                    # one bad day of many: the others are audited all the same, and the exit code tells
                    click.echo(f"excir: {one}: {error}", err=True)
                    done.append({"date": str(one), "status": "error", "error": str(error)})
                    codes.append(error.exit_code)
                    continue
                done.append(found.to_dict())
                if not as_json:
                    click.echo(summary(found.about, found.violations))
    except Exception as error:  # the groups say what it is and end with the code
        if not isinstance(error, click.ClickException):
            _say(as_json, name, "error", exit_code_of(error), done, told(error))
        raise
    status = next((level for level in ("error", "fail", "warn") if any(one["status"] == level for one in done)), "ok")
    failing = {"fail": ("fail",), "warn": ("fail", "warn"), "never": ()}[fail_on]
    if codes:
        code = min(codes)  # what running again does not help before what it may
    elif any(one["status"] in failing for one in done):
        code = 1
    if backfill and not as_json:
        click.echo(tally([one["status"] for one in done]))
    _say(as_json, name, status, code, done)
    ctx.exit(code)


@audit.command()
@click.argument("config", type=FilePath())
@_DATE
@_KEYS
@lake_options
@options(JSON)
@click.pass_context
def validate(
    ctx: click.Context, config: str, day: str | None, keys: Sequence[tuple[str, str]],
    storage_options: dict[str, Any] | None, table_version: int | None, as_json: bool,
) -> None:  # fmt: skip
    """Check CONFIG, and all it names, without running it: only footers of the lake are read."""
    from excir_dask.audit.baseline import NoBaselineError
    from excir_dask.audit.config import read_config, with_options
    from excir_dask.audit.validate import validate as problems_of

    asked = with_options(read_config(config), storage_options, table_version)
    found = problems_of(asked, next(iter(_days(asked, day, None))), dict(keys))
    # a baseline is a run, so that the first time there is none: nothing is wrong with the configuration
    warnings = [one for one in found if isinstance(one, NoBaselineError)]
    problems = [one for one in found if one not in warnings]
    code = problems[0].exit_code if problems else 0
    if as_json:
        texts = {"problems": [str(one) for one in problems], "warnings": [str(one) for one in warnings]}
        click.echo(json.dumps({"audit": asked.name, "exit_code": code, **texts}))
    else:
        for warning in warnings:
            click.echo(f"warning: {warning}", err=True)
        for problem in problems:
            click.echo(f"excir: {problem}", err=True)
        count = f"{len(problems)} problem{'' if len(problems) == 1 else 's'}"
        click.echo(f"{config}: {count}" if problems else f"{config} is fine")
    ctx.exit(code)


@audit.group()
def baseline() -> None:
    """Named runs that others are compared with."""


@baseline.command("set")
@click.argument("name")
@click.argument("run")
@click.option("--results", metavar="FOLDER", help="Folder of results, where RUN is a name and not a path.")
def set_(name: str, run: str, results: str | None) -> None:
    """Point NAME at RUN (RESULTS/runs/...). It stays there until it is set again."""
    from excir_dask.audit.baseline import set_baseline

    store, run = _run(run, results)
    record = set_baseline(store, name, run)
    before = f", was {record['past'][-1]['run']}" if record["past"] else ""
    click.echo(f"{name} is {record['run']}{before}")


@baseline.command("list")
@click.argument("results")
@options(JSON)
def list_(results: str, as_json: bool) -> None:
    """All baselines of RESULTS, a folder or a configuration."""
    from excir_dask.audit.baseline import baselines

    records = baselines(_store(results))
    if as_json:
        click.echo(json.dumps(records))
    for record in [] if as_json else records:
        click.echo(f"{record['name']:<20} {record['run']}  (set {record['set']})")


@audit.command()
@click.argument("results")
@click.option("--feature", help="Trend of this feature.")
@click.option("--group", help="Trend of this group.")
@click.option("--output", help="Of this output alone.")
@click.option("--model", help="Of this model alone.")
@click.option("--audit", "name_of_audit", help="Of this audit alone: NAME, or NAME,key=value for one of its series.")
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="The last N runs of each series.")
@click.option("--since", metavar="DATE", help="From this day on.")
@click.option("--plot", type=FilePath(), help="Draw the trend: a name that ends .png, .svg or .pdf.")
@options(JSON)
def history(
    results: str, feature: str | None, group: str | None, output: str | None, model: str | None,
    name_of_audit: str | None, last: int | None, since: str | None, plot: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Runs of RESULTS (a folder or a configuration), or the trend of a feature or group.

    Runs of another audit, model or key of the window are a series of their own.
    """
    from excir_dask.audit import history as kept
    from excir_dask.audit.window import read_date
    from excir_dask.render.plots.trend import plot_trend
    from excir_dask.render.text.audit import runs_text, trend_text
    from excir_dask.results.tables import records

    store = _store(results)
    if feature is not None and group is not None:
        raise UsageError("--feature and --group are both given; ask for one of them")
    name, kind = (group, "groups") if feature is None else (feature, "features")
    if name is None and plot:
        raise UsageError("--plot draws a trend; add --feature NAME or --group NAME")
    day = None if since is None else read_date(since)
    if name is None:
        table = kept.of_audit(kept.runs(store, model), name_of_audit)
    else:
        table = kept.trend(store, name, audit=name_of_audit, model=model, output=output, kind=kind)
    found = kept.newest(table, last, day)
    if len(found) == 0:
        since = since if len(table) else None
        asked = {"audit": name_of_audit, "model": model, "output": output, kind: name}
        raise UsageError(kept.lacking(store, asked, since))
    if plot:
        click.echo(f"drawn in {plot_trend(found, plot)}", err=True)
    if as_json:
        click.echo(json.dumps(records(found), allow_nan=False))
    else:
        click.echo(runs_text(found) if name is None else trend_text(found))


@audit.command()
@click.argument("a")
@click.argument("b")
@click.option("--results", metavar="FOLDER", help="Folder of results, where A and B are names and not paths.")
@_K
@options(JSON)
def compare(a: str, b: str, results: str | None, k: int, as_json: bool) -> None:
    """Say how far run B agrees with run A, any two of the past."""
    from dataclasses import replace

    from excir_dask.agreement.compare import compare as agreement
    from excir_dask.render.text import agreement as words

    (store_a, run_a), (store_b, run_b) = _run(a, results), _run(b, results)
    found = replace(agreement(store_a.load(run_a), store_b.load(run_b), k), names=(a, b))
    click.echo(json.dumps(found.to_dict(), allow_nan=False) if as_json else words.text(found))


def _days(config: Config, day: str | None, backfill: tuple[str, str] | None) -> list[date | None]:
    from excir_dask.audit.window import days, read_date

    if config.window is None or not config.window.dated:
        if backfill or (day and config.window is not None):
            raise UsageError("a date is given, but the configuration's window has no {{ date }}; leave one out")
        return [None if day is None else read_date(day)]  # of the whole lake: the day it is audited for
    if backfill and day:
        raise UsageError("--date and --backfill are both given; ask for one of them")
    if backfill:
        return list(days(read_date(backfill[0]), read_date(backfill[1])))
    return [read_date(day)]


def _say(
    asked_for: bool, name: str, status: str, code: int, runs: list[dict[str, Any]], error: str | None = None
) -> None:
    """The line of JSON that an audit ends with; at a terminal somebody reads, and sees it only when asked for."""
    if asked_for or not sys.stdout.isatty():
        content = {"audit": name, "status": status, "exit_code": code, "runs": runs}
        click.echo(json.dumps(content if error is None else {**content, "error": error}, allow_nan=False))


def _store(results: str) -> Store:
    from excir_dask.audit.config import read_config
    from excir_dask.audit.store import open_store

    if results.endswith((".yaml", ".yml")):
        config = read_config(results)
        return open_store(config.results, config.results_options)
    return open_store(results)


def _run(run: str, results: str | None) -> tuple[Store, str]:
    from excir_dask.audit.store import split_run

    if results is not None:
        return _store(results), run
    folder, name = split_run(run)
    return _store(folder), name
