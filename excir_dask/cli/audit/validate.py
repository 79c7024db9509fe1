"""The command ``excir audit validate``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

from excir_dask.cli.audit.options import WINDOW, days_to_audit, keys_of_window
from excir_dask.cli.command import CheckedCommand
from excir_dask.cli.console import say
from excir_dask.cli.options import JSON, LAKE, options
from excir_dask.cli.types import FilePath
from excir_dask.common.wording import count


@click.command(cls=CheckedCommand)
@click.argument("config", type=FilePath())
@options(WINDOW)
@options(LAKE)
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
    found = problems_of(asked, next(iter(days_to_audit(asked, day, None))), keys_of_window(keys))
    # a baseline is a run, so before the first run there is none: the configuration is right all the same
    warnings = [one for one in found if isinstance(one, NoBaselineError)]
    problems = [one for one in found if one not in warnings]
    code = problems[0].exit_code if problems else 0
    if as_json:
        texts = {"problems": [str(one) for one in problems], "warnings": [str(one) for one in warnings]}
        click.echo(json.dumps({"audit": asked.name, "exit_code": code, **texts}))
    else:
        for warning in warnings:
            say(f"warning: {warning}")
        for problem in problems:
            say(f"excir: {problem}")
        click.echo(f"{config}: {count(len(problems), 'problem')}" if problems else f"{config} is fine")
    ctx.exit(code)
