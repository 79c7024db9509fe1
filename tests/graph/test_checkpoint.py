"""The same run goes on where it was ended, whoever was killed, and gives the same bytes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import xgboost as xgb
from oracle import repeated, write_lake
from processes import dask_processes

from excir_dask import Explanation, explain
from excir_dask.common.atomic import TEMPORARY
from excir_dask.errors import UsageError
from excir_dask.pipeline.inputs import resolve_inputs
from excir_dask.pipeline.options import ExplainOptions

pytestmark = pytest.mark.usefixtures("without_bokeh")

FILES = 12


def table(rows: int = 120_000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((rows, 10)), columns=[f"x{i}" for i in range(10)])
    frame["gap"] = np.where(rng.random(rows) < 0.25, 0.0, 100.0) + rng.random(rows)
    return frame.assign(pred=frame["x0"] - frame["x1"] + rng.standard_normal(rows))


@pytest.fixture(scope="module")
def lake(tmp_path_factory) -> Path:
    return write_lake(tmp_path_factory.mktemp("kept") / "lake", table(), FILES)


def states(folder: Path, verb: str = "") -> list[Path]:
    return sorted(folder.glob(f"*/{verb}*.state"))


@pytest.mark.parametrize("centering", ["midhinge", "trimmed"])
def test_a_run_takes_up_the_states_that_it_finds(lake, tmp_path, centering):
    options = {"output": "pred", "budget": "1MiB", "centering": centering, "group_correlated": 0.9}
    reference = explain(lake, **options)
    first = explain(lake, **options, checkpoint=tmp_path)
    assert first.to_json() == reference.to_json()
    assert first.provenance.resumed_states == 0
    everything = states(tmp_path)
    for path in everything[::2]:
        path.unlink()
    again = explain(lake, **options, checkpoint=tmp_path)
    assert again.to_json() == reference.to_json()
    assert again.provenance.resumed_states == len(everything) // 2
    assert 0 < again.provenance.bytes_read < 0.7 * first.provenance.bytes_read
    third = explain(lake, **options, checkpoint=tmp_path)
    assert third.to_json() == reference.to_json()
    assert third.provenance.bytes_read == 0


def test_what_a_model_said_is_kept_too(lake, tmp_path):
    frame = table()
    booster = xgb.train({"nthread": 1}, xgb.DMatrix(frame.drop(columns="pred"), frame["pred"]), 5)
    reference = explain(lake, model=booster, budget="1MiB")
    explain(lake, model=booster, budget="1MiB", checkpoint=tmp_path)
    for path in states(tmp_path, "pass"):
        path.unlink()
    again = explain(lake, model=booster, budget="1MiB", checkpoint=tmp_path)
    assert again.to_json() == reference.to_json()
    assert len(states(tmp_path, "score")) > 3


def test_growing_samples_resume(lake, tmp_path):
    options = {"output": "pred", "fraction": "auto", "k": 2, "budget": "1MiB"}
    reference = explain(lake, **options)
    assert explain(lake, **options, checkpoint=tmp_path).to_json() == reference.to_json()
    again = explain(lake, **options, checkpoint=tmp_path)
    assert again.to_json() == reference.to_json()
    assert again.provenance.bytes_read == 0
    assert again.provenance.resumed_states == len(states(tmp_path)), "of all samples"


def test_states_go_once_the_result_is_saved_and_when_it_is_forced(lake, tmp_path):
    options = {"output": "pred", "budget": "1MiB", "checkpoint": tmp_path / "states"}
    first = explain(lake, **options)
    assert len(states(tmp_path / "states")) > 3
    forced = explain(lake, **options, force=True)
    assert forced.provenance.bytes_read == first.provenance.bytes_read
    saved = explain(lake, **options, out=tmp_path / "out")
    assert saved.provenance.bytes_read == 0
    assert list((tmp_path / "states").iterdir()) == []


def test_files_of_others_stay_when_the_states_go(lake, tmp_path):
    options = {"output": "pred", "budget": "1MiB", "checkpoint": tmp_path / "states"}
    explain(lake, **options)
    (folder,) = (tmp_path / "states").iterdir()
    (folder / "notes.txt").write_text("mine")
    (folder / "plots").mkdir()
    (folder / f"{TEMPORARY}sum-0.state-{'0' * 12}").write_bytes(b"half written")
    explain(lake, **options, out=tmp_path / "out")
    assert sorted(path.name for path in folder.iterdir()) == ["notes.txt", "plots"]


@pytest.mark.parametrize(
    "change", [{"budget": "2MiB"}, {"features": ["x0", "x1"]}, {"centering": "median"}, {"seed": 1}]
)
def test_another_run_does_not_find_the_states(lake, tmp_path, change):
    explain(lake, output="pred", budget="1MiB", checkpoint=tmp_path)
    other = explain(lake, **{"output": "pred", "budget": "1MiB", "checkpoint": tmp_path, **change})
    assert other.provenance.resumed_states == 0


@pytest.mark.parametrize("options", [{}, {"centering": "trimmed"}, {"group_correlated": 0.9}, {"model": True}])
def test_a_row_group_that_was_streamed_resumes_to_the_same_bytes(tmp_path, options):
    lake = write_lake(tmp_path / "lake", table(200_000), 1)  # one row group: a column of it takes 1.5 MiB
    if options.pop("model", False):
        frame = table(2000)
        options["model"] = xgb.train({"nthread": 1}, xgb.DMatrix(frame.drop(columns="pred"), frame["pred"]), 2)
    options = {"output": None if "model" in options else "pred", "budget": "1MiB", **options}
    plan = resolve_inputs(lake, ExplainOptions(**options)).plan
    assert all(piece.batch_rows is not None for piece in plan.slices())
    reference = explain(lake, **options, checkpoint=tmp_path / "states")
    again = explain(lake, **options, checkpoint=tmp_path / "states")
    assert again.to_json() == reference.to_json() == explain(lake, **options).to_json()
    assert again.provenance.bytes_read == 0


def test_a_frame_cannot_be_resumed(tmp_path):
    with pytest.raises(UsageError, match="cannot be resumed"):
        explain(table(100), output="pred", checkpoint=tmp_path)


def test_a_folder_that_cannot_be_written_to_is_named(lake, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="choose another folder"):
        explain(lake, output="pred", checkpoint=tmp_path / "file" / "below")


@pytest.fixture(scope="module")
def long(lake, tmp_path_factory):
    """So long that something can be killed before the end of a run on any machine."""
    return repeated(lake, tmp_path_factory.mktemp("long"), 5)


def command(lake: Path, checkpoint: Path, out: Path, *more: str) -> list[str]:
    options = ["--output", "pred", "--budget", "1MiB", "--checkpoint", str(checkpoint), "--out", str(out), *more]
    return [sys.executable, "-m", "excir_dask", "explain", str(lake), *options]


def end_when(process: subprocess.Popen, checkpoint: Path, verb: str, count: int, end: object) -> None:
    """Do something to a running job as soon as some states of a scan are there."""
    patience = time.monotonic() + 120
    while len(states(checkpoint, verb)) < count:
        assert process.poll() is None, "the run ended before it could be killed"
        assert time.monotonic() < patience
        time.sleep(0.002)
    end()  # type: ignore[operator]


@pytest.mark.parametrize("verb", [pytest.param("pilot", marks=pytest.mark.slow), "pass"])
def test_a_client_killed_in_either_scan_goes_on_to_the_same_bytes(long, tmp_path, verb):
    reference = explain(long, output="pred", budget="1MiB")
    first = command(long, tmp_path / "states", tmp_path / "out", "--threads", "1")
    process = subprocess.Popen(first, stdout=subprocess.DEVNULL)
    end_when(process, tmp_path / "states", verb, 3, lambda: process.send_signal(signal.SIGKILL))
    assert process.wait() == -signal.SIGKILL
    finished = states(tmp_path / "states")
    spared = sum(bytes_read(path, long) for path in finished)
    assert not (tmp_path / "out").exists()
    done = subprocess.run(first, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert f"resuming from {len(finished)} states" in done.stderr
    again = Explanation.load(tmp_path / "out")
    assert (tmp_path / "out" / "explanation.json").read_text() == reference.to_json()
    assert again.provenance.resumed_states == len(finished)
    assert spared > 0
    assert again.provenance.bytes_read == reference.provenance.bytes_read - spared, "no finished slice is read"


def bytes_read(state: Path, lake: Path) -> int:
    """Compressed bytes of the column chunks behind the slice whose state this is."""
    plan = resolve_inputs(lake, ExplainOptions(output="pred", budget="1MiB")).plan
    verb, _, block, span, number = state.stem.split("-")
    piece = plan.blocks[int(block)][int(span)][int(number)]
    columns = {*plan.selection.features[piece.start : piece.stop]}
    if verb == "refine":  # the closer look is at one feature
        columns &= {"gap"}
    size = 0
    for fragment in piece.fragments:
        footer = pq.read_metadata(fragment.path)
        for group in fragment.row_groups:
            chunks = [footer.row_group(group).column(i) for i in range(footer.num_columns)]
            size += sum(chunk.total_compressed_size for chunk in chunks if chunk.path_in_schema in columns | {"pred"})
    return size if columns else 0


@pytest.mark.slow
@pytest.mark.cluster
def test_a_scheduler_that_is_killed_ends_the_run_with_75_and_another_cluster_goes_on(long, tmp_path):
    reference = explain(long, output="pred", budget="1MiB")
    with dask_processes(1, "--nthreads", "1") as address:
        job = command(long, tmp_path / "states", tmp_path / "out", "--scheduler", address)
        with subprocess.Popen(job, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            end_when(process, tmp_path / "states", "pilot", 2, lambda: kill_scheduler(address))
            assert process.wait(timeout=120) == 75, process.stderr.read()
    with dask_processes(2) as address:
        job = command(long, tmp_path / "states", tmp_path / "out", "--scheduler", address, "--json")
        done = subprocess.run(job, check=True, capture_output=True, text=True)
    assert json.loads(done.stdout)["rows"]["used"] == 600_000
    assert (tmp_path / "out" / "explanation.json").read_text() == reference.to_json()


def kill_scheduler(address: str) -> None:
    """The process that listens at an address, ended at once."""
    import psutil

    port = int(address.rsplit(":", 1)[1])
    for connection in psutil.net_connections("tcp"):
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port:
            os.kill(connection.pid, signal.SIGKILL)
            return
    raise AssertionError(f"nobody listens at {address}")
