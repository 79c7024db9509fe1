"""What a new user gets wrong on the first day, and what the command says about it."""

import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import oracle
import pandas as pd
import pytest
from processes import excir_here

from excir_dask import explain
from excir_dask.errors import UsageError


def process(*arguments: object, prefix: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    command = [*prefix, sys.executable, "-m", "excir_dask", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def complaint(done: subprocess.CompletedProcess[str], code: int) -> str:
    """The one line of an error."""
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.stderr.splitlines()[-1]


@pytest.fixture(scope="module")
def lake(tmp_path_factory) -> Path:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((300, 3)), columns=["engine_rpm", "engine_torque", "speed"])
    return oracle.write_lake(tmp_path_factory.mktemp("first") / "lake", frame.assign(margin=frame["speed"]), 2)


@pytest.mark.parametrize(
    ("options", "code", "name"),
    [
        (["--output", "margn"], 3, "margin"),
        (["--output", "margin", "--features", "engine_rpn"], 3, "engine_rpm"),
        (["--output", "margin", "--weights", "sped"], 3, "speed"),
        (["--output", "margin", "--group", "engine=engine_torqe"], 2, "engine_torque"),
    ],
)
def test_a_misspelt_column_gets_the_nearest_names(lake, options, code, name):
    assert f"did you mean '{name}'" in complaint(excir_here("explain", lake, *options), code)


def test_an_empty_folder_is_named(tmp_path):
    assert f"{tmp_path} holds no Parquet files" in complaint(excir_here("explain", tmp_path, "--output", "y"), 3)


@pytest.mark.parametrize("name", ["table.csv", "table.parquet"])
def test_a_text_file_is_named_with_its_size(tmp_path, name):
    (tmp_path / name).write_text("a,b\n1,2\n")
    said = complaint(excir_here("explain", tmp_path / name, "--output", "b"), 3)
    assert f"{name} (8 bytes) cannot be read as Parquet" in said


def test_a_csv_file_gets_the_way_to_parquet(tmp_path):
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    assert "convert it, for instance with pandas.read_csv" in complaint(
        excir_here("explain", tmp_path, "--output", "b"), 3
    )


def test_a_glob_that_the_shell_expanded_gets_a_hint_and_no_list_of_files(lake):
    files = sorted(lake.glob("*.parquet"))
    said = complaint(excir_here("explain", *files, "--output", "margin"), 2)
    assert f"put a glob in quotes, so that the shell does not expand it: '{lake}/*.parquet'" in said
    assert str(files[1]) not in said


def test_text_as_output_is_told_to_become_numbers(tmp_path):
    oracle.write_lake(tmp_path / "lake", pd.DataFrame({"a": [1.0, 2.0], "label": ["yes", "no"]}))
    said = complaint(excir_here("explain", tmp_path / "lake", "--output", "label"), 3)
    assert "write it as numbers" in said
    assert "indicators" not in said


@pytest.fixture
def somebody():
    """Runs the command without root's right to read and write everything."""
    if os.getuid() != 0:
        return process
    if shutil.which("setpriv") is None:
        pytest.skip("root may read everything, and there is no setpriv to take that away")
    prefix = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    return lambda *arguments: process(*arguments, prefix=prefix)


@pytest.mark.parametrize("locked", ["file", "folder"])
def test_a_lake_without_permission_is_named(lake, somebody, locked):
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        copy = Path(place) / "lake"
        copy.mkdir()
        for file in lake.glob("*.parquet"):
            (copy / file.name).write_bytes(file.read_bytes())
        shut = copy if locked == "folder" else sorted(copy.iterdir())[0]
        shut.chmod(0)
        try:
            said = complaint(somebody("explain", copy, "--output", "margin"), 3)
        finally:
            copy.chmod(stat.S_IRWXU)
    assert str(shut) in said
    assert "no permission" in said


def test_a_result_folder_without_permission_is_named_before_any_work(lake, somebody):
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o555)
        said = complaint(somebody("explain", "/nowhere", "--output", "margin", "--out", f"{place}/out"), 2)
    assert f"{place} is not a writable folder" in said


def test_a_demo_without_permission_is_named(somebody):
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o555)
        said = complaint(somebody("demo", "--folder", f"{place}/demo"), 2)
    assert f"{place} is not a writable folder" in said


def test_a_report_where_no_file_can_be_is_named(lake, tmp_path):
    explain(lake, output="margin").save(tmp_path / "result", report=False)
    (tmp_path / "file").touch()
    said = complaint(excir_here("report", tmp_path / "result", "--out", tmp_path / "file" / "report.html"), 2)
    assert f"excir: {tmp_path / 'file'}: " in said


def test_a_full_disk_is_worth_another_try(lake, tmp_path):
    explain(lake, output="margin").save(tmp_path / "result", report=False)
    limit = ["prlimit", "--fsize=1000"]  # a file that may not grow: as a disk that is full
    if shutil.which(limit[0]) is None:
        pytest.skip("there is no prlimit to make the disk full")
    done = process("report", tmp_path / "result", "--out", tmp_path / "report.html", prefix=limit)
    assert "File too large" in complaint(done, 75)


def test_a_scheduler_that_is_not_there_is_named(lake):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    said = complaint(process("explain", lake, "--output", "margin", "--scheduler", address), 75)
    assert f"no scheduler answers at {address}" in said
    assert "dask scheduler" in said


def test_something_else_behind_the_address_does_not_keep_the_user_waiting(lake):
    with socket.socket() as silent:  # takes connections and never says a word, as a firewall does
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        said = complaint(process("explain", lake, "--output", "margin", "--scheduler", address), 75)
    assert f"no scheduler answers at {address}" in said
    assert "5 s" in said


@pytest.mark.parametrize("words", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-2.0-OpenSSH_9.6\r\n"])
def test_a_service_that_is_no_scheduler_is_named(lake, words):
    def answer(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            connection.sendall(words)
            while connection.recv(1024):
                pass

    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        thread = threading.Thread(target=answer, args=(server,), daemon=True)
        thread.start()
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        done = process("explain", lake, "--output", "margin", "--scheduler", address)
        thread.join(timeout=20)
    assert f"what answers at {address} does not speak dask's protocol" in complaint(done, 75)
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("http://127.0.0.1:8786", "scheme 'http'"),
        ("foo://x:1", "scheme 'foo'"),
        ("tcp://127.0.0.1:99999", "port 99999"),
        ("tcp://127.0.0.1:0", "port 0"),
        ("127.0.0.1", "missing port"),
    ],
)
def test_what_cannot_be_an_address_is_wrong_usage(lake, address, problem):
    with pytest.raises(UsageError, match=f"not a scheduler's address .*{problem}.*; write tcp://HOST:PORT"):
        explain(lake, output="margin", scheduler=address)


def test_misspelt_options_and_commands_get_the_nearest(lake):
    assert "--output" in complaint(excir_here("explain", lake, "--outptu", "margin"), 2)
    assert "explain" in complaint(excir_here("explian", lake), 2)


def test_a_misspelt_key_of_a_file_gets_the_nearest(lake, tmp_path):
    (tmp_path / "job.yaml").write_text("lake: x\nfratcion: 0.5\n")
    said = complaint(excir_here("explain", "--config", tmp_path / "job.yaml"), 2)
    assert "job.yaml: 'fratcion' is not an option of 'excir explain'; did you mean 'fraction'" in said


def test_nothing_at_all_shows_help():
    done = process()
    assert "excir demo" in done.stdout + done.stderr
    assert "Missing argument 'LAKE'" in complaint(excir_here("explain"), 2)
