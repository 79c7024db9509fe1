"""A cluster by hand with TLS: the same bytes as without one, and clients without a certificate are rejected."""

import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import oracle
import pandas as pd
import pytest
import yaml
from processes import dask_processes

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "cluster" / "make-certificates.py"


def make_certificates(folder: Path) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, str(SCRIPT), str(folder)], capture_output=True, text=True)


def pair(folder: Path, name: str) -> dict[str, str]:
    return {
        "ca": str(folder / "ca.pem"),
        "cert": str(folder / f"{name}.pem"),
        "key": str(folder / f"{name}-key.pem"),
    }


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls") / "certificates"
    done = make_certificates(folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((100_000, 4)), columns=list("abcd"))
    return oracle.write_lake(tmp_path_factory.mktemp("tls") / "lake", frame.assign(y=frame["a"] - frame["b"]), 5, 4000)


@pytest.fixture(scope="module")
def address(certificates):
    with dask_processes(2, "--nthreads", "1", tls=pair(certificates, "cluster")) as found:
        yield found


def job(lake: Path, out: Path, *options: str) -> subprocess.CompletedProcess:
    command = [sys.executable, str(ROOT / "jobs" / "explain.py"), str(lake), "--output", "y", "--budget", "1MiB"]
    return subprocess.run(
        [*command, "--out", str(out), *options], capture_output=True, text=True, cwd=out.parent, timeout=120
    )


def cluster_file(folder: Path, address: str, tls: dict[str, str] | None) -> str:
    file = folder / "address.yaml"
    file.write_text(yaml.safe_dump({"kind": "address", "address": address, **({"tls": tls} if tls else {})}))
    return str(file)


@pytest.mark.cluster
def test_a_job_on_a_cluster_with_tls_saves_the_bytes_of_the_local_run(lake, certificates, address, tmp_path):
    assert address.startswith("tls://127.0.0.1:")
    local = job(lake, tmp_path / "local")
    assert local.returncode == 0, local.stderr
    file = cluster_file(tmp_path, address, pair(certificates, "client"))
    remote = job(lake, tmp_path / "remote", "--cluster", file)
    assert remote.returncode == 0, remote.stderr
    name = "explanation.json"
    assert (tmp_path / "remote" / name).read_bytes() == (tmp_path / "local" / name).read_bytes()


@pytest.mark.slow
@pytest.mark.cluster
def test_certificates_may_come_from_the_settings_of_dask(lake, certificates, address, tmp_path, monkeypatch):
    files = pair(certificates, "client")
    monkeypatch.setenv("DASK_DISTRIBUTED__COMM__TLS__CA_FILE", files["ca"])
    monkeypatch.setenv("DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT", files["cert"])
    monkeypatch.setenv("DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY", files["key"])
    done = job(lake, tmp_path / "out", "--scheduler", address)
    assert done.returncode == 0, done.stderr


@pytest.mark.cluster
def test_a_client_without_a_certificate_is_rejected(lake, address, tmp_path):
    done = job(lake, tmp_path / "out", "--scheduler", address)
    assert done.returncode == 2, done.stderr
    assert "certificate" in done.stderr
    assert "tls:" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.cluster
def test_a_client_that_does_not_encrypt_is_rejected(lake, address, tmp_path):
    done = job(lake, tmp_path / "out", "--scheduler", address.replace("tls://", "tcp://"))
    assert done.returncode == 75, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.cluster
@pytest.mark.parametrize("trusts_the_cluster", [True, False])
def test_a_certificate_of_another_authority_is_rejected(lake, certificates, address, tmp_path, trusts_the_cluster):
    assert make_certificates(tmp_path / "other").returncode == 0
    other = pair(tmp_path / "other", "client")
    if trusts_the_cluster:  # then it is the scheduler that refuses
        other["ca"] = str(certificates / "ca.pem")
    done = job(lake, tmp_path / "out", "--cluster", cluster_file(tmp_path, address, other))
    assert done.returncode == 75, done.stderr
    assert "check address and certificates" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_keys_are_for_their_owner_only_and_the_authority_keeps_none(certificates):
    keys = sorted(certificates.glob("*-key.pem"))
    assert [key.name for key in keys] == ["client-key.pem", "cluster-key.pem"]
    assert {stat.S_IMODE(key.stat().st_mode) for key in keys} == {0o600}
    assert sorted(file.name for file in certificates.iterdir() if file not in keys) == [
        "ca.pem", "client.pem", "cluster.pem",
    ]  # fmt: skip


def test_certificates_are_never_replaced(certificates):
    before = (certificates / "ca.pem").read_bytes()
    done = make_certificates(certificates)
    assert done.returncode == 1
    assert "exists" in done.stderr
    assert (certificates / "ca.pem").read_bytes() == before
