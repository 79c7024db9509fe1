"""cluster/gateway.yaml with a real gateway server on loopback, which starts processes of this machine."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import oracle
import pandas as pd
import pytest
import yaml
from processes import stop

from excir_dask import explain
from excir_dask.errors import ClusterError

pytest.importorskip("dask_gateway", reason="dask-gateway is not installed: pip install '.[clusters]'")

CLUSTER = Path(__file__).parents[2] / "cluster"
SERVER = Path(sys.executable).parent / "dask-gateway-server"


def changed(folder: Path, address: str) -> str:
    content = yaml.safe_load((CLUSTER / "gateway.yaml").read_text())
    content["options"] = {"address": address, "auth": "basic"}
    content["workers"] = {"minimum": 1, "maximum": 2}
    file = folder / "gateway.yaml"
    file.write_text(yaml.safe_dump(content))
    return str(file)


def healthy(port: int) -> bool:
    """The proxy answers before it knows the way to the server."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/health", timeout=1) as answer:
            return answer.status == 200
    except OSError:
        return False


@contextmanager
def gateway(folder: Path) -> Iterator[str]:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    scheduler, worker = ([sys.executable, "-m", f"distributed.cli.dask_{name}"] for name in ("scheduler", "worker"))
    worker += ["--host", "127.0.0.1"]  # or it would listen on every network
    configuration = folder / "gateway.py"
    # dask no longer installs dask-scheduler and dask-worker, which are the server's default
    configuration.write_text(f"""
c.DaskGateway.backend_class = "dask_gateway_server.backends.local.UnsafeLocalBackend"
c.DaskGateway.address = "127.0.0.1:0"
c.Proxy.address = "127.0.0.1:{port}"
c.Proxy.tcp_address = "127.0.0.1:{port}"
c.LocalBackend.clusters_directory = {str(folder / "clusters")!r}
c.ClusterConfig.scheduler_cmd = {scheduler!r}
c.ClusterConfig.worker_cmd = {worker!r}
c.ClusterConfig.environment = {{"PYTHONPATH": {os.environ.get("PYTHONPATH", "")!r}}}
c.ClusterConfig.worker_cores = 1
c.ClusterConfig.worker_memory = "1 G"
""")
    with open(folder / "log", "w") as log:
        server = subprocess.Popen([SERVER, "-f", str(configuration)], stdout=log, stderr=log, cwd=folder)
        try:
            patience = time.monotonic() + 60
            while not healthy(port):
                assert server.poll() is None, (folder / "log").read_text()
                assert time.monotonic() < patience, (folder / "log").read_text()
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}"
        finally:
            stop(server)


@pytest.fixture
def lake(tmp_path):
    return oracle.write_lake(tmp_path / "lake", pd.DataFrame({"x": [1.0, 2, 3, 4], "pred": [1.0, 2, 3, 4]}))


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.skipif(not SERVER.exists(), reason="dask-gateway-server is not installed")
def test_the_gateway_file_starts_a_cluster_and_gives_the_same_bytes(lake, tmp_path):
    with gateway(tmp_path) as address:
        found = explain(lake, output="pred", cluster=changed(tmp_path, address))
    assert found.to_json() == explain(lake, output="pred").to_json()


def test_a_gateway_that_does_not_answer_is_an_error_that_says_what_to_do(lake, tmp_path):
    with pytest.raises(ClusterError, match=r"gateway\.yaml \(kind gateway\) did not start"):
        explain(lake, output="pred", cluster=changed(tmp_path, "http://127.0.0.1:9"))
