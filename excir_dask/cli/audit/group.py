"""``excir audit`` itself: its commands, and ``run`` if none is named."""

from __future__ import annotations

import os
from typing import Any

import click

from excir_dask.cli.audit.baseline import baseline
from excir_dask.cli.audit.compare import compare
from excir_dask.cli.audit.history import history
from excir_dask.cli.audit.run import run
from excir_dask.cli.audit.validate import validate
from excir_dask.errors import UsageError, nearest


class AuditGroup(click.Group):
    """``excir audit CONFIG.yaml`` is short for ``excir audit run CONFIG.yaml``."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in self.commands:
            meant = nearest(args[0], self.commands)
            if meant and not os.path.exists(args[0]):
                raise UsageError(f"'{args[0]}' is neither a command of excir audit nor a file{meant}")
            args = ["run", *args]
        return super().resolve_command(ctx, args)


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

    Exits with 0 (done), 1 (a check failed), 2 (configuration), 3 (lake or model), 70 (internal error) or 75 (try again
    later). The last line of standard output is JSON, unless it is a terminal.
    """


for command in (run, validate, baseline, history, compare):
    audit.add_command(command)
