"""cluster/slurm.yaml with a real SLURM of one node on loopback.

Debian has it: apt-get install slurmctld slurmd slurm-client munge
"""

import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import oracle
import pandas as pd
import pytest
import yaml
from processes import stop

from excir_dask import explain

ROOT = Path(__file__).parents[2]
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scancel", "sinfo")
MISSING = [program for program in PROGRAMS if shutil.which(program) is None]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.cluster,
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
    pytest.mark.skipif(os.geteuid() != 0, reason="slurmd starts jobs as root only"),
]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def slurm(folder: Path) -> Iterator[Path]:
    """A controller and a node; yields their configuration."""
    (folder / "munge.key").write_bytes(secrets.token_bytes(1024))
    (folder / "munge.key").chmod(0o400)
    host = socket.gethostname().partition(".")[0]
    configuration = folder / "slurm.conf"
    configuration.write_text(f"""
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={free_port()}
SlurmdPort={free_port()}
SlurmUser=root
AuthInfo=socket={folder}/munge.sock
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 RealMemory=9000
PartitionName=batch Nodes=ALL Default=YES State=UP
""")
    environment = {**os.environ, "SLURM_CONF": str(configuration)}
    with ExitStack() as stack:
        log = stack.enter_context(open(folder / "log", "w"))
        munge = [f"--{name}-file={folder}/munged.{name}" for name in ("pid", "log", "seed")]
        munge += [f"--key-file={folder}/munge.key", f"--socket={folder}/munge.sock"]
        for command in (
            ["munged", "--foreground", "--force", *munge],
            ["slurmctld", "-D"],
            ["slurmd", "-D"],
        ):
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=folder)
            stack.callback(stop, process)
        patience = time.monotonic() + 60
        while "idle" not in subprocess.run(["sinfo"], env=environment, capture_output=True, text=True).stdout:
            assert time.monotonic() < patience, (folder / "log").read_text()
            time.sleep(0.2)
        yield configuration


def test_the_slurm_file_submits_jobs_and_gives_the_same_bytes(tmp_path, tmp_path_factory, monkeypatch):
    lake = oracle.write_lake(tmp_path / "lake", pd.DataFrame({"x": [1.0, 2, 3, 4], "pred": [1.0, 2, 3, 4]}))
    content = yaml.safe_load((ROOT / "cluster" / "slurm.yaml").read_text())
    content["wait"] = "60s"
    content["options"] |= {
        "interface": "lo",
        "scheduler_options": {"dashboard_address": "127.0.0.1:0"},
        "shared_temp_directory": str(tmp_path),
        "python": sys.executable,
        "log_directory": str(tmp_path / "logs"),
        "job_script_prologue": [f"export DASK_CONFIG={ROOT / 'cluster' / 'dask.yaml'}"],
    }
    content["options"]["worker_extra_args"] += ["--no-dashboard"]
    (tmp_path / "dask.yaml").write_text((ROOT / "cluster" / "dask.yaml").read_text())
    file = tmp_path / "slurm.yaml"
    file.write_text(yaml.safe_dump(content))
    with slurm(tmp_path_factory.mktemp("s")) as configuration:
        monkeypatch.setenv("SLURM_CONF", str(configuration))
        found = explain(lake, output="pred", cluster=file)
        jobs = subprocess.run(["scontrol", "show", "jobs"], capture_output=True, text=True, check=True).stdout
        assert "JobName=dask-worker" in jobs
        assert "JobState=RUNNING" not in jobs  # they end with the run
    assert found.to_json() == explain(lake, output="pred").to_json()
