"""Every test of the lake runs on one thread unless it says otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dask
import pytest
from lakes import numbers, write


@pytest.fixture(autouse=True)
def _synchronous() -> Iterator[None]:
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Three files in three depths, of two row groups each."""
    folder = tmp_path / "lake"
    for seed, name in enumerate(["b.parquet", "deep/a.parquet", "deep/er/c.parquet"]):
        write(folder / name, numbers(seed=seed), row_group_size=25)
    return folder


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that were slept for, without sleeping them."""
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    return slept
