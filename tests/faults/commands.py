"""Commands, and what every one of them promises however it ends."""

from __future__ import annotations

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
