"""The command line as a user types it: its two streams and its exit code, in a process of its own for a few."""

import json
import subprocess
import sys

import numpy as np
import oracle
import pandas as pd
import pytest
from click.testing import CliRunner
from processes import excir, excir_here

from excir_dask import Explanation, explain
from excir_dask.cli import excir as command_line


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((2000, 4)), columns=["rpm", "torque", "speed", "noise"])
    frame = frame.assign(city="x", pred=2 * frame["rpm"] - frame["speed"])
    return oracle.write_lake(tmp_path_factory.mktemp("cli") / "lake", frame, 3)


def test_explain_prints_a_ranking_and_saves_it(lake, tmp_path):
    done = excir("explain", lake, "--output", "pred", "--group", "engine=rpm,torque", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["1", "rpm", "▲"] in [line[:3] for line in lines]
    assert ["2", "speed", "▼"] in [line[:3] for line in lines]
    assert "engine" in done.stdout
    saved = Explanation.load(tmp_path / "out")
    assert saved.top(1)["feature"].tolist() == ["rpm"]
    assert saved.groups["group"].tolist() == ["engine"]


def test_an_internal_error_has_a_traceback_and_its_own_exit_code(lake, monkeypatch):
    monkeypatch.setattr(sys.modules["excir_dask.explain"], "explain_with", lambda *_, **__: {}["\x1b[31m"])
    done = CliRunner().invoke(command_line, ["explain", str(lake), "--output", "pred"])
    assert (done.exit_code, done.stdout) == (70, "")
    assert "Traceback" in done.stderr
    assert "\x1b" not in done.stderr
    assert done.stderr.splitlines()[-1] == "excir: internal error; please report it with the lines above"


def test_results_are_printed_as_csv_markdown_or_json(lake):
    def printed(*more):
        return CliRunner().invoke(command_line, ["explain", str(lake), "--output", "pred", "--top", "1", *more])

    expected = explain(lake, output="pred")
    assert printed("--format", "csv").stdout == expected.to_csv()
    rows = [line for line in printed("--format", "md").stdout.splitlines() if line.startswith("|")]
    first = expected.top(1).iloc[0]
    assert rows[2].startswith(f"| 1 | `{first['feature']}` |")
    assert len(rows) == 3
    assert json.loads(printed("--format", "json").stdout)["top"]["pred"][0]["feature"] == first["feature"]
    wrong = printed("--format", "md", "--json")
    assert (wrong.exit_code, wrong.stdout) == (2, "")


def test_json_is_the_last_line_and_alone_on_standard_output(lake):
    done = excir("explain", lake, "--output", "pred", "--fraction", "0.5", "--json", "--features", "rpm,sp*")
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    found = json.loads(line)
    assert [row["feature"] for row in found["top"]["pred"]] == ["rpm", "speed"]
    assert 800 < found["rows"]["used"] < 1200


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--output", "prde"], 3, "did you mean 'pred'"),
        ([], 2, "--output"),
        (["--output", "pred", "--group", "engine"], 2, "NAME=a,b,c"),
        (["--output", "pred", "--group", "g=rpm", "--group", "g=speed"], 2, "given twice"),
        (["--output", "pred", "--group", "g=rmp"], 2, "did you mean 'rpm'"),
        (["--output", "pred", "--fraction", "2"], 2, "at most 1"),
        (["--output", "pred", "--features", "city"], 3, "encode it first"),
        (["--output", "pred", "--where", "rpm >"], 2, "where is 'rpm >', which is not a condition"),
        (["--output", "pred", "--where", "rmp > 1"], 3, "column 'rmp' (where) is not in the lake; did you mean 'rpm'?"),
        (["--output", "pred", "--where", "rpm == 'x'"], 2, "where: 'rpm' is double; 'x' is text"),
        (["--output", "pred", "--where", "rpm > 1e9"], 3, "no row is left to explain"),
        (["--output", "pred", "--budget", "1kB"], 2, "at least 1 MiB"),
        (["--output", "pred", "--scheduler", "foo"], 2, "write tcp://HOST:PORT"),
        (["--output", "pred", "--frobnicate"], 2, "No such option"),
        (["--output", "pred", "--top", "0"], 2, "--top"),
        (["--output", "pred", "--out", "s3://bucket/result"], 2, "is a URL"),
        (["--output", "pred", "--out", "/dev/null/result"], 2, "is not a writable folder"),
    ],
)
def test_a_usage_error_is_one_clear_line_and_an_exit_code(lake, arguments, code, message):
    done = excir_here("explain", lake, *arguments)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_lake_that_is_not_there_is_an_error(tmp_path):
    done = excir("explain", tmp_path / "nowhere", "--output", "y")
    assert done.returncode == 3
    assert "does not exist" in done.stderr


def test_an_existing_folder_is_refused_before_any_work(lake, tmp_path):
    (tmp_path / "out").mkdir()
    done = excir_here("explain", lake, "--output", "pred", "--out", tmp_path / "out")
    assert done.returncode == 2
    assert "exists already" in done.stderr


@pytest.mark.parametrize(
    "arguments", [["--help"], ["explain", "--help"], ["plan", "-h"], ["train", "-h"], ["demo", "--help"]]
)
def test_help_teaches(arguments):
    done = excir_here(*arguments)
    assert done.returncode == 0
    assert "excir" in done.stdout


def test_dask_knows_the_command(lake):
    from importlib.metadata import entry_points

    names = {entry.name: entry.value for entry in entry_points(group="dask_cli")}
    assert names.get("excir") == "excir_dask.cli:excir"
    done = subprocess.run(
        [sys.executable, "-m", "dask", "excir", "plan", str(lake)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "2,000" in done.stdout
