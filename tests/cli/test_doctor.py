"""``excir doctor`` and ``excir completion``, and a report that opens in a browser."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys

import pandas as pd
import pytest
from click.testing import CliRunner
from distributed import LocalCluster
from packaging.requirements import Requirement

from excir_dask import explain
from excir_dask.cli import excir
from excir_dask.pipeline import doctor


def run(*arguments: object) -> tuple[int, dict[str, dict[str, str]]]:
    """Exit code and findings by name."""
    done = CliRunner().invoke(excir, ["doctor", *map(str, arguments), "--json"])
    return done.exit_code, {each["name"]: each for each in json.loads(done.stdout)["findings"]}


@pytest.fixture
def lake(tmp_path):
    pd.DataFrame({"a": [1.0, 2.0, 3.0], "pred": [1.0, 2.0, 4.0]}).to_parquet(tmp_path / "0.parquet")
    return tmp_path / "0.parquet"


def test_versions_extras_a_lake_and_a_scheduler_are_found(lake):
    with LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0") as cluster:
        code, found = run(lake, "--scheduler", cluster.scheduler_address)
    assert code == 0, found
    assert found["pandas"]["detail"] == pd.__version__
    assert found["extra plot"]["status"] == "ok"
    assert "1 worker, 2 threads" in found["scheduler"]["detail"]
    assert "1 file, 3 rows" in found["lake"]["detail"]


def test_what_cannot_be_reached_is_a_problem_with_exit_code_3(tmp_path):
    code, found = run(tmp_path / "nowhere")
    assert code == 3
    assert found["lake"]["status"] == "problem"
    assert "does not exist" in found["lake"]["detail"]


def test_a_version_that_does_not_fit_comes_with_the_command_to_mend_it(monkeypatch):
    needs = ["pandas>=99", 'no-such-package>=1; extra == "plot"']
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: needs)
    found = {each.name: each for each in doctor.examine()}
    assert found["pandas"].status == "problem"
    assert found["pandas"].detail == f"{pd.__version__} (needs >=99); run  pip install 'pandas>=99'"
    assert found["extra plot"].status == "missing"
    assert "pip install 'excir-dask[plot]'" in found["extra plot"].detail
    assert Requirement(needs[1]).name in found["extra plot"].detail


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_installed_once(tmp_path, monkeypatch, shell):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", f"/bin/{shell}")
    if shell != "fish":
        (tmp_path / f".{shell}rc").write_text("alias ll='ls -l'")
    for _ in range(2):
        assert CliRunner().invoke(excir, ["completion", "install"]).exit_code == 0
    (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
    line = CliRunner().invoke(excir, ["completion", "show", shell]).stdout
    assert file.read_text() == ("" if shell == "fish" else "alias ll='ls -l'\n") + line


def test_an_unknown_shell_is_refused(monkeypatch):
    monkeypatch.setenv("SHELL", "/bin/csh")
    done = CliRunner().invoke(excir, ["completion", "install"])
    assert done.exit_code == 2
    assert "'csh'" in done.stderr


def test_a_report_opens_in_the_browser(lake, tmp_path):
    explain(lake, output="pred").save(tmp_path / "result", report=False)
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path / "opened"}\n')
    browser.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-m", "excir_dask", "report", str(tmp_path / "result"), "--open"],
        env={**os.environ, "BROWSER": f"{browser} %s"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "opened").read_text().strip() == (tmp_path / "result" / "report.html").as_uri()
