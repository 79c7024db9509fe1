"""``excir sweep`` as a user types it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import oracle
import pandas as pd
import pytest
from click.testing import CliRunner

from excir_dask import Sweep
from excir_dask.cli import excir

JOB = Path(__file__).parents[2] / "jobs" / "sweep.py"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    X = np.random.default_rng(0).standard_normal((2000, 6))
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(pred=X @ [9.0, 5, 3, 1, 0, 0])
    return oracle.write_lake(tmp_path_factory.mktemp("sweep") / "lake", frame, 2)


def test_the_job_prints_one_line_of_json_and_saves(lake: Path, tmp_path: Path) -> None:
    arguments = ["--output", "pred", "--fractions", "0.5", "--seeds", "2", "--k", "2", "--out", tmp_path / "out"]
    done = subprocess.run(
        [sys.executable, JOB, lake, *map(str, arguments), "--json"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    said = json.loads(line)
    assert said["chosen"] == 0.5
    assert said["settings"]["seeds"] == [0, 1]
    assert [row["fraction"] for row in said["summary"]] == [0.5, 1.0]
    assert Sweep.load(tmp_path / "out").chosen == 0.5


def test_tables_are_printed_with_the_options_of_explain(lake: Path) -> None:
    options = [
        "--fractions",
        "0.2,0.5",
        "--seeds",
        "4,9",
        "--group",
        "g=a,b",
        "--features",
        "a,b,c",
        "--rank-by",
        "cir",
    ]
    done = CliRunner().invoke(excir, ["sweep", str(lake), "--output", "pred", "--k", "1", *options, "--threads", "1"])
    assert done.exit_code == 0, done.output
    assert "features: overlap (Jaccard index) of the top 1 of 3" in done.stdout
    assert "groups: overlap" in done.stdout
    assert "20% of the rows" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--output", "pred", "--fractions", "a"], "not a list of numbers"),
        (["--output", "pred", "--seeds", "x"], "neither a number of seeds"),
        (["--output", "pred", "--fractions", "2"], "at most 1"),
        (["--output", "pred", "--target-jaccard", "0"], "target_jaccard is 0.0"),
        (["--output", "pred", "--target-residual", "0"], "target_residual is 0.0"),
        (["--output", "pred", "--label", "a"], "go together"),
        (["--retrain"], "go together"),
        (["--output", "pred", "--out", "/dev/null/sweep"], "is not a writable folder"),
        ([], "--output"),
    ],
)
def test_mistakes_are_named(lake: Path, arguments: list[str], message: str) -> None:
    done = CliRunner().invoke(excir, ["sweep", str(lake), *arguments])
    assert message in done.output
    assert done.exit_code == 2
