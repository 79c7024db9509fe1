"""The files that schedule an audit, run as far as they can be without their schedulers."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from days import CONFIG, FIRST, GROUPS, frame, write_day

from excir_dask.audit.lock import STALE, locked
from excir_dask.audit.store import open_store

JOBS = Path(__file__).parents[2] / "jobs"
SUBMIT = JOBS / "submit"
ROOT = str(JOBS.parent)


@pytest.fixture
def installed(tmp_path) -> Path:
    """A folder such as the files for schedulers expect: jobs/ with a configuration, and the days up to today."""
    home = tmp_path / "excir"
    shutil.copytree(JOBS, home / "jobs")
    yesterday = datetime.now(UTC).date() - timedelta(days=1)
    for number in range(3):  # today's too, which is yesterday's past midnight
        write_day(home / "jobs" / "lake", (yesterday - FIRST).days + number, frame(number))
    (home / "jobs" / "groups.yaml").write_text(GROUPS)
    (home / "jobs" / "audit.yaml").write_text(CONFIG)
    return home


@pytest.fixture
def environment(tmp_path) -> dict[str, str]:
    """Where ``python`` and ``python3`` are this one, with this package."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("python", "python3"):
        script = programs / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        script.chmod(0o755)
    return {**os.environ, "HOME": str(tmp_path), "PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": ROOT}


def cron_line() -> str:
    lines = [line for line in (SUBMIT / "crontab").read_text().splitlines() if "audit.py" in line and line[0] != "#"]
    assert len(lines) == 1
    fields = re.fullmatch(r"(\d+) (\d+) \* \* \* (.+)", lines[0])
    assert fields is not None
    assert (int(fields[1]) < 60, int(fields[2]) < 24) == (True, True)
    assert "%" not in fields[3]  # which cron would take for a line break
    return fields[3]


def test_the_line_for_cron_audits_yesterday(installed, environment):
    done = subprocess.run(["/bin/sh", "-c", cron_line()], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, (installed / "audit.log").read_text()
    found = json.loads((installed / "audit.jsonl").read_text())
    yesterday = datetime.now(UTC).date() - timedelta(days=1)
    assert date.fromisoformat(found["runs"][0]["date"]) in (yesterday, yesterday - timedelta(days=1))


@pytest.mark.slow
def test_the_line_for_cron_retries_after_75_and_only_then(installed, environment):
    quick = cron_line().replace("sleep 600", "echo again")
    with locked(open_store(installed / "jobs" / "audits"), "plant"):
        done = subprocess.run(["/bin/sh", "-c", quick], env=environment, capture_output=True, text=True)
    assert done.returncode == 75
    assert (installed / "audit.jsonl").read_text().splitlines()[1] == "again"
    shutil.rmtree(installed / "jobs" / "lake")
    done = subprocess.run(["/bin/sh", "-c", quick], env=environment, capture_output=True, text=True)
    lines = (installed / "audit.jsonl").read_text().splitlines()
    assert lines.count("again") == 1
    assert json.loads(lines[-1])["exit_code"] == 3


def test_the_kubernetes_cronjob_retries_transient_errors_only():
    job = yaml.safe_load((SUBMIT / "audit_cronjob.yaml").read_text(encoding="utf-8"))
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "CronJob")
    assert re.fullmatch(r"\d+ \d+ \* \* \*", job["spec"]["schedule"])
    assert job["spec"]["concurrencyPolicy"] == "Forbid"
    work = job["spec"]["jobTemplate"]["spec"]
    pod = work["template"]["spec"]
    # a killed pod's claim is void before the last try: Kubernetes waits 10 s, then twice as long each time
    assert sum(10 * 2**retry for retry in range(work["backoffLimit"] - 1)) > STALE
    (container,), (rule,) = pod["containers"], work["podFailurePolicy"]["rules"]
    assert pod["restartPolicy"] == "Never"  # which podFailurePolicy needs
    assert rule["action"] == "FailJob"
    assert rule["onExitCodes"] == {"containerName": container["name"], "operator": "In", "values": [1, 2, 3, 70]}
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}


class RetriedError(Exception):
    """AirflowException: the task is tried again."""


class FailedError(Exception):
    """AirflowFailException: it is not."""


class Dag:
    """What the file needs of Airflow, which is not installed for the tests: it keeps what it is told."""

    def __init__(self, name: str, **options: Any) -> None:
        self.name, self.options = name, options

    def __enter__(self) -> Dag:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture
def dag(monkeypatch) -> dict[str, Any]:
    """The names of the DAG's file, with stand-ins for Airflow's."""
    made: dict[str, dict[str, Any]] = {
        "airflow": {"DAG": Dag},
        "airflow.exceptions": {"AirflowException": RetriedError, "AirflowFailException": FailedError},
        "airflow.providers.standard.operators.python": {"PythonOperator": lambda **options: TASKS.append(options)},
        "airflow.timetables.interval": {"CronDataIntervalTimetable": lambda line, timezone: (line, timezone)},
    }
    TASKS.clear()
    for name, content in made.items():
        for above in [name[: match.start()] for match in re.finditer(r"\.", name)]:
            if above not in made:
                monkeypatch.setitem(sys.modules, above, ModuleType(above))
        module = ModuleType(name)
        module.__dict__.update(content)
        monkeypatch.setitem(sys.modules, name, module)
    return runpy.run_path(str(SUBMIT / "dag_airflow_audit.py"))


TASKS: list[dict[str, Any]] = []


@pytest.mark.slow
def test_the_dag_audits_the_day_of_its_interval(dag, installed, environment, monkeypatch):
    (task,) = TASKS
    assert task["op_kwargs"] == {"day": "{{ data_interval_start | ds }}"}
    for name in ("PATH", "PYTHONPATH"):
        monkeypatch.setenv(name, environment[name])
    yesterday = datetime.now(UTC).date() - timedelta(days=1)
    assert json.loads(task["python_callable"](str(yesterday), str(installed)))["exit_code"] == 0
    with pytest.raises(RetriedError):  # it may come yet
        task["python_callable"]("2030-01-01", str(installed))
    with pytest.raises(FailedError):
        task["python_callable"]("no date", str(installed))
    with locked(open_store(installed / "jobs" / "audits"), "plant"), pytest.raises(RetriedError):
        task["python_callable"](str(yesterday), str(installed))
