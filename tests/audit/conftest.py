"""A lake of 14 days for audits: the effect of speed flips on day 9, and that of the group cooling fades slowly."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import dask
import pytest
from days import CONFIG, FIRST, GROUPS, frame, write_day, write_drift

from excir_dask.audit.baseline import set_baseline
from excir_dask.audit.config import read_config
from excir_dask.audit.run import AuditRun, audit
from excir_dask.audit.store import open_store
from excir_dask.render.html import page


@pytest.fixture
def plant(tmp_path) -> Path:
    """A folder with a configuration, groups and two days without drift."""
    for number in (1, 2):
        write_day(tmp_path / "lake", number, frame(number))
    (tmp_path / "groups.yaml").write_text(GROUPS)
    (tmp_path / "audit.yaml").write_text(CONFIG)
    return tmp_path


@pytest.fixture
def drifting(plant) -> Path:
    """The same with 14 days, and drift."""
    write_drift(plant / "lake")
    return plant


REPORTED = (9, 14)
"""days whose runs have a report, which takes half of the time of a run"""


class Audited(NamedTuple):
    """A folder with 14 audited days."""

    folder: Path
    runs: dict[int, AuditRun]
    """by day"""

    def run_folder(self, day: int) -> Path:
        return self.folder / "audits" / "runs" / str(self.runs[day].about["run"])


@pytest.fixture(scope="session")
def audited(tmp_path_factory) -> Audited:
    """All days with drift, audited against the first one; tests read it and change nothing."""
    folder = tmp_path_factory.mktemp("audited")
    write_drift(folder / "lake")
    (folder / "groups.yaml").write_text(GROUPS)
    (folder / "audit.yaml").write_text(CONFIG + "baseline: production\n")
    config = read_config(folder / "audit.yaml")
    with dask.config.set(scheduler="synchronous"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(page, "available", lambda: len(runs) + 1 in REPORTED)
        runs: dict[int, AuditRun] = {}
        runs[1] = audit(config, FIRST, baseline=False)
        set_baseline(open_store(config.results), "production", str(runs[1].about["run"]))
        for day in range(2, 15):
            runs[day] = audit(config, FIRST.replace(day=day))
    return Audited(folder, runs)
