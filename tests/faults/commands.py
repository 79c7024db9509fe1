"""Commands, what every one of them promises however it ends, and a lake for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from click.testing import CliRunner, Result

from excir_dask.cli import excir as group

LONGEST = 5000
"""characters that a command may say about a mistake"""


def excir(*arguments: object) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(group, [str(one) for one in arguments])


def refused(done: Result, code: int) -> str:
    """The one line of a command that was refused with an exit code; there must be no traceback."""
    assert "Traceback" not in done.stderr, done.stderr
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert done.exit_code == code, done.stderr
    assert len(done.stderr) < LONGEST
    lines = [line for line in done.stderr.splitlines() if line.startswith(("excir: ", "Error: "))]
    assert len(lines) == 1, done.stderr
    return lines[0]


def write_lake(folder: Path, rows: int = 200) -> None:
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True)
    for part in range(2):
        table = pd.DataFrame(rng.standard_normal((rows, 3)), columns=["a", "b", "c"])
        table = table.assign(y=table["a"] - table["b"], label=(table["a"] > 0).astype(int))
        table.to_parquet(folder / f"part-{part}.parquet")
