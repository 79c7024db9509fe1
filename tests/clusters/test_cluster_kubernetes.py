"""Manifests against the schemas that the operator's package carries, and no field that Kubernetes would drop."""

import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from excir_dask.clusters.kubernetes import own_spec

pytest.importorskip("dask_kubernetes", reason="dask-kubernetes is not installed: pip install '.[clusters]'")

FOLDER = Path(__file__).parents[2] / "cluster" / "kubernetes"
CRDS = {"DaskCluster": "daskcluster", "DaskJob": "daskjob", "DaskAutoscaler": "daskautoscaler"}


def load(name: str) -> dict:
    return yaml.safe_load((FOLDER / name).read_text())


@cache
def schema(kind: str) -> dict:
    chart = files("dask_kubernetes") / "operator/deployment/helm/dask-kubernetes-operator/crds"
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # 10,000 lines
    definition = yaml.load((chart / f"{CRDS[kind]}.yaml").read_text(), Loader=loader)
    return definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def unknown(value: object, shape: dict, path: str = "") -> list[str]:
    """Fields that the schema does not have: the API server drops them silently."""
    if isinstance(value, list):
        return [name for item in value for name in unknown(item, shape.get("items", {}), f"{path}[]")]
    if not isinstance(value, dict) or "properties" not in shape:
        return []
    found = []
    for name, inner in value.items():
        if name in shape["properties"]:
            found += unknown(inner, shape["properties"][name], f"{path}.{name}")
        elif path or name not in ("apiVersion", "kind", "metadata"):
            found.append(f"{path}.{name}")
    return found


def check(manifest: dict) -> None:
    import jsonschema

    shape = schema(manifest["kind"])
    jsonschema.Draft202012Validator(shape).validate(manifest)
    assert unknown(manifest, shape) == []


JOB_OF_A_FILE = "../../jobs/submit/daskjob.yaml"


@pytest.mark.parametrize("name", ["daskcluster.yaml", "daskjob.yaml", "autoscaler.yaml", JOB_OF_A_FILE])
def test_a_manifest_fits_the_schema_of_the_operator(name):
    check(load(name))


def test_the_check_finds_what_is_wrong():
    import jsonschema

    manifest = load("daskcluster.yaml")
    manifest["spec"]["worker"]["spec"]["containers"][0]["imagee"] = "x"
    assert unknown(manifest, schema("DaskCluster")) == [".spec.worker.spec.containers[].imagee"]
    manifest["spec"]["worker"]["replicas"] = "four"
    with pytest.raises(jsonschema.ValidationError):
        check(manifest)


def test_a_run_gets_a_cluster_of_its_own():
    first, second = own_spec(FOLDER / "daskcluster.yaml"), own_spec(FOLDER / "daskcluster.yaml")
    check(first)
    assert first["metadata"]["name"] != second["metadata"]["name"]
    assert first["spec"]["scheduler"]["service"]["selector"]["dask.org/cluster-name"] == first["metadata"]["name"]


@pytest.mark.parametrize("name", ["daskjob.yaml", JOB_OF_A_FILE])
def test_the_job_has_the_cluster_of_the_cluster_file(name):
    job, cluster = load(name), load("daskcluster.yaml")
    cluster["spec"]["scheduler"]["service"]["selector"]["dask.org/cluster-name"] = job["metadata"]["name"]
    assert job["spec"]["cluster"]["spec"] == cluster["spec"]


def test_the_autoscaler_is_for_that_cluster():
    assert load("autoscaler.yaml")["spec"]["cluster"] == load("daskcluster.yaml")["metadata"]["name"]


def test_a_worker_fits_in_its_container():
    from dask.utils import parse_bytes

    container = load("daskcluster.yaml")["spec"]["worker"]["spec"]["containers"][0]
    options = dict(pairwise(container["args"]))
    limit = parse_bytes(container["resources"]["limits"]["memory"].replace("Mi", "MiB").replace("Gi", "GiB"))
    assert parse_bytes(options["--memory-limit"]) < limit
    assert options["--nthreads"] == container["resources"]["requests"]["cpu"]


