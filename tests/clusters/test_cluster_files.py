"""cluster/ and jobs/ hold what a user copies: every setting must exist in dask, every file must do what it says."""

import re
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import dask
import distributed  # noqa: F401  (its defaults are what we compare with)
import numpy as np
import oracle
import pandas as pd
import pytest
import yaml
from dask.utils import parse_timedelta

from excir_dask import explain, sweep, train
from excir_dask.clusters.config import read_cluster_file
from excir_dask.clusters.kind import StartedKind
from excir_dask.clusters.registry import KINDS
from excir_dask.clusters.start import checked_kind, dask_settings
from excir_dask.errors import ClusterError, UsageError

ROOT = Path(__file__).parents[2]
CLUSTER = ROOT / "cluster"
QUIET = {"dashboard_address": "127.0.0.1:0"}
FILES = sorted(file for file in CLUSTER.glob("*.yaml") if file.name != "dask.yaml")


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    frame = pd.DataFrame({"x": [1.0, 2, 3, 4], "pred": [1.0, 2, 3, 4]})
    return oracle.write_lake(tmp_path_factory.mktemp("files") / "lake", frame)


def leaves(tree: dict, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = []
    for name, value in tree.items():
        found += leaves(value, (*path, name)) if isinstance(value, dict) else [(*path, name)]
    return found


def write(folder: Path, **content: object) -> str:
    file = folder / "cluster.yaml"
    file.write_text(yaml.safe_dump(content))
    return str(file)


def changed(name: str, folder: Path, **options: object) -> str:
    """A file of cluster/ with other options, beside the settings that it names."""
    content = yaml.safe_load((CLUSTER / name).read_text())
    content["options"] = {**content["options"], **options}
    (folder / "dask.yaml").write_text((CLUSTER / "dask.yaml").read_text())
    return write(folder, **content)


def test_every_setting_is_one_that_dask_knows():
    settings = yaml.safe_load((CLUSTER / "dask.yaml").read_text())
    assert leaves(settings)
    for path in leaves(settings):
        dask.config.get(".".join(path))  # raises KeyError for a name that dask does not have


def test_the_settings_that_matter_are_there():
    settings = {".".join(path) for path in leaves(yaml.safe_load((CLUSTER / "dask.yaml").read_text()))}
    assert settings >= {
        "distributed.scheduler.no-workers-timeout",
        "distributed.scheduler.allowed-failures",
        "distributed.scheduler.worker-ttl",
        *(f"distributed.worker.memory.{name}" for name in ("target", "spill", "pause", "terminate")),
        "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_",
    }


@pytest.mark.parametrize("job", ["explain.py"])
def test_a_job_runs_as_a_script(job, lake, tmp_path):
    command = [sys.executable, str(ROOT / "jobs" / job), str(lake), "--output", "pred", "--out", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "explanation.json").exists()


def test_there_is_a_file_for_every_kind():
    assert sorted(yaml.safe_load(file.read_text())["kind"] for file in FILES) == sorted(KINDS)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_file_is_read_and_has_options_that_exist(file, tmp_path):
    if "tls" in yaml.safe_load(file.read_text()):  # certificates are made by the user
        certificates = tmp_path / "certificates"
        subprocess.run([sys.executable, str(CLUSTER / "make-certificates.py"), str(certificates)], check=True)
        file = tmp_path / file.name
        file.write_text((CLUSTER / file.name).read_text())
    found = read_cluster_file(file)
    kind = KINDS[found.kind]
    pytest.importorskip(kind.package, reason="not installed: pip install '.[clusters]'")
    with dask_settings(found):
        assert not isinstance(kind, StartedKind) or checked_kind(found) is kind


@pytest.mark.cluster
def test_the_local_file_starts_processes_and_gives_the_same_bytes(lake, tmp_path):
    job = [sys.executable, str(ROOT / "jobs" / "explain.py"), str(lake), "--output", "pred"]
    command = [*job, "--out", str(tmp_path / "out"), "--cluster", str(CLUSTER / "local.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "explanation.json").read_text() == explain(lake, output="pred").to_json()


@pytest.mark.slow
@pytest.mark.cluster
def test_a_sweep_trains_and_explains_on_one_cluster(tmp_path, caplog):
    frame = pd.DataFrame({"x": np.arange(400.0) % 37, "z": np.arange(400.0) % 11}).assign(y=lambda f: f["x"] > 20)
    lake = oracle.write_lake(tmp_path / "lake", frame, 2)
    learning = {"label": "y", "rounds": 2, "params": {"max_depth": 2}}
    file = write(tmp_path, kind="local", options={"n_workers": 2, "threads_per_worker": 1, **QUIET})
    with caplog.at_level("INFO", "excir_dask"):
        found = sweep(lake, retrain=learning, fractions=[0.5], seeds=1, k=1, cluster=file)
    assert sum(record.getMessage().startswith("dashboard") for record in caplog.records) == 1
    assert list(found.summary["fraction"]) == [0.5, 1.0]
    with caplog.at_level("INFO", "excir_dask"):
        assert train(lake, cluster=file, **learning).provenance.workers == 2


def test_settings_of_a_file_end_with_it(tmp_path):
    file = read_cluster_file(write(tmp_path, kind="local", dask={"distributed": {"scheduler": {"worker-ttl": "7s"}}}))
    before = dask.config.get("distributed.scheduler")
    with dask_settings(file):
        assert dask.config.get("distributed.scheduler") == {**before, "worker-ttl": "7s"}
    assert dask.config.get("distributed.scheduler") == before


def job_script(name: str, folder: Path) -> str:
    """What the queue would get, with loopback as the network that nodes share."""
    network = {"interface": "lo", "scheduler_options": QUIET}
    file = read_cluster_file(changed(name, folder, shared_temp_directory=str(folder), **network))
    with dask_settings(file), checked_kind(file).start(file) as cluster:
        return cluster.job_script()


@pytest.mark.parametrize(
    ("name", "directives"),
    [
        ("slurm.yaml", ["#SBATCH -p batch", "#SBATCH -A my-project", "#SBATCH -n 1", "#SBATCH --cpus-per-task=4",
                        "#SBATCH --mem=8G", "#SBATCH -t 02:00:00"]),
        ("pbs.yaml", ["#PBS -q workq", "#PBS -A my-project", "#PBS -l select=1:ncpus=4:mem=8gb",
                      "#PBS -l walltime=02:00:00"]),
    ],
)  # fmt: skip
def test_the_job_script_of_a_queue(name, directives, tmp_path):
    lines = job_script(name, tmp_path).splitlines()
    assert set(directives) <= set(lines), lines
    assert "export DASK_CONFIG=$HOME/excir/cluster/dask.yaml" in lines
    worker = shlex.split(lines[-1])
    value = dict(pairwise(worker))
    assert worker[1:3] == ["-m", "distributed.cli.dask_worker"]
    assert worker[3].startswith("tls://127.0.0.1:")
    assert value["--nthreads"] == "4"
    assert value["--memory-limit"] == "8.00GiB"
    assert {"--tls-ca-file", "--tls-cert", "--tls-key"} <= set(worker)
    hours, minutes, _ = re.search(r"(\d\d):(\d\d):(\d\d)", "\n".join(lines)).groups()
    walltime = 3600 * int(hours) + 60 * int(minutes)
    assert parse_timedelta(value["--lifetime"]) + parse_timedelta(value["--lifetime-stagger"]) < walltime


def test_certificates_of_a_file_reach_the_job_script(tmp_path):
    subprocess.run([sys.executable, str(CLUSTER / "make-certificates.py"), str(tmp_path / "tls")], check=True)
    tls = {"ca": "tls/ca.pem", "cert": "tls/cluster.pem", "key": "tls/cluster-key.pem"}
    options = {"cores": 1, "memory": "1GiB", "interface": "lo", "scheduler_options": QUIET}
    file = read_cluster_file(write(tmp_path, kind="slurm", workers=1, options=options, tls=tls))
    with dask_settings(file), checked_kind(file).start(file) as cluster:
        script = cluster.job_script()
    assert f"--tls-cert {tmp_path / 'tls' / 'cluster.pem'}" in script
    assert " tls://127.0.0.1:" in script


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"kind": "slrum"}, "kind is 'slrum'; did you mean 'slurm'"),
        ({}, "kind is None"),
        ({"kind": "local", "worker": 2}, "does not take 'worker'; did you mean 'workers'"),
        ({"kind": "ssh", "options": {"hosts": []}, "workers": 2}, "kind ssh does not take 'workers'"),
        ({"kind": "address"}, "kind address needs 'address'"),
        ({"kind": "slurm", "workers": 1}, "kind slurm needs 'options'"),
        ({"kind": "local", "workers": 0}, "workers is 0; write a number from 1"),
        ({"kind": "local", "workers": True}, "workers is True"),
        ({"kind": "local", "workers": {"minimum": 3, "maximum": 2}}, "workers is {'maximum': 2, 'minimum': 3}"),
        ({"kind": "local", "workers": {"minimum": 0, "maximum": 2}}, "minimum \\(from 1\\) and maximum"),
        ({"kind": "local", "workers": {"max": 2}}, "workers does not take 'max'"),
        ({"kind": "local", "wait": "soon"}, "wait is 'soon'; write a time"),
        ({"kind": "local", "options": [1]}, "options is \\[1\\]"),
        ({"kind": "local", "tls": {"ca": "ca.pem"}}, "tls has 'ca'; name ca, cert and key"),
        ({"kind": "local", "tls": {"ca": "a", "cert": "b", "key": "c"}}, "tls ca is .*a, which is not a file"),
        ({"kind": "local", "dask": 3}, "dask is 3"),
        ({"kind": "local", "dask": "none.yaml"}, "none.yaml: there is no such file to read dask's settings from"),
        ({"kind": "local", "dask": {"distributed.scheduler.worker-tll": "7s"}}, "no setting .*mean 'worker-ttl"),
        ({"kind": "local", "options": {"memroy_limit": "1GiB"}}, "take 'memroy_limit'; did you mean 'memory_limit'"),
        ({"kind": "address", "address": "nowhere"}, "not a scheduler's address"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_an_error_that_says_what_to_do(content, message, lake, tmp_path):
    with pytest.raises(UsageError, match=message):
        explain(lake, output="pred", cluster=write(tmp_path, **content))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind: local\nworkers: 1\nworkers: 2", "'workers' is given twice, on lines 2 and 3"),
        ("kind: local\ndask: {temporary-directory: a, temporary-directory: b}", "'temporary-directory' is given twice"),
        ("kind: local\ndask: {a: {b: 1}, a.b: 2}", "dask's setting 'a.b' is given twice"),
        ("kind: local\ndask: settings.yaml", "settings.yaml: 'a' is given twice, on lines 1 and 2"),
        ("kind: [", "not YAML on line"),
        ("local", "cluster.yaml holds no mapping"),
    ],
)  # fmt: skip
def test_a_cluster_file_is_read_as_strictly_as_every_other_file(text, message, tmp_path):
    (tmp_path / "cluster.yaml").write_text(text)
    (tmp_path / "settings.yaml").write_text("a: 1\na: 2")
    with pytest.raises(UsageError, match=message):
        read_cluster_file(tmp_path / "cluster.yaml")


