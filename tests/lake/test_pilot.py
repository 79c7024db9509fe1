"""Which rows a pilot reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from oracle import write_lake

from excir_dask.lake import pilot
from excir_dask.lake.pilot import choose_pilot
from excir_dask.lake.plan import Plan
from excir_dask.pipeline.inputs import resolve_inputs
from excir_dask.pipeline.options import ExplainOptions


def plan_of(folder: Path, rows: int = 24_000, files: int = 6, group: int = 500, budget: str = "1MiB") -> Plan:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((rows, 4)), columns=["a", "b", "c", "y"])
    lake = write_lake(folder / "lake", frame, files, group)
    return resolve_inputs(lake, ExplainOptions(output="y", budget=budget)).plan


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Constants for tiny lakes."""
    monkeypatch.setattr(pilot, "SMALL", 2000)
    monkeypatch.setattr(pilot, "ROWS", 1000)


def test_a_small_lake_is_read_whole(tmp_path, monkeypatch):
    plan = plan_of(tmp_path)
    monkeypatch.setattr(pilot, "SMALL", plan.rows)
    found = choose_pilot(plan, whole_spans=False)
    assert (found.complete, found.plan, found.spans) == (True, None, tuple(range(plan.spans)))


def test_a_pilot_reads_the_first_rows_of_row_groups_from_all_over_the_lake(tmp_path):
    plan = plan_of(tmp_path)
    found = choose_pilot(plan, whole_spans=False)
    assert not found.complete
    heads = list(found.plan.blocks[0])
    assert all(slice_.head and len(slice_.fragments) == 1 for slices in heads for slice_ in slices)
    rows = sum(slices[0].rows for slices in heads)
    assert 1000 <= rows <= 2 * pilot.SHARE * plan.rows
    files = [slices[0].fragments[0].path for slices in heads]
    assert files == sorted(files)
    assert len(set(files)) >= 3, "the row groups are spread over the files"
    assert [(s[0].start, s[-1].stop) for s in heads] == [(0, 3)] * len(heads)


def test_the_same_plan_has_the_same_pilot(tmp_path):
    plan = plan_of(tmp_path)
    assert choose_pilot(plan, False) == choose_pilot(plan, False)


def test_a_pilot_of_whole_spans_takes_few_of_many(tmp_path, monkeypatch):
    plan = plan_of(tmp_path, rows=300_000, files=12, group=25_000)
    assert plan.spans > 2 * pilot.LEAST_SPANS
    found = choose_pilot(plan, whole_spans=True)
    assert not found.complete
    assert found.plan is None
    assert len(found.spans) == max(pilot.LEAST_SPANS, round(pilot.SHARE * plan.spans))
    assert len(set(found.spans)) == len(found.spans)
    assert max(found.spans) < plan.spans


def test_a_pilot_that_would_read_half_the_spans_reads_all(tmp_path):
    plan = plan_of(tmp_path, files=2, group=12_000, budget="100MiB")
    found = choose_pilot(plan, whole_spans=True)
    assert found.complete
    assert found.spans == tuple(range(plan.spans))
