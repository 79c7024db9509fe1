"""The command ``excir audit history``."""

from __future__ import annotations

import json

import click

from excir_dask.cli.audit.options import store_at
from excir_dask.cli.command import CheckedCommand
from excir_dask.cli.console import say
from excir_dask.cli.options import JSON, options
from excir_dask.cli.types import FilePath
from excir_dask.errors import UsageError


@click.command(cls=CheckedCommand)
@click.argument("results")
@click.option("--feature", help="Trend of this feature.")
@click.option("--group", help="Trend of this group.")
@click.option("--output", help="Of this output only.")
@click.option("--model", help="Of this model only.")
@click.option("--audit", "name_of_audit", help="Of this audit only: NAME, or NAME,key=value for one of its series.")
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="The last N runs of each series.")
@click.option("--since", metavar="DATE", help="From this day on.")
@click.option("--plot", type=FilePath(), help="Draw the trend: a name that ends .png, .svg or .pdf.")
@options(JSON)
def history(
    results: str, *, feature: str | None, group: str | None, output: str | None, model: str | None,
    name_of_audit: str | None, last: int | None, since: str | None, plot: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Print the runs of RESULTS (a folder or a configuration), or the trend of a feature or group.

    Runs of another audit, model or key of the window are a series of their own.
    """
    from excir_dask.audit import history as stored
    from excir_dask.audit.window import read_date
    from excir_dask.render.plots.trend import plot_trend
    from excir_dask.render.text.audit import runs_text, trend_text
    from excir_dask.results.tables import records

    store = store_at(results)
    if feature is not None and group is not None:
        raise UsageError("--feature and --group are both given; give one")
    name, kind = (group, "groups") if feature is None else (feature, "features")
    if name is None and plot:
        raise UsageError("--plot draws a trend; add --feature NAME or --group NAME")
    day = None if since is None else read_date(since)
    if name is None:
        table = stored.of_audit(stored.runs(store, model), name_of_audit)
    else:
        table = stored.trend(store, name, audit=name_of_audit, model=model, output=output, kind=kind)
    found = stored.newest(table, last, day)
    if len(found) == 0:
        since = since if len(table) else None
        asked = {"audit": name_of_audit, "model": model, "output": output, kind: name}
        raise UsageError(stored.why_empty(store, asked, since))
    if plot:
        say(f"drawn in {plot_trend(found, plot)}")
    if as_json:
        click.echo(json.dumps(records(found), allow_nan=False))
    else:
        click.echo(runs_text(found) if name is None else trend_text(found))
