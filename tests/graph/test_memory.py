"""Memory is a promise: a worker's peak depends on the slice budget, not on row groups, files or lake."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xgboost
from processes import dask_processes

from excir_dask import explain

pytestmark = [pytest.mark.slow, pytest.mark.cluster]

COLUMNS, ROWS = 40, 8_000_000
"""2.56 GB decoded, beside the output"""


def write(folder, files: int):
    """Files of one row group each; the same pool of columns in another order, so that making 2.5 GB takes seconds."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    rows = ROWS // files
    pool = rng.standard_normal((COLUMNS + 1, rows))
    for i in range(files):
        columns = {f"x{j:02d}": pool[(i + j) % COLUMNS] for j in range(COLUMNS)}
        table = pa.table({**columns, "y": pool[i % COLUMNS] + pool[-1]})
        pq.write_table(table, folder / f"{i:04d}.parquet", row_group_size=rows, use_dictionary=False, compression="lz4")
    return folder


def explained_by_one_worker(
    lake, tmp_path, threads: int, limit: str = "600MiB", **options_of_explain
) -> tuple[int, str]:
    from distributed import Client

    log = tmp_path / f"{lake.name}.log"
    options = ("--nthreads", str(threads), "--memory-limit", limit, "--nworkers", "1")
    with dask_processes(1, *options, log=log) as address, Client(address, set_as_default=False) as client:
        before = set(client.scheduler_info()["workers"])
        explanation = explain(str(lake), scheduler=client, **options_of_explain)
        assert explanation.facts.rows.used == ROWS

        def peak_memory() -> int:  # in here, because the worker cannot import this file
            with open("/proc/self/status") as status:
                return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))

        (peak,) = client.run(peak_memory).values()
        assert set(client.scheduler_info()["workers"]) == before, "the worker was killed and started again"
    return peak, log.read_text()


@pytest.mark.parametrize("threads", [1, 2])
def test_a_worker_of_600_mib_explains_2_5_gb_in_row_groups_of_320_mb_or_in_a_thousand_files(threads, tmp_path, capsys):
    peaks = {}
    for files in (8, 1000):
        lake = write(tmp_path / f"{files}-files", files)
        peaks[files], log = explained_by_one_worker(lake, tmp_path, threads, output="y")
        assert "paus" not in log.lower(), log
        assert "exceeded" not in log.lower(), log
        assert peaks[files] < 600 * 2**20
    with capsys.disabled():
        shown = ", ".join(f"{files} files: {peak / 2**20:.0f} MiB" for files, peak in peaks.items())
        print(f"\npeak resident memory of a worker with {threads} thread(s): {shown}")
    assert max(peaks.values()) < 1.3 * min(peaks.values())


def test_a_model_takes_little_more(tmp_path, capsys):
    """XGBoost and what it imports take 80 MB of every worker, and what the model said of 8 million rows 32 MB."""
    rng = np.random.default_rng(1)
    names = [f"x{j:02d}" for j in range(COLUMNS)]
    small = xgboost.DMatrix(rng.standard_normal((1000, COLUMNS)), rng.standard_normal(1000), feature_names=names)
    booster = xgboost.train({"max_depth": 3}, small, 3)
    lake = write(tmp_path / "lake", 8)
    peak, log = explained_by_one_worker(lake, tmp_path, 2, "700MiB", model=booster)
    assert "paus" not in log.lower(), log
    assert peak < 560 * 2**20
    with capsys.disabled():
        print(f"\npeak resident memory of a worker with 2 threads and a model: {peak / 2**20:.0f} MiB")
