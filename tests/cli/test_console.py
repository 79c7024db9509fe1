"""What a command prints while it runs, and how it ends after a signal."""

import fcntl
import json
import os
import pty
import re
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pytest
import yaml
from distributed import Client
from oracle import repeated, write_lake
from processes import dask_processes

from excir_dask.graph import progress


def table(rows: int = 120_000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((rows, 11)), columns=[f"x{i}" for i in range(11)])
    return frame.assign(pred=frame["x0"] - frame["x1"])


@pytest.fixture(scope="module")
def lake(tmp_path_factory) -> Path:
    return write_lake(tmp_path_factory.mktemp("console") / "lake", table(), 12)


@pytest.fixture(scope="module")
def long(lake: Path, tmp_path_factory) -> Path:
    """So long that a signal comes before the end of a run on any machine."""
    return repeated(lake, tmp_path_factory.mktemp("long"), 10)


@pytest.fixture(autouse=True)
def ctrl_c() -> Iterator[None]:
    """As at a terminal: what a shell starts in the background ignores it, and so do the processes of tests there."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def cluster():
    with dask_processes(1, "--nthreads", "1") as address:
        yield address


def command(lake: Path, *more: object) -> list[str]:
    arguments = ["explain", str(lake), "--output", "pred", "--budget", "1MiB", *map(str, more)]
    return [sys.executable, "-m", "excir_dask", *arguments]


def excir(lake: Path, *more: object, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(lake, *more), capture_output=True, text=True, timeout=300, env=environment)


def test_quiet_says_nothing_but_the_result(lake, tmp_path):
    done = excir(lake, "--quiet", "--json", "--out", tmp_path / "out")
    assert done.returncode == 0
    assert done.stderr == ""
    assert json.loads(done.stdout)["out"] == str(tmp_path / "out")


def test_quiet_still_says_errors(lake):
    done = excir(lake, "--quiet", "--features", "nothing")
    assert done.returncode == 3
    assert "nothing" in done.stderr


def test_verbose_says_plan_scans_bytes_and_run_id(lake, tmp_path):
    done = excir(lake, "-v", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^\d\d:\d\d:\d\d plan: 12 files, 120,000 rows, 11 features, \d+ slices", done.stderr, re.M)
    assert re.search(r"pilot: \d+ slices in \d+\.\d s", done.stderr)
    assert re.search(r"pass: co-movement: \d+ slices in", done.stderr)
    assert re.search(r"[\d,]{7,} bytes read in", done.stderr)
    run = json.loads((tmp_path / "out" / "manifest.json").read_text())["run_id"]
    assert f"run id {run}" in done.stderr
    assert "plan:" not in done.stdout


def test_loud_and_quiet_at_once_is_wrong_usage(lake):
    done = excir(lake, "-q", "-v")
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.parametrize(
    "columns", [pytest.param(120, marks=pytest.mark.slow), 80, pytest.param(50, marks=pytest.mark.slow)]
)
def test_a_terminal_gets_bars_with_rows_and_bytes(lake, columns):
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
    with subprocess.Popen(command(lake, "--threads", "1"), stdout=subprocess.DEVNULL, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # the end of a terminal whose other side is closed
                break
            if not part:
                break
            shown += part
    os.close(ours)
    assert process.returncode == 0
    text = re.sub(r"\x1b\[\S*?[A-Za-z]", "", shown.decode())
    bar, rows = r"\[#+-+\] +" if columns == 120 else "", r"  [\d.]+k/120\.0k rows, [\d.]+/10\.56 MB"
    assert re.search(rf"pilot +{bar}\d+%(  \d\d:\d\d:\d\d)?{rows if columns > 50 else ''}", text)
    assert "pass: co-movement" in text
    assert max(map(len, re.split(r"[\r\n]+", text))) < columns, "a longer line would be a new one each time"


def test_lines_in_a_log_are_few_and_say_what_is_left(monkeypatch, capfd):
    clock = iter([0.0, *range(2, 202, 2)])
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(clock)))
    work = progress.Work(dict.fromkeys(range(100), 1), 3_000_000, 2_400_000_000)
    with progress.counting(True, work, "pilot") as done:
        for key in range(100):
            done(key)
        done("another task")
    lines = capfd.readouterr().err.splitlines()
    assert lines[0] == "pilot 10% 300.0k/3.0M rows, 0.24/2.40 GB 03:00 left"
    assert lines[-1] == "pilot 100% 3.0M/3.0M rows, 2.40/2.40 GB in 03:20"
    assert len(lines) == 10


def test_a_short_scan_leaves_no_lines_and_a_slow_one_is_heard_of_every_minute(monkeypatch, capfd):
    work = progress.Work(dict.fromkeys(range(1000), 1))
    for step, expected in ((0.001, 0), (5.0, 83)):
        clock = iter([0.0, *(step * i for i in range(1, 1001))])
        monkeypatch.setattr(progress.time, "monotonic", lambda clock=clock: next(clock))
        with progress.counting(True, work, "scan") as done:
            for key in range(1000):
                done(key)
        assert abs(len(capfd.readouterr().err.splitlines()) - expected) <= 1


def test_a_library_call_shows_nothing_where_there_is_no_terminal(capfd):
    for asked in (None, False):
        with progress.bar(asked, 10, "scan") as advance:
            assert advance is None
    assert capfd.readouterr().err == ""


def begun(process: subprocess.Popen[str], folder: Path) -> None:
    """Wait until some slices of the first scan are done."""
    patience = time.monotonic() + 120
    while len(list(folder.glob("states/*/*.state"))) < 2:
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < patience
        time.sleep(0.002)


def ended(
    lake: Path, folder: Path, *more: object, number: signal.Signals = signal.SIGINT
) -> subprocess.CompletedProcess[str]:
    """A run that gets a signal, by default that of Ctrl-C, as soon as it has begun."""
    arguments = command(lake, "--checkpoint", folder / "states", "--out", folder / "out", *more)
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        begun(process, folder)
        process.send_signal(number)
        out, err = process.communicate(timeout=120)
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


def check_stopped(done: subprocess.CompletedProcess[str], folder: Path, code: int = 130) -> None:
    assert done.returncode == code, done.stderr
    assert done.stderr.splitlines()[-1] == "stopped"
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert os.listdir(folder) == ["states"]


def cluster_file(folder: Path, **options: object) -> str:
    file = folder / "local.yaml"
    content = {"kind": "local", "workers": 1, "options": {"dashboard_address": "127.0.0.1:0", **options}}
    file.write_text(yaml.safe_dump(content))
    return str(file)


def test_ctrl_c_ends_a_local_run_cleanly(long, tmp_path):
    check_stopped(ended(long, tmp_path, "--threads", "1"), tmp_path)


LOST = """
import os, signal, sys
from excir_dask.cli import main
from excir_dask.graph import progress

