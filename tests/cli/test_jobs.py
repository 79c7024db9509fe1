"""What users submit: the examples run as they are, twice is once, and the files for schedulers are well-formed."""

import ast
import configparser
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from excir_dask.cli import excir
from excir_dask.demo import make_lake

ROOT = Path(__file__).parents[2]
JOBS = ROOT / "jobs"
NAMES = ["explain", "sweep", "train"]
"""jobs whose options are in a file; those of an audit are in a configuration of its own"""
COMMAND = re.compile(r"python3? jobs/(\w+)\.py ([^\n|>`;]*)")
FROM_SHELL = re.compile(r'"\$[^"]*"')
"""a value that a shell fills in"""


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """A folder in which the demo was run."""
    home = tmp_path_factory.mktemp("jobs")
    make_lake(home / "excir-demo", 4000)
    return home


def job(home: Path, name: str, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(JOBS / f"{name}.py"), "--config", str(JOBS / f"{name}.yaml"), "--json", *more]
    return subprocess.run(command, cwd=home, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("name", ["explain", *(pytest.param(name, marks=pytest.mark.slow) for name in NAMES[1:])])
def test_an_example_runs_as_it_is_and_twice_is_once(home, name):
    first = job(home, name)
    assert first.returncode == 0, first.stderr
    assert "saved in" in first.stderr
    again = job(home, name)
    assert again.returncode == 0, again.stderr
    assert "already done (run id" in again.stderr
    assert json.loads(again.stdout) == json.loads(first.stdout)
    assert Path(home, json.loads(first.stdout)["out"]).exists()


@pytest.mark.slow
def test_force_computes_again_and_another_question_replaces_where_allowed(home):
    assert job(home, "explain").returncode == 0
    forced = job(home, "explain", "--force")
    assert forced.returncode == 0, forced.stderr
    assert "saved in" in forced.stderr
    other = job(home, "explain", "--seed", "1", "--fraction", "0.5")
    assert other.returncode == 0, other.stderr
    assert "saved in" in other.stderr


@pytest.mark.slow
def test_the_example_of_an_audit_runs_as_it_is_and_compares_with_the_run_before(home):
    shutil.copytree(JOBS, home / "jobs")
    command = [sys.executable, "jobs/audit.py", "jobs/audit.yaml", "--json"]
    found = []
    for _ in range(2):
        done = subprocess.run(command, cwd=home, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout)["runs"][0])
    assert (found[0]["baseline"], found[1]["baseline"]) == (None, found[0]["run"])


@pytest.mark.parametrize("name", [*NAMES, "audit"])
def test_a_script_only_parses_and_calls_the_library(name):
    assert len((JOBS / f"{name}.py").read_text().splitlines()) < 20


def submitted() -> list[tuple[str, str, str]]:
    """Every command for a job in the README and in the files for schedulers."""
    found = []
    for path in [JOBS / "README.md", *sorted((JOBS / "submit").iterdir())]:
        for name, rest in COMMAND.findall(path.read_text(encoding="utf-8")):
            options = FROM_SHELL.sub("1", rest).split("  ")[0].split(" (")[0]
            found.append((path.name, name, options.removesuffix('"')))
    return found


@pytest.mark.parametrize(("file", "name", "rest"), submitted())
def test_commands_that_are_written_down_parse(file, name, rest, monkeypatch):
    """By the command itself, so that an option that is renamed is noticed here."""
    monkeypatch.chdir(ROOT)
    words = [word.replace("/config/", f"{JOBS}/") for word in shlex.split(rest)]
    words += ["2026-09-01"] if words[-1] == "--date" else []  # the DAG adds it
    command = excir.commands[name]
    context = command.make_context(name, words)
    if name == "audit":
        _, command, rest = command.resolve_command(context, words)
        command.make_context(command.name, rest)


def test_there_are_commands_for_every_scheduler():
    files = {file for file, _, _ in submitted()}
    assert {
        "README.md",
        "explain.sbatch",
        "dag_airflow.py",
        "crontab",
        "excir-explain.service",
        "excir-audit.service",
        "audit_cronjob.yaml",
        "dag_airflow_audit.py",
    } <= files


def test_the_batch_script_is_a_shell_script():
    subprocess.run(["bash", "-n", JOBS / "submit" / "explain.sbatch"], check=True)


@pytest.mark.parametrize("name", ["dag_airflow.py", "flow_prefect.py"])
def test_python_files_for_schedulers_compile_and_call_the_library_as_it_is(name):
    tree = ast.parse((JOBS / "submit" / name).read_text(encoding="utf-8"), name)
    (call,) = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "explain"]
    import inspect

    from excir_dask import explain

    inspect.signature(explain).bind(*call.args, **{keyword.arg: None for keyword in call.keywords})


@pytest.mark.parametrize(("name", "answers"), [("explain", "2 3 70"), ("audit", "1 2 3 70")])
def test_systemd_starts_again_what_may_pass_and_nothing_else(name, answers, tmp_path):
    service, timer = (configparser.ConfigParser() for _ in range(2))
    for unit, suffix in ((service, "service"), (timer, "timer")):
        unit.optionxform = str  # names of systemd have capitals
        assert unit.read(JOBS / "submit" / f"excir-{name}.{suffix}")
    assert service["Service"]["Type"] == "oneshot"
    assert (service["Service"]["Restart"], service["Service"]["RestartPreventExitStatus"]) == ("on-failure", answers)
    assert service["Service"]["ExecStart"].startswith(f"/usr/bin/env python3 jobs/{name}.py ")
    assert timer["Timer"]["OnCalendar"].startswith("*-*-* ")
    assert (timer["Timer"]["Persistent"], timer["Install"]["WantedBy"]) == ("true", "timers.target")
    if shutil.which("systemd-analyze") is not None:
        units = [shutil.copy(path, tmp_path) for path in sorted((JOBS / "submit").glob(f"excir-{name}.*"))]
        done = subprocess.run(["systemd-analyze", "verify", *map(str, units)], capture_output=True, text=True)
        assert f"excir-{name}" not in done.stderr, done.stderr  # in a container it may say that there is no manager


def test_every_option_of_an_example_is_one():
    for name in NAMES:
        content = yaml.safe_load((JOBS / f"{name}.yaml").read_text(encoding="utf-8"))
        known = {opt for param in excir.commands[name].params for opt in param.opts}
        assert all(f"--{key}" in known or key == "lake" for key in content)
