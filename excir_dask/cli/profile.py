"""The command ``excir profile``: an output along one feature of a saved explanation."""

from __future__ import annotations

import json

import click

from excir_dask.cli.config_file import CONFIG, Command
from excir_dask.cli.console import log_to_stderr
from excir_dask.cli.options import CONSOLE, options
from excir_dask.cli.types import FilePath


@click.command(cls=Command)
@click.argument("run", type=FilePath())
@click.argument("feature")
@options(CONFIG)
@click.option("--output", metavar="OUTPUT", help="Output to show. [default: the first one]")
@options(CONSOLE)
def profile(run: str, feature: str, output: str | None, as_json: bool, quiet: bool, verbose: bool) -> None:
    """Show how the output moves along FEATURE, from the counts that RUN keeps.

    RUN is a folder that `excir explain --out` saved. FEATURE may be a text column: then there is a line per category.
    No row is read.

    \b
    excir profile result/ speed
    excir profile result/ region --output margin --json
    """
    from excir_dask.render.text.profile import text
    from excir_dask.results.explanation import Explanation

    with log_to_stderr(quiet, verbose):
        found = Explanation.load(run).profile(feature, output)
    click.echo(json.dumps(found.to_dict(), allow_nan=False) if as_json else text(found))