def test_a_wrong_cluster_of_kubernetes_is_an_error_that_says_what_to_do(lake, tmp_path):
    pytest.importorskip("dask_kubernetes", reason="dask-kubernetes is not installed: pip install '.[clusters]'")
    content = {"kind": "kubernetes", "workers": 1, "options": {"custom_cluster_spec": "x.yaml"}}
    for text, message in (("a: 1", "is not a DaskCluster"), ("a: 1\na: 2", "'a' is given twice")):
        (tmp_path / "x.yaml").write_text(text)
        with pytest.raises(UsageError, match=message):
            explain(lake, output="pred", cluster=write(tmp_path, **content))


def test_a_missing_package_is_an_error_with_the_command(lake, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "dask_jobqueue", None)
    file = write(tmp_path, kind="slurm", workers=1, options={"cores": 1, "memory": "1GiB"})
    with pytest.raises(UsageError, match=r"pip install 'excir-dask\[jobqueue\]'"):
        explain(lake, output="pred", cluster=file)


def queue(folder: Path, monkeypatch: pytest.MonkeyPatch, sbatch: str | None, workers: object = 1) -> str:
    """A cluster file for a queue that answers as the script does."""
    programs = folder / "bin"
    programs.mkdir()
    if sbatch is not None:
        for name, script in (("sbatch", sbatch), ("scancel", "true")):
            (programs / name).write_text(f"#!/bin/sh\n{script}\n")
            (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin" if sbatch else str(programs))
    options = {"cores": 1, "memory": "1GiB", "interface": "lo", "scheduler_options": QUIET}
    return write(folder, kind="slurm", workers=workers, wait="1s", options=options)


@pytest.mark.parametrize("workers", [1, {"minimum": 1, "maximum": 2}])
def test_a_queue_that_starts_nothing_is_given_up(workers, lake, tmp_path, monkeypatch):
    file = queue(tmp_path, monkeypatch, "echo Submitted batch job 1", workers)
    with pytest.raises(ClusterError, match="no worker after 1 s"):
        explain(lake, output="pred", cluster=file)


@pytest.mark.parametrize("workers", [1, {"minimum": 1, "maximum": 2}])
def test_what_a_queue_says_when_it_refuses_is_the_error(workers, lake, tmp_path, monkeypatch):
    file = queue(tmp_path, monkeypatch, "echo invalid account >&2; exit 1", workers)
    with pytest.raises(ClusterError, match=r"\(kind slurm\) did not start(.|\n)*invalid account"):
        explain(lake, output="pred", cluster=file)


def test_a_machine_without_the_queue_is_an_error_that_says_so(lake, tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="submits jobs with 'sbatch', which this machine does not have"):
        explain(lake, output="pred", cluster=queue(tmp_path, monkeypatch, None))


def test_one_of_scheduler_and_cluster(lake, tmp_path):
    with pytest.raises(UsageError, match=r"both the scheduler tcp://127\.0\.0\.1:9 and the cluster file"):
        explain(lake, output="pred", scheduler="tcp://127.0.0.1:9", cluster=write(tmp_path, kind="local"))


def test_the_image_has_what_its_commands_need():
    lines = (CLUSTER / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    steps = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    names = [name for name, _ in steps]
    assert names[0] == "FROM"
    assert set(names) <= {"FROM", "RUN", "COPY", "WORKDIR", "ENV", "USER", "CMD"}
    assert names.index("USER") > max(index for index, name in enumerate(names) if name in ("RUN", "COPY"))
    for name, rest in steps:
        if name == "COPY":
            assert all((ROOT / source).exists() for source in rest.split()[:-1]), rest
    extras = re.search(r"'\.\[(.*?)\]'", "\n".join(lines)).group(1).split(",")
    project = re.search(r"optional-dependencies\]\n(.*?)\n\[", (ROOT / "pyproject.toml").read_text(), re.S).group(1)
    assert all(f"\n{extra} = " in f"\n{project}" for extra in extras)
    python = re.search(r"FROM python:(\d\.\d+)", "\n".join(lines)).group(1)
    assert f"Python :: {python}" in (ROOT / "pyproject.toml").read_text()


def test_the_readme_names_every_file():
    text = (CLUSTER / "README.md").read_text()
    for file in CLUSTER.rglob("*"):
        if file.is_file() and file.name != "README.md" and "__pycache__" not in file.parts:
            assert file.name in text, file


def test_the_readme_has_every_key_of_a_cluster_file():
    table = (CLUSTER / "README.md").read_text().partition("## What a cluster file may say")[2].partition("## ")[0]
    named = set(re.findall(r"^\| `(\w+)` \|", table, re.M))
    assert named == {"kind"}.union(*(kind.keys for kind in KINDS.values()))
