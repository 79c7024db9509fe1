"""The commands ``excir audit baseline set`` and ``list``."""

from __future__ import annotations

import json

import click

from excir_dask.cli.audit.options import RESULTS, store_and_run, store_at
from excir_dask.cli.command import CheckedCommand
from excir_dask.cli.options import JSON, options
from excir_dask.common.wording import printable


@click.group()
def baseline() -> None:
    """Named runs that others are compared with."""


@baseline.command("set", cls=CheckedCommand)
@click.argument("name")
@click.argument("run")
@options(RESULTS)
def set_(name: str, run: str, results: str | None) -> None:
    """Point NAME at RUN (RESULTS/runs/...). It stays there until it is set again."""
    from excir_dask.audit.baseline import set_baseline

    store, run = store_and_run(run, results)
    record = set_baseline(store, name, run)
    before = f", was {record['past'][-1]['run']}" if record["past"] else ""
    click.echo(printable(f"{name} is {record['run']}{before}"))


@baseline.command("list", cls=CheckedCommand)
@click.argument("results")
@options(JSON)
def list_(results: str, as_json: bool) -> None:
    """List all baselines of RESULTS, a folder or a configuration."""
    from excir_dask.audit.baseline import baselines

    records = baselines(store_at(results))
    if as_json:
        click.echo(json.dumps(records))
    for record in [] if as_json else records:
        click.echo(printable(f"{record['name']:<20} {record['run']}  (set {record['set']})"))
