"""What users submit: the examples run as they are, twice is once, and the files for schedulers are well-formed."""

import ast
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

ROOT = Path(__file__).parents[1]
JOBS = ROOT / "jobs"
NAMES = ["explain", "sweep", "train"]
COMMAND = re.compile(r"python3? jobs/(\w+)\.py ([^\n|>`]*)")
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


@pytest.mark.parametrize("name", NAMES)
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
    excir.commands[name].make_context(name, shlex.split(rest))


def test_there_are_commands_for_every_scheduler():
    files = {file for file, _, _ in submitted()}
    assert {
        "README.md",
        "explain.sbatch",
        "dag_airflow.py",
        "crontab",
        "excir-explain.service",
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


def test_systemd_accepts_service_and_timer(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    units = [shutil.copy(path, tmp_path) for path in sorted((JOBS / "submit").glob("excir-explain.*"))]
    done = subprocess.run(["systemd-analyze", "verify", *map(str, units)], capture_output=True, text=True)
    if "Failed to initialize manager" in done.stderr or "not been booted" in done.stderr:
        pytest.skip(f"systemd-analyze does not work here: {done.stderr.strip()}")
    assert "excir-explain" not in done.stderr, done.stderr


def test_every_option_of_an_example_is_one():
    for name in NAMES:
        content = yaml.safe_load((JOBS / f"{name}.yaml").read_text(encoding="utf-8"))
        known = {opt for param in excir.commands[name].params for opt in param.opts}
        assert all(f"--{key}" in known or key == "lake" for key in content)
