"""Fixtures of all tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import dask
import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def synchronous() -> Iterator[None]:
    """One thread, so that a failing test points at its line."""
    with dask.config.set(scheduler="synchronous"):
        yield
