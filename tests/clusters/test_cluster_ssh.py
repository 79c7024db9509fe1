"""cluster/ssh.yaml against a real SSH server on loopback, which is part of asyncssh."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import oracle
import pandas as pd
import pytest
import yaml

from excir_dask import explain
from excir_dask.errors import ClusterError

CLUSTER = Path(__file__).parents[2] / "cluster"


@contextmanager
def ssh_server(folder: Path) -> Iterator[dict[str, object]]:
    """Yields the options to connect with."""
    script = Path(__file__).parents[1] / "ssh_server.py"
    server = subprocess.Popen([sys.executable, str(script), str(folder)], stdout=subprocess.PIPE, text=True)
    try:
        port = int(server.stdout.readline())
        yield {
            "port": port,
            "username": "analyst",
            "client_keys": [str(folder / "key")],
            "known_hosts": str(folder / "known_hosts"),
            "config": None,
            "agent_path": None,
        }
    finally:
        server.terminate()
        server.wait(timeout=20)
        server.stdout.close()


def changed(folder: Path, connect_options: dict[str, object], **more: object) -> str:
    content = yaml.safe_load((CLUSTER / "ssh.yaml").read_text())
    content["options"] |= {
        "hosts": ["127.0.0.1"] * 3,
        "connect_options": connect_options,
        # the hosts are this machine: without an address they would listen on its networks
        "worker_options": {"nthreads": 1, "memory_limit": "1GiB", "host": "127.0.0.1", "dashboard": False},
        "scheduler_options": {"host": "127.0.0.1", "dashboard": False},
        "remote_python": sys.executable,
    }
    (folder / "dask.yaml").write_text((CLUSTER / "dask.yaml").read_text())
    file = folder / "ssh.yaml"
    file.write_text(yaml.safe_dump({**content, **more}))
    return str(file)


@pytest.fixture
def lake(tmp_path):
    return oracle.write_lake(tmp_path / "lake", pd.DataFrame({"x": [1.0, 2, 3, 4], "pred": [1.0, 2, 3, 4]}))


@pytest.mark.slow
@pytest.mark.cluster
def test_the_ssh_file_starts_scheduler_and_workers_and_gives_the_same_bytes(lake, tmp_path):
    with ssh_server(tmp_path) as connect_options:
        found = explain(lake, output="pred", cluster=changed(tmp_path, connect_options))
    assert found.to_json() == explain(lake, output="pred").to_json()


def test_a_host_that_does_not_answer_is_an_error_that_says_what_to_do(lake, tmp_path):
    with ssh_server(tmp_path) as connect_options:
        pass
    with pytest.raises(ClusterError, match=r"ssh\.yaml \(kind ssh\) did not start"):
        explain(lake, output="pred", cluster=changed(tmp_path, connect_options))