@pytest.mark.parametrize("name", ["daskjob.yaml", JOB_OF_A_FILE])
def test_a_run_that_cannot_succeed_is_not_retried_for_ever(name):
    """A job of the operator is a pod, which has no podFailurePolicy."""
    spec = load(name)["spec"]["job"]["spec"]
    assert spec["restartPolicy"] == "Never"
    assert spec["containers"][0]["args"][:2] == ["sh", "jobs/submit/retry-after-75.sh"]


@pytest.mark.parametrize(
    ("name", "model"), [("cronjob.yaml", "V1CronJob"), ("results.yaml", "V1PersistentVolumeClaim")]
)
def test_a_manifest_has_only_fields_that_kubernetes_has(name, model):
    from kubernetes import client

    def walk(value: object, kind: str, path: str) -> None:
        if inner := re.fullmatch(r"list\[(.*)\]", kind):
            assert isinstance(value, list), path
            for item in value:
                walk(item, inner.group(1), f"{path}[]")
            return
        model = getattr(client, kind, None)
        if model is None:
            simple = {"str": str, "int": int, "bool": bool}.get(kind)
            assert simple is None or isinstance(value, simple), f"{path} is {value!r}, not {kind}"
            return
        fields = {field: model.openapi_types[name] for name, field in model.attribute_map.items()}
        for name, item in value.items():
            assert name in fields, f"{path}.{name}"
            walk(item, fields[name], f"{path}.{name}")
        model(
            **{name: value[field] for name, field in model.attribute_map.items() if field in value}
        )  # what is required

    walk(load(name), model, "")


def test_the_cron_job_retries_transient_failures_only():
    spec = load("cronjob.yaml")["spec"]["jobTemplate"]["spec"]
    rule = spec["podFailurePolicy"]["rules"][0]
    assert rule["action"] == "FailJob"
    assert rule["onExitCodes"]["values"] == [2, 3]
    assert rule["onExitCodes"]["containerName"] == spec["template"]["spec"]["containers"][0]["name"]
    assert spec["template"]["spec"]["restartPolicy"] == "Never"  # podFailurePolicy asks for it


class Api(BaseHTTPRequestHandler):
    """A Kubernetes that says its version and fails at everything else."""

    def do_GET(self) -> None:
        known = self.path.strip("/") == "version"
        body = b'{"major": "1", "minor": "34", "gitVersion": "v1.34.0"}' if known else b'{"message": "no such thing"}'
        self.send_response(200 if known else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_DELETE = do_GET  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def api() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Api) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def job(folder: Path, port: int | None) -> subprocess.CompletedProcess[str]:
    """A run on the cluster of kubernetes.yaml, with credentials for a port of this machine or with none."""
    configuration = folder / "kubeconfig"
    if port is not None:
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "clusters": [{"name": "test", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
            "users": [{"name": "test", "user": {"token": "x"}}],
        }
        configuration.write_text(yaml.safe_dump(content))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KUBERNETES_")}
    environment |= {"HOME": str(folder), "KUBECONFIG": str(configuration)}
    command = [sys.executable, "-m", "excir_dask", "explain", "lake", "--output", "y", "--json", "--cluster"]
    return subprocess.run(
        [*command, str(FOLDER.parent / "kubernetes.yaml")], capture_output=True, text=True, env=environment, timeout=60
    )


def test_without_credentials_it_says_how_to_get_them(tmp_path):
    done = job(tmp_path, None)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert "there are no credentials for Kubernetes" in line
    assert "kubectl get pods" in line


def test_a_kubernetes_that_does_not_answer_is_worth_a_retry(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    done = job(tmp_path, port)
    assert (done.returncode, done.stdout) == (75, "")
    (line,) = done.stderr.splitlines()
    assert "Kubernetes does not answer" in line


def test_nothing_is_drawn_where_results_go(tmp_path):
    with api() as port:
        done = job(tmp_path, port)
    assert (done.returncode, done.stdout) == (75, "")
    assert "did not start" in done.stderr
