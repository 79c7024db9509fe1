"""A small lake, and results of every kind, for tests that damage copies of them."""

from __future__ import annotations

from pathlib import Path

import dask
import pytest
from commands import excir, write_lake

from excir_dask.render.html import page

AUDIT = "name: plant\nlake: lake\noutput: y\nresults: audits\nbaseline: previous\n"


@pytest.fixture(scope="session")
def workplace(tmp_path_factory) -> Path:
    """A folder with ``lake``, ``result``, ``sweep``, ``audit.yaml`` and two runs in ``audits``; nobody changes it."""
    folder = tmp_path_factory.mktemp("workplace")
    write_lake(folder / "lake")
    (folder / "audit.yaml").write_text(AUDIT)
    with dask.config.set(scheduler="synchronous"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(page, "available", lambda: False)  # reports take most of the time
        for command in (
            ["explain", folder / "lake", "--output", "y", "--out", folder / "result"],
            ["sweep", folder / "lake", "--output", "y", "--fractions", "0.5", "--seeds", 1, "--out", folder / "sweep"],
            ["audit", folder / "audit.yaml"],
            ["audit", folder / "audit.yaml"],
        ):
            done = excir(*command)
            assert done.exit_code == 0, done.stderr
    return folder
