"""Clusters that cannot run the package, seen before the first slice: no workers, no package, another version of it."""

import re
import subprocess
import sys
from pathlib import Path

import oracle
import pandas as pd
import pytest
import yaml
from distributed import Client
from processes import dask_processes, dask_worker

from excir_dask import explain
from excir_dask.errors import ClusterError, UsageError
from excir_dask.version import __version__

pytestmark = pytest.mark.cluster

WITHOUT_THE_PACKAGE = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "excir_dask":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
for name in [name for name in sys.modules if name.partition(".")[0] == "excir_dask"]:  # dask's command loads it
    del sys.modules[name]
"""
WITHOUT_METADATA = """
import importlib.metadata

def version(name):
    raise importlib.metadata.PackageNotFoundError(name)

importlib.metadata.version = version
"""
ANOTHER_VERSION = "import excir_dask.version; excir_dask.version.__version__ = '0.0.9'"


@pytest.fixture(scope="module")
def lake(tmp_path_factory) -> Path:
    frame = pd.DataFrame({"x": [1.0, 2, 3, 4], "pred": [1.0, 2, 3, 4]})
    return oracle.write_lake(tmp_path_factory.mktemp("workers") / "lake", frame)


@pytest.fixture(scope="module")
def scheduler():
    """Without workers: each test brings its own."""
    with dask_processes(0) as address:
        yield address


@pytest.fixture
def client(scheduler):
    with Client(scheduler, set_as_default=False) as client:
        yield client


@pytest.fixture
def preload(tmp_path):
    """The option that runs some lines in a worker or scheduler when it starts."""

    def option(lines: str) -> list[str]:
        (tmp_path / "preload.py").write_text(lines)
        return ["--preload", str(tmp_path / "preload.py")]

    return option


def address_file(folder: Path, address: str, wait: str) -> str:
    file = folder / "address.yaml"
    file.write_text(yaml.safe_dump({"kind": "address", "address": address, "wait": wait}))
    return str(file)


def job(lake: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "excir_dask", "explain", str(lake), "--output", "pred", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_a_worker_without_the_package_is_named_and_lives_on(lake, scheduler, client, preload):
    with dask_worker(scheduler, "--no-nanny", *preload(WITHOUT_THE_PACKAGE)) as process:
        client.wait_for_workers(1, timeout=30)
        (worker,) = client.nthreads()
        done = job(lake, "--scheduler", scheduler)
        assert done.returncode == 2, done.stderr
        said = done.stderr.splitlines()[-1]
        assert f"worker {worker} of the cluster at {scheduler} cannot import excir_dask" in said
        assert f"pip install excir-dask=={__version__}" in said
        with pytest.raises(UsageError, match="cannot import excir_dask"):  # also where the client is the user's
            explain(lake, output="pred", scheduler=client)
        assert process.poll() is None
        assert client.nthreads()


def test_a_worker_of_another_version_is_named_with_both(lake, scheduler, client, preload):
    with dask_worker(scheduler, "--no-nanny", *preload(ANOTHER_VERSION)):
        client.wait_for_workers(1, timeout=30)
        with pytest.raises(UsageError, match=rf"has excir-dask 0\.0\.9, and this machine has {re.escape(__version__)}"):
            explain(lake, output="pred", scheduler=scheduler)


def test_a_scheduler_without_the_package_is_named(lake, preload):
    with (
        dask_processes(1, "--no-nanny", scheduler_options=preload(WITHOUT_THE_PACKAGE)) as address,
        pytest.raises(UsageError, match=r"the scheduler of the cluster at .* cannot import excir_dask"),
    ):
        explain(lake, output="pred", scheduler=address)


@pytest.mark.slow
def test_the_package_need_not_be_installed_where_it_can_be_imported(lake, scheduler, client, preload):
    """As in a source tree that PYTHONPATH names."""
    with dask_worker(scheduler, "--no-nanny", *preload(WITHOUT_METADATA)):
        client.wait_for_workers(1, timeout=30)
        assert len(explain(lake, output="pred", scheduler=scheduler).features) == 1


@pytest.mark.slow
def test_no_workers_is_said_at_once_and_the_first_one_is_waited_for(lake, scheduler, tmp_path):
    command = [sys.executable, "-m", "excir_dask", "explain", str(lake), "--output", "pred", "--scheduler", scheduler]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        said = ""
        while "no workers yet" not in said:
            said = process.stderr.readline()
            assert said, "ended without a word about workers"
        assert f"the cluster at {scheduler} has no workers yet; waiting for the first one, for 300 s at most" in said
        with dask_worker(scheduler, "--no-nanny"):
            out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "ExCIR over 4 rows" in out


def test_a_cluster_that_stays_without_workers_is_given_up(lake, scheduler, tmp_path):
    done = job(lake, "--cluster", address_file(tmp_path, scheduler, "1s"))
    assert done.returncode == 75, done.stderr
    assert "has no worker after 1 s; start some" in done.stderr.splitlines()[-1]


def test_a_scheduler_that_stays_without_workers_is_given_up(lake, scheduler, monkeypatch):
    monkeypatch.setattr("excir_dask.clusters.health.WORKER_WAIT", 1.0)
    with pytest.raises(ClusterError, match="no worker after 1 s"):
        explain(lake, output="pred", scheduler=scheduler)


def test_a_cluster_that_grows_with_the_work_is_woken(lake):
    from distributed import LocalCluster

    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        cluster.adapt(minimum=0, maximum=1, interval="100ms")
        assert len(explain(lake, output="pred", scheduler=client).features) == 1
