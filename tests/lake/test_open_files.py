"""Files stay open between slices, and are closed in the end."""

from __future__ import annotations

import gc
import os
import pickle
from contextlib import suppress

import dask
import pandas as pd
import pytest
from lakes import cir, faulty, numbers, only_slice, prepared, read_all, write

from excir_dask import explain
from excir_dask.lake.read import read_slice


def test_a_slice_and_its_layout_travel_by_pickle(lake):
    with faulty({}):
        plan, layout = prepared(f"faulty://{lake}")
        piece, there = pickle.loads(pickle.dumps((only_slice(plan), layout)))
        pd.testing.assert_frame_equal(read_all(piece, there)[0], read_all(only_slice(plan), layout)[0])


def open_files(folder: object) -> list[str]:
    """Parquet files below a folder that this process has open; other tests may have left theirs to the collector."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            found.append(os.readlink(f"/proc/self/fd/{name}"))
    return [path for path in found if path.endswith(".parquet") and path.startswith(str(folder))]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
def test_files_are_closed_when_a_slice_is_given_up(lake):
    plan, layout = prepared(lake)
    blocks = read_slice(only_slice(plan), layout)
    next(blocks)
    assert len(open_files(lake)) == 3
    blocks.close()
    assert open_files(lake) == []


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
@pytest.mark.parametrize("read", range(3, 7))
def test_no_file_stays_open_after_a_read_that_failed_and_passed(tmp_path, pauses, read):
    write(tmp_path / "0.parquet", numbers(30))
    with faulty({("read", "0.parquet"): ({read}, TimeoutError)}):
        cir(f"faulty://{tmp_path}")
    gc.collect()
    assert len(pauses) == 1
    assert open_files(tmp_path) == []


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
def test_a_file_of_a_remote_store_is_closed_with_its_slice_because_it_holds_what_it_fetched(lake):
    with faulty({}):
        plan, layout = prepared(f"faulty://{lake}")
        read_all(only_slice(plan), layout)
        assert open_files(lake) == []


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_no_file_stays_open_after_a_run(lake, scheduler):
    with dask.config.set(scheduler=scheduler):
        explain(lake, output="pred")
    gc.collect()
    assert open_files(lake) == []
