"""Dask's own report of what a cluster does during a run."""

from __future__ import annotations

import importlib.metadata
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from excir_dask.errors import UsageError

if TYPE_CHECKING:
    from distributed import Client

log = logging.getLogger(__name__)


@contextmanager
def performance_report(client: Client, file: str | os.PathLike[str]) -> Iterator[None]:
    """Save dask's report of everything the cluster does meanwhile, also if that fails."""
    from distributed import performance_report as report_to

    target = Path(file)
    if not target.absolute().parent.is_dir() or not os.access(target.absolute().parent, os.W_OK):
        raise UsageError(f"{target} cannot be written: its folder does not exist or is read-only; choose another")
    try:
        client.run_on_scheduler(importlib.metadata.version, "bokeh")
    except importlib.metadata.PackageNotFoundError:
        raise UsageError(
            "the scheduler makes the performance report with bokeh, which is not installed there; "
            "run 'pip install bokeh' on its machine, or leave the report out"
        ) from None
    report = report_to(filename=os.fspath(target))
    with client.as_current():
        report.__enter__()
        try:
            yield
        except Exception:
            with suppress(Exception):  # users must see the first error
                report.__exit__(None, None, None)
            raise
        report.__exit__(None, None, None)
    log.info("performance report: %s", target)
