"""cluster/ and jobs/ hold what a user copies: every setting must exist in dask, every script must run."""

import subprocess
import sys
from pathlib import Path

import dask
import distributed  # noqa: F401  (its defaults are what we compare with)
import oracle
import pandas as pd
import pytest
import yaml

ROOT = Path(__file__).parent.parent


def leaves(tree: dict, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = []
    for name, value in tree.items():
        found += leaves(value, (*path, name)) if isinstance(value, dict) else [(*path, name)]
    return found


def test_every_setting_is_one_that_dask_knows():
    settings = yaml.safe_load((ROOT / "cluster" / "dask.yaml").read_text())
    assert leaves(settings)
    for path in leaves(settings):
        dask.config.get(".".join(path))  # raises KeyError for a name that dask does not have


@pytest.mark.parametrize("job", ["explain.py"])
def test_a_job_runs_as_a_script(job, tmp_path):
    frame = pd.DataFrame({"x": [1.0, 2, 3, 4], "pred": [1.0, 2, 3, 4]})
    lake = oracle.write_lake(tmp_path / "lake", frame)
    command = [sys.executable, str(ROOT / "jobs" / job), str(lake), "--output", "pred", "--out", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "explanation.json").exists()
