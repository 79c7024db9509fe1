"""What a command writes to standard error: log lines and errors, without characters that steer a terminal.

Names of columns, files and categories come from the lake, and whoever wrote it chose them.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import click

from excir_dask.common.wording import printable, shortened
from excir_dask.errors import UsageError


class _Printable(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return printable(shortened(super().format(record)))


@contextmanager
def log_to_stderr(quiet: bool, verbose: bool) -> Iterator[None]:
    """Show this package's log on standard error; with -v each line has a time, so that waiting shows."""
    if quiet and verbose:
        raise UsageError("--quiet and --verbose are both given; leave one of them out")
    level = logging.ERROR if quiet else logging.DEBUG if verbose else logging.INFO
    logger = logging.getLogger("excir_dask")
    handler = logging.StreamHandler(sys.stderr)
    stamp = "%(asctime)s " if level == logging.DEBUG else ""
    handler.setFormatter(_Printable(f"{stamp}%(message)s", datefmt="%H:%M:%S"))
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(level)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        logger.propagate = before[1]


def say(message: str) -> None:
    """Write one line to standard error."""
    click.echo(printable(shortened(message)), err=True)


def say_traceback() -> None:
    """Write the traceback of the error that is being handled."""
    for line in traceback.format_exc().splitlines():
        say(line)
