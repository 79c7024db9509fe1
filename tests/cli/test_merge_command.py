"""``excir merge`` through the command line."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
from click.testing import CliRunner
from oracle import write_lake

from excir_dask import Explanation
from excir_dask.cli.root import excir


def test_days_are_explained_from_one_reference_and_merged(tmp_path):
    rng = np.random.default_rng(0)
    for day in range(3):
        frame = pd.DataFrame(rng.standard_normal((400, 2)), columns=["a", "b"])
        write_lake(tmp_path / "lake" / f"day={day}", frame.assign(pred=frame["a"] - frame["b"]))
    runs = [str(tmp_path / f"run{day}") for day in range(3)]
    for day, out in enumerate(runs):
        arguments = ["explain", str(tmp_path / "lake" / f"day={day}"), "--output", "pred", "--out", out]
        done = CliRunner().invoke(excir, [*arguments, *(["--reference", runs[0]] if day else [])])
        assert done.exit_code == 0, done.output
    done = CliRunner().invoke(excir, ["merge", *runs, "--out", str(tmp_path / "days"), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["rows"]["used"] == 1200
    assert Explanation.load(tmp_path / "days").facts.rows.used == 1200
    assert "a" in CliRunner().invoke(excir, ["merge", *runs]).stdout


def test_what_cannot_be_merged_ends_with_2(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2, 3, 4], "pred": [1.0, 2, 4, 3]})
    write_lake(tmp_path / "lake", frame)
    for name in ("one", "two"):
        out = ["--output", "pred", "--out", str(tmp_path / name)]
        assert CliRunner().invoke(excir, ["explain", str(tmp_path / "lake"), *out]).exit_code == 0
    for runs in (["one"], ["one", "two"], ["one", "nowhere"]):
        done = CliRunner().invoke(excir, ["merge", *(str(tmp_path / name) for name in runs)])
        assert done.exit_code in (2, 3), done.output
        assert done.output.count("\n") == 1
