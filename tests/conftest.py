"""Fixtures of all tests."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import partialmethod

import dask
import pytest
from click.testing import CliRunner, Result
from hypothesis import settings
from processes import dask_processes

from excir_dask.render.html import page

settings.register_profile("any machine", deadline=None)  # how long an example takes is not what is tested
settings.load_profile("any machine")

if "mix_stderr" in inspect.signature(CliRunner).parameters:  # before click 8.2: standard error apart, and in the output
    CliRunner.__init__ = partialmethod(CliRunner.__init__, mix_stderr=False)
    Result.output = property(lambda result: result.stdout + result.stderr)

SLOW_TIMEOUT = 1200
"""seconds after which a slow test counts as hanging; the others have the timeout of pyproject.toml"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SLOW_TIMEOUT))


@pytest.fixture
def synchronous() -> Iterator[None]:
    """One thread, so that a failing test points at its line."""
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture
def without_bokeh(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the extra for reports is not installed: runs lack their page, and take half as long."""
    monkeypatch.setattr(page, "available", lambda: False)


@pytest.fixture(scope="session")
def two_workers() -> Iterator[str]:
    """Address of a scheduler with two worker processes, for tests that do no harm to them."""
    with dask_processes(2, "--nthreads", "1") as address:
        yield address
