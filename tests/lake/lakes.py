"""Small lakes on disk, short ways to look at them, and a filesystem that fails when it is told to."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.local import LocalFileSystem

from excir_dask import explain
from excir_dask.lake.blocks import Layout, RowCounts
from excir_dask.lake.locate import Location, locate
from excir_dask.lake.plan import Plan, Slice, make_plan
from excir_dask.lake.read import read_slice
from excir_dask.lake.sample import Sample
from excir_dask.lake.schema import Column, describe_columns
from excir_dask.lake.select import select
from excir_dask.lake.snapshot import Snapshot, take_snapshot


def numbers(rows: int = 40, seed: int = 0) -> pa.Table:
    """Two features and an output that follows one of them."""
    draw = np.random.default_rng(seed)
    a, b, noise = draw.normal(size=(3, rows))
    return pa.table({"a": a, "b": b, "pred": a + 0.5 * noise})


def rows(count: int = 60, seed: int = 0, **columns: Any) -> pa.Table:
    """The same with an id of every row, and other columns."""
    table = numbers(count, seed).append_column("id", pa.array(np.arange(count) + 1000 * seed))
    for name, values in columns.items():
        table = table.append_column(name, pa.array(values))
    return table


def write(path: Path, table: pa.Table | Mapping[str, Any] | None = None, **options: Any) -> Path:
    """A Parquet file, with the folders it needs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if table is None:
        table = numbers()
    pq.write_table(table if isinstance(table, pa.Table) else pa.table(dict(table)), path, **options)
    return path


def names(location: Location) -> list[str]:
    """Relative paths of a location's files."""
    return [location.relative(info.path) for info in location.files]


def found(lake: Any, **options: Any) -> list[str]:
    return names(locate(lake, **options))


def snapshot(lake: Any, **options: Any) -> Snapshot:
    return take_snapshot(locate(lake, **options))


def columns(lake: Any) -> dict[str, Column]:
    return describe_columns(snapshot(lake))


def cir(lake: Any, **options: Any) -> dict[str, float]:
    """Scores by feature."""
    options.setdefault("output", "pred")
    table = explain(lake, **options).features
    return dict(zip(table["feature"], table["cir"], strict=True))


def same(lake: Any, frame: pd.DataFrame, **options: Any) -> None:
    """Assert that a lake has the scores of a frame."""
    assert cir(lake, **options) == pytest.approx(cir(frame), abs=1e-12)


def prepared(
    lake: Any,
    outputs: Sequence[str] = ("pred",),
    weight: str | None = None,
    features: Sequence[str] | None = None,
    sample: Sample | None = None,
    budget: int = 2**20,
) -> tuple[Plan, Layout]:
    """What a run would hand to its workers."""
    shot = snapshot(lake)
    selection = select(describe_columns(shot), outputs, weight, features)
    layout = Layout(shot.location.filesystem, selection.features, selection.outputs, weight, sample or Sample())
    return make_plan(shot, selection, budget), layout


def only_slice(plan: Plan) -> Slice:
    (piece,) = plan.slices()
    return piece


def read_all(piece: Slice, layout: Layout) -> tuple[pd.DataFrame, RowCounts]:
    """Every block of a slice as one frame of features, outputs and weights, and what became of the rows."""
    frames, counts = [], RowCounts()
    for block in read_slice(piece, layout):
        data = dict(zip(layout.features[piece.start : piece.stop], list(block.columns), strict=True))
        data.update(zip(layout.outputs, block.outputs, strict=True))
        if layout.weight:
            data[layout.weight] = block.weights
        frames.append(pd.DataFrame(data))
        counts += block.counts
    return pd.concat(frames, ignore_index=True), counts


Faults = Mapping[tuple[str, str], tuple[Container[int], type[OSError]]]
"""(call, file name) -> which of these calls fail, counted from 1, and how; calls are list, open and read"""

ALWAYS = range(1, 10**9)


class FaultyFileSystem(LocalFileSystem):
    """Local files whose calls fail as a table says; the table is the class's, so that an unpickled copy obeys it."""

    protocol = "faulty"
    cachable = False
    faults: ClassVar[Faults] = {}
    calls: ClassVar[list[tuple[str, str]]] = []

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(item) for item in path]
        return super()._strip_protocol(str(path).removeprefix("faulty://"))

    @classmethod
    def check(cls, call: str, path: str) -> None:
        key = (call, path.rstrip("/").rsplit("/", 1)[-1])
        cls.calls.append(key)
        failing, error = cls.faults.get(key, ((), OSError))
        if cls.calls.count(key) in failing:
            raise error(f"injected: {call} of {key[1]}")

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        self.check("list", self._strip_protocol(path))
        return super().info(path, **options)

    def open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        self.check("open", self._strip_protocol(path))
        return FaultyFile(super().open(path, mode, **options), self._strip_protocol(path))


class FaultyFile:
    """An open file that asks the table before it reads."""

    def __init__(self, file: Any, path: str):
        self.file, self.path = file, path

    def read(self, *arguments: Any) -> Any:
        FaultyFileSystem.check("read", self.path)
        return self.file.read(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


@contextmanager
def faulty(faults: Faults) -> Iterator[list[tuple[str, str]]]:
    """``faulty://`` URLs whose calls fail as the table says; yields the calls that were made."""
    fsspec.register_implementation("faulty", FaultyFileSystem, clobber=True)
    FaultyFileSystem.faults, FaultyFileSystem.calls = faults, []
    try:
        yield FaultyFileSystem.calls
    finally:
        FaultyFileSystem.faults = {}
