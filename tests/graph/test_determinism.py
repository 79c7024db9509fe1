"""The same answer every time: any number of threads or workers, any scheduler, to the last byte."""

import os

import dask
import numpy as np
import oracle
import pandas as pd
import pytest
from processes import dask_processes

from excir_dask import explain
from excir_dask.errors import ClusterError, DataError

OPTIONS = {"output": ["y", "z"], "budget": "1MiB", "fraction": 0.7, "seed": 1, "groups": {"g": ["a", "b"]}}


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((60_000, 6)), columns=list("abcdef"))
    frame["b"] = np.exp(frame["b"])
    frame["c"] = frame["c"].round()
    frame.loc[rng.random(60_000) < 0.3, "d"] = np.nan
    frame = frame.assign(y=frame["a"] - frame["b"] + rng.standard_normal(60_000), z=frame["c"] * frame["a"])
    return oracle.write_lake(tmp_path_factory.mktemp("determinism") / "lake", frame, 9, 3000)


@pytest.fixture(scope="module")
def reference(lake):
    with dask.config.set(scheduler="synchronous"):
        return explain(lake, **OPTIONS).to_json()


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_threads_do_not_change_a_byte(lake, reference, threads):
    with dask.config.set(num_workers=threads):
        for _ in range(2):
            assert explain(lake, **OPTIONS).to_json() == reference


def test_an_in_process_cluster_does_not_change_a_byte(lake, reference):
    from distributed import Client

    with Client(processes=False, n_workers=2, threads_per_worker=2, dashboard_address=":0") as client:
        assert explain(lake, **OPTIONS).to_json() == reference  # the active client
        assert explain(lake, scheduler=client, **OPTIONS).to_json() == reference


@pytest.mark.cluster
@pytest.mark.parametrize("workers", [1, 3])
def test_worker_processes_do_not_change_a_byte(lake, reference, workers):
    with dask_processes(workers, "--nthreads", "2") as address:
        assert explain(str(lake), scheduler=address, **OPTIONS).to_json() == reference


@pytest.mark.cluster
def test_a_worker_that_dies_does_not_change_a_byte(lake, reference):
    from distributed import Client

    with dask_processes(2, "--nthreads", "1", "--nanny") as address, Client(address, set_as_default=False) as client:
        first = next(iter(client.scheduler_info()["workers"]))
        client.submit(os._exit, 1, workers=[first], allow_other_workers=False, retries=0, pure=False)
        assert explain(str(lake), scheduler=client, **OPTIONS).to_json() == reference


def test_task_names_are_readable_and_unlike_between_runs(lake):
    from dask.callbacks import Callback
    from dask.utils import key_split

    runs = []
    for _ in range(2):
        keys = []
        with dask.config.set(scheduler="synchronous"), Callback(pretask=lambda key, *_, keys=keys: keys.append(key)):
            explain(lake, **OPTIONS)
        runs.append(keys)
    assert {key_split(key) for key in runs[0]} >= {
        "excir-pilot", "excir-pilot-merge", "excir-reference", "excir-pass", "excir-pass-merge",
    }  # fmt: skip
    assert not set(runs[0]) & set(runs[1])


def test_errors_come_back_from_the_cluster_as_they_were(lake, tmp_path):
    from distributed import Client

    frame = pd.DataFrame({"x": [1.0, 2, 3], "y": [1.0, 2, 3], "w": [1.0, -1, 1]})
    bad = oracle.write_lake(tmp_path / "bad", frame)
    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
        with pytest.raises(DataError, match="'w' \\(weights\\) has negative values"):
            explain(bad, output="y", weights="w", scheduler=client)
        # the cluster goes on working after it
        assert explain(lake, scheduler=client, **OPTIONS).facts.rows.lake == 60_000


def test_an_unreachable_scheduler_is_an_error_that_says_what_to_do(lake):
    with pytest.raises(ClusterError, match=r"no scheduler answers at tcp://127\.0\.0\.1:9"):
        explain(lake, scheduler="tcp://127.0.0.1:9", **OPTIONS)


def test_a_cluster_without_workers_is_reported_as_stalled(lake):
    from distributed import Client, LocalCluster

    from excir_dask.graph.progress import Work
    from excir_dask.graph.run import ClusterRunner

    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
        pytest.raises(ClusterError, match="no slice has finished"),
    ):
        ClusterRunner(client, stall_seconds=0.5).run({"a": (abs, -1)}, ["a"], Work({"a": 1}), "test")
