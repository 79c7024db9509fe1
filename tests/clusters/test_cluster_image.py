"""One image for scheduler, workers and jobs: manifests name the one that is built, and call what is in it."""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml

from excir_dask.cli import excir

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "cluster" / "Dockerfile").read_text()
MANIFESTS = [*sorted((ROOT / "cluster" / "kubernetes").glob("*.yaml")), ROOT / "jobs" / "submit" / "daskjob.yaml"]
BUILT = re.compile(r"docker build -f cluster/Dockerfile -t (\S+) \.")
AGAIN = "jobs/submit/retry-after-75.sh"


def steps() -> list[tuple[str, str]]:
    lines = DOCKERFILE.replace("\\\n", " ").splitlines()
    found = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    return [(name, rest) for name, rest in found]


def containers(value: Any) -> Iterator[dict[str, Any]]:
    """Every container of a manifest, wherever it stands."""
    if isinstance(value, list):
        for item in value:
            yield from containers(item)
    elif isinstance(value, dict):
        yield from value.get("containers", [])
        for item in value.values():
            yield from containers(item)


def pods(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if "containers" in value:
            yield value
        for item in value.values():
            yield from pods(item)


def in_the_image() -> dict[str, Path]:
    """Files of the checkout by the places that they have in the image."""
    found, here = {}, PurePosixPath("/")
    for name, rest in steps():
        if name == "WORKDIR":
            here /= rest
        elif name == "COPY":
            *sources, target = rest.split()
            for source in map(ROOT.joinpath, sources):
                assert source.exists(), source
                for file in source.rglob("*") if source.is_dir() else [source]:
                    inside = file.relative_to(source) if source.is_dir() else ""
                    place = here / target / inside if source.is_dir() or not target.endswith("/") else here / file.name
                    found[str(place)] = file
    return found


def workdir() -> str:
    return str(PurePosixPath("/").joinpath(*[rest for name, rest in steps() if name == "WORKDIR"]))


@pytest.mark.parametrize("file", MANIFESTS, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_a_manifest_runs_the_image_that_is_built(file):
    built = set(BUILT.findall(DOCKERFILE))
    assert len(built) == 1
    for text in (ROOT / "cluster" / "README.md", ROOT / "jobs" / "README.md"):
        assert set(BUILT.findall(text.read_text())) == built, text
    assert {container["image"] for container in containers(yaml.safe_load(file.read_text()))} <= built


def jobs() -> list[tuple[str, list[str]]]:
    """What containers run, beside scheduler and workers."""
    found = [
        (file.name, container["args"])
        for file in MANIFESTS
        for container in containers(yaml.safe_load(file.read_text()))
        if container["args"][0] != "dask"
    ]
    assert len(found) == 3
    return found


@pytest.mark.parametrize(("file", "arguments"), jobs())
def test_a_container_calls_what_is_in_the_image(file, arguments, monkeypatch):
    monkeypatch.chdir(ROOT)
    image = in_the_image()
    if arguments[0] == "sh":
        assert arguments[1] == AGAIN
        assert f"{workdir()}/{AGAIN}" in image
        arguments = arguments[2:]
    if arguments[0] == "python":
        script = Path(arguments[1])
        assert f"{workdir()}/{script}" in image
        arguments = ["excir", script.stem, *arguments[2:]]
    assert arguments[0] == "excir"
    given = [word.replace("=/config/", "=jobs/") for word in arguments[2:]]
    excir.commands[arguments[1]].make_context("excir", given)  # raises for an option that is not there


@pytest.mark.parametrize("file", MANIFESTS, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_a_result_is_kept_on_a_volume_that_the_user_of_the_image_may_write_to(file):
    claims = yaml.safe_load((ROOT / "cluster" / "kubernetes" / "results.yaml").read_text())["metadata"]["name"]
    user = int(re.search(r"--uid (\d+)", DOCKERFILE).group(1))
    for pod in pods(yaml.safe_load(file.read_text())):
        (container,) = pod["containers"]
        out = [word.removeprefix("--out=") for word in container["args"] if word.startswith("--out=")]
        if container["args"][0] == "dask":
            continue
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        mounts = {mount["mountPath"]: volumes[mount["name"]] for mount in container["volumeMounts"]}
        assert mounts[str(PurePosixPath(out[0]).parent)]["persistentVolumeClaim"]["claimName"] == claims
        assert pod["securityContext"]["fsGroup"] == user


def test_the_options_of_a_job_come_from_the_file_that_the_readme_names():
    text = (ROOT / "jobs" / "README.md").read_text()
    manifest = (ROOT / "jobs" / "submit" / "daskjob.yaml").read_text()
    for source in (text, manifest):
        name, file = re.search(r"kubectl create configmap (\S+) --from-file=([\w/.]+\w)", source).groups()
        assert (ROOT / file).is_file()
        assert f"configMap: {{name: {name}}}" in manifest
        assert f"--config=/config/{Path(file).name}" in manifest


def test_the_image_has_every_package_that_a_lake_or_a_report_may_need():
    extras = set(re.search(r"'\.\[(.*?)\]'", DOCKERFILE).group(1).split(","))
    assert extras >= {"lightgbm", "onnx", "report", "delta", "iceberg", "s3"}


def again(*command: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["sh", str(ROOT / AGAIN), *command], env={**os.environ, "EXCIR_PAUSE": "0.01", **environment},
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.parametrize(("codes", "tries"), [([0], 1), ([3], 1), ([75, 2], 2), ([75, 75, 0], 3), ([75] * 9, 4)])
def test_only_what_may_pass_is_tried_again(codes, tries, tmp_path):
    (tmp_path / "codes").write_text("\n".join(map(str, codes)))
    job = f'echo try >> tries; exit "$(sed -n "$(wc -l < tries)p" {shlex.quote(str(tmp_path / "codes"))})"'
    with again("sh", "-c", f"cd {shlex.quote(str(tmp_path))}; {job}") as process:
        assert process.wait(timeout=20) == codes[tries - 1]
    assert (tmp_path / "tries").read_text().count("try") == tries


@pytest.mark.parametrize("moment", ["run", "pause"])
def test_sigterm_ends_a_job_and_not_only_the_shell_around_it(moment):
    lines = {
        "run": "import signal, sys, time\n"
        "def stop(*_):\n    time.sleep(0.3)\n    print('clean', flush=True)\n    sys.exit(143)\n"
        "signal.signal(signal.SIGTERM, stop)\nprint('begun', flush=True)\ntime.sleep(20)",
        "pause": "import sys\nprint('begun', flush=True)\nsys.exit(75)",
    }
    with again(sys.executable, "-c", lines[moment], EXCIR_PAUSE="20") as process:
        assert process.stdout.readline() == "begun\n"
        if moment == "pause":
            time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=10)
    assert process.returncode == 143
    assert out == ("clean\n" if moment == "run" else "")
