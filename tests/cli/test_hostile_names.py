"""Names of columns, files and categories come from whoever wrote the lake: none of them steers a terminal."""

import json
from pathlib import Path

import numpy as np
import oracle
import pandas as pd
import pytest
from click.testing import CliRunner

from excir_dask.cli import excir
from excir_dask.common.wording import printable

EVIL = "x\x1b[31m\nFORGED\u202e"
"""a name that colours a terminal, begins a line of its own and turns around what follows"""
TRAINABLE = "t\x9b\nFORGED\u202e"
"""another one, which XGBoost takes"""


def table(rows: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((rows, 3)), columns=[EVIL, TRAINABLE, "b"])
    frame["pred" + EVIL] = frame[EVIL] - frame["b"]
    frame["text" + EVIL] = np.where(frame["b"] > 0, "yes" + EVIL, "no" + EVIL)
    return frame


@pytest.fixture
def lake(tmp_path) -> Path:
    folder = oracle.write_lake(tmp_path / f"lake{EVIL}", table(), 2)
    for number, file in enumerate(sorted(folder.iterdir())):
        file.rename(folder / f"{number}{EVIL}.parquet")
    return folder


def run(code: int, *arguments: object) -> str:
    """What a command prints on both streams, which must be harmless."""
    done = CliRunner().invoke(excir, list(map(str, arguments)))
    assert done.exit_code == code, done.output
    for line in [*done.stdout.split("\n"), *done.stderr.split("\n")]:
        assert line == printable(line)
        assert not line.startswith("FORGED")
    assert set(done.output) & {"\x1b", "\x9b", "\u202e"} == set()
    return str(done.output)


def test_results_and_notes_are_harmless(lake, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    asked = ["explain", lake, "--output", f"pred{EVIL}", "--group", f"g{EVIL}={EVIL},b"]
    said = run(0, *asked, "--out", first, "-v")
    assert "FORGED" in said
    assert "was left out" in said or "left out:" in said
    assert "FORGED" in run(0, *asked, "--categoricals", "indicators", "--out", second)
    assert "FORGED" in run(0, "compare", first, second)
    assert "FORGED" in run(0, "plan", lake)
    run(0, "sweep", lake, "--output", f"pred{EVIL}", "--fractions", "0.5", "--seeds", "1", "--k", "1")


def test_json_has_the_names_as_they_are(lake, tmp_path):
    done = CliRunner().invoke(excir, ["explain", str(lake), "--output", f"pred{EVIL}", "--json", "--top", "1"])
    assert json.loads(done.stdout)["top"][f"pred{EVIL}"][0]["feature"] in table().columns


def test_errors_are_one_harmless_line(lake, tmp_path):
    said = run(3, "explain", lake, "--output", f"pred{EVIL}s", "-q")
    assert len(said.splitlines()) == 1
    assert "FORGED" in said
    assert len(run(3, "explain", lake, "--output", f"text{EVIL}", "-q").splitlines()) == 1
    assert len(run(2, "explain", lake, "--output", f"pred{EVIL}", "--group", f"g={EVIL}s", "-q").splitlines()) == 1
    damaged = lake / f"2{EVIL}.parquet"
    damaged.write_bytes(b"PAR1" + bytes(40))
    assert "FORGED" in run(3, "explain", lake, "--output", f"pred{EVIL}", "-q")
    table(10).rename(columns={"b": "c"}).to_parquet(damaged)
    assert "FORGED" in run(3, "explain", lake, "--output", f"pred{EVIL}", "-q")
    assert "FORGED" in run(3, "plan", lake)


def test_training_is_harmless(lake, tmp_path):
    asked = ["train", lake, "--label", f"text{EVIL}", "--out", tmp_path / "m.ubj", "--rounds", "1", "--fraction", "0.5"]
    assert "FORGED" in run(0, *asked, "--features", f"{TRAINABLE},b")
    assert "FORGED" in run(3, *asked, "--features", f"{EVIL},b", "--overwrite")


def test_audits_are_harmless(lake, tmp_path):
    config = tmp_path / "audit.json"
    content = {"lake": str(lake), "output": f"pred{EVIL}", "results": str(tmp_path / "audits"), "name": "a"}
    config.write_text(json.dumps({**content, "baseline": "previous", "checks": {"sign_flip": 0.01}}))
    run(0, "audit", config, "--date", "2026-09-01")
    frame = table()
    frame["pred" + EVIL] = -frame["pred" + EVIL]
    (lake / f"0{EVIL}.parquet").unlink()
    frame.to_parquet(lake / f"1{EVIL}.parquet")
    said = run(1, "audit", config, "--date", "2026-09-02")
    assert "FORGED" in said
    assert "FORGED" in run(0, "audit", "history", tmp_path / "audits", "--feature", EVIL)
    assert "FORGED" in run(2, "audit", "history", tmp_path / "audits", "--feature", f"{EVIL}s")