class Lost:
    def __del__(self):
        os.kill(os.getpid(), signal.{name})  # what it raises here is printed, and goes no further

whole = progress.Work.done
def done(self, share):
    if share > 0.2:
        Lost()
    return whole(self, share)
progress.Work.done = done
main(sys.argv[1:])
"""


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_is_not_lost_where_nothing_can_be_raised(lake, tmp_path, name, code):
    script = LOST.replace("{name}", name)
    arguments = ["explain", str(lake), "--output", "pred", "--budget", "1MiB", "--out", str(tmp_path / "out")]
    done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "stopped\n")
    assert os.listdir(tmp_path) == []


def test_sigterm_ends_a_local_run_as_ctrl_c_does(long, tmp_path):
    check_stopped(ended(long, tmp_path, "--threads", "1", number=signal.SIGTERM), tmp_path, 143)


def workers_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """Processes that a nanny has started."""
    children = psutil.Process(process.pid).children(recursive=True)
    return [child for child in children if "spawn_main" in " ".join(child.cmdline())]


def alive(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.slow
@pytest.mark.cluster
def test_sigterm_ends_the_cluster_of_a_file(long, tmp_path, tmp_path_factory):
    file = cluster_file(tmp_path_factory.mktemp("cluster"))
    arguments = command(long, "--checkpoint", tmp_path / "states", "--out", tmp_path / "out", "--cluster", file)
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        begun(process, tmp_path)
        workers = workers_of(process)
        assert workers
        process.terminate()
        out, err = process.communicate(timeout=120)
    check_stopped(subprocess.CompletedProcess(arguments, process.returncode, out, err), tmp_path, 143)
    assert not [worker for worker in workers if alive(worker)]


@pytest.mark.cluster
@pytest.mark.parametrize("moment", ["start", pytest.param("scan", marks=pytest.mark.slow)])
def test_ctrl_c_on_a_terminal_is_for_the_command_and_not_for_its_workers(long, tmp_path, tmp_path_factory, moment):
    """A terminal sends it to everything that runs in it."""
    file = cluster_file(tmp_path_factory.mktemp("cluster"), threads_per_worker=1)
    arguments = command(long, "--checkpoint", tmp_path / "states", "--out", tmp_path / "out", "--cluster", file)
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        if moment == "scan":
            begun(process, tmp_path)
        else:
            patience = time.monotonic() + 60
            while not workers_of(process):
                assert time.monotonic() < patience
                time.sleep(0.01)
            time.sleep(0.3)  # for Python to be up in there: before, the signal would end it without a word
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (130, "")
    assert [line for line in err.splitlines() if not line.startswith("dashboard: ")] == ["stopped"]


@pytest.mark.slow
@pytest.mark.cluster
def test_a_port_that_is_taken_is_no_news_unless_asked(lake, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = excir(lake, "-q", "--cluster", cluster_file(tmp_path, dashboard_address=address, processes=False))
        assert (done.returncode, done.stderr) == (0, "")
        done = excir(lake, "-v", "--cluster", cluster_file(tmp_path, dashboard_address=address, processes=False))
        assert "already in use" in done.stderr


def test_a_queue_that_refuses_is_one_line(lake, tmp_path):
    pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is not installed: pip install '.[jobqueue]'")
    (tmp_path / "sbatch").write_text("#!/bin/sh\necho invalid account >&2\nexit 1\n")
    (tmp_path / "sbatch").chmod(0o755)
    options = {"cores": 1, "memory": "1GiB", "interface": "lo", "scheduler_options": {"dashboard": False}}
    (tmp_path / "slurm.yaml").write_text(yaml.safe_dump({"kind": "slurm", "workers": 1, "options": options}))
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = excir(lake, "--cluster", tmp_path / "slurm.yaml", environment={**os.environ, "PATH": path})
    assert done.returncode == 75
    (line,) = done.stderr.splitlines()
    assert "invalid account; check its options" in line


def test_a_training_that_fails_is_one_line(tmp_path):
    write_lake(tmp_path / "lake", pd.DataFrame({"x": np.arange(50.0), "y": np.arange(50.0), "w": -1.0}))
    arguments = ["train", tmp_path / "lake", "--label", "y", "--weights", "w", "--out", tmp_path / "model.ubj"]
    done = subprocess.run([sys.executable, "-m", "excir_dask", *arguments], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (3, "")
    (line,) = done.stderr.splitlines()
    assert "column 'w' (weights) has negative values" in line


@pytest.mark.slow
@pytest.mark.cluster
def test_a_scheduler_that_is_lost_is_one_line(lake, tmp_path):
    arguments = command(lake, "--checkpoint", tmp_path / "states", "--out", tmp_path / "out")
    with (
        dask_processes(1, "--nthreads", "1") as address,
        Client(address, set_as_default=False) as client,
        subprocess.Popen(
            [*arguments, "--scheduler", address], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process,
    ):
        begun(process, tmp_path)
        client.run_on_scheduler(lambda dask_scheduler: bool(dask_scheduler.loop.call_later(0.01, os._exit, 1)))
        out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (75, "")
    (line,) = [line for line in err.splitlines() if not line.startswith("dashboard: ")]
    assert line.startswith("excir: ")
    assert line.endswith("run again")


@pytest.mark.cluster
def test_ctrl_c_takes_the_tasks_off_the_cluster(long, tmp_path, cluster):
    check_stopped(ended(long, tmp_path, "--scheduler", cluster), tmp_path)
    with Client(cluster, set_as_default=False) as client:
        patience = time.monotonic() + 60
        while left := client.run_on_scheduler(lambda dask_scheduler: [str(key) for key in dask_scheduler.tasks]):
            assert time.monotonic() < patience, left
            time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.cluster
def test_a_cluster_run_names_its_dashboard_and_saves_dasks_report(lake, tmp_path, cluster):
    done = excir(lake, "--scheduler", cluster, "-v", "--performance-report", tmp_path / "report.html")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("dashboard:") == 1
    assert "1 worker, 1 thread" in done.stderr
    assert "excir-pilot" in (tmp_path / "report.html").read_text()


@pytest.mark.slow
@pytest.mark.cluster
def test_a_report_that_cannot_be_written_is_refused_first(lake, tmp_path, cluster):
    done = excir(lake, "--scheduler", cluster, "--performance-report", tmp_path / "no" / "report.html")
    assert done.returncode == 2
    assert "cannot be written" in done.stderr


def test_a_report_without_a_cluster_is_wrong_usage(lake, tmp_path):
    done = excir(lake, "--performance-report", tmp_path / "report.html")
    assert done.returncode == 2
    assert "--scheduler" in done.stderr


@pytest.mark.parametrize(("shell", "mark"), [("bash", "complete -o"), ("zsh", "#compdef excir"), ("fish", "complete")])
def test_shells_complete_commands_and_options(shell, mark):
    code = "from excir_dask.cli import main; main()"
    environment = {**os.environ, "_EXCIR_COMPLETE": f"{shell}_source"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    if "Bash version" in done.stderr or "find bash" in done.stderr:
        pytest.skip(done.stderr)
    assert mark in done.stdout
    environment |= {"_EXCIR_COMPLETE": f"{shell}_complete", "COMP_WORDS": "excir explain --perf", "COMP_CWORD": "2"}
    if shell == "fish":
        environment["COMP_CWORD"] = "--perf"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert "--performance-report" in done.stdout


def test_under_dask_errors_are_one_line_and_the_same_exit_code(tmp_path):
    dask = [sys.executable, "-m", "dask", "excir"]
    done = subprocess.run([*dask, "explain", tmp_path / "no", "--output", "y"], capture_output=True, text=True)
    assert done.returncode == 3
    assert done.stderr.startswith("excir: ")
    assert "Traceback" not in done.stderr
    done = subprocess.run([*dask, "--help"], capture_output=True, text=True)
    assert done.returncode == 0
    assert "explain" in done.stdout
