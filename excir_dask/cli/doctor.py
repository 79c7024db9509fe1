"""The command ``excir doctor``."""

from __future__ import annotations

import json
from typing import Any

import click

from excir_dask.cli.config_file import Command
from excir_dask.cli.console import log_to_stderr
from excir_dask.cli.options import JSON, options
from excir_dask.cli.storage_options import storage_option
from excir_dask.cli.types import Lake
from excir_dask.common.wording import count, printable_lines
from excir_dask.errors import LakeError


@click.command(cls=Command)
@click.argument("lake", type=Lake(), required=False)
@click.option("--scheduler", metavar="ADDRESS", help="Also connect to this scheduler.")
@storage_option("For the store of LAKE, as fsspec calls it; a.b=VALUE for nested ones; repeat for several.")
@options(JSON)
def doctor(lake: Any, scheduler: str | None, storage_options: dict[str, Any] | None, as_json: bool) -> None:
    """Show versions, extras and caches, for bug reports; with LAKE and --scheduler also whether these can be reached.

    Exits with 3 if something that is needed is missing.

    \b
    excir doctor
    excir doctor s3://bucket/lake --scheduler tcp://10.0.0.5:8786
    """
    from excir_dask.pipeline.doctor import examine

    with log_to_stderr(quiet=True, verbose=False):
        findings = examine(lake, scheduler, storage_options)
    problems = [each.name for each in findings if each.status == "problem"]
    if as_json:
        click.echo(json.dumps({"findings": [each.to_dict() for each in findings], "problems": problems}))
    else:
        widest = max(len(each.name) for each in findings)
        click.echo(printable_lines(f"{each.status:<8} {each.name:<{widest}}  {each.detail}" for each in findings))
    if problems:
        raise LakeError(f"{count(len(problems), 'problem')}: {', '.join(problems)}; the lines above say what to do")
