"""A lake of 14 days for audits: the effect of speed flips on day 9, and that of the group cooling fades slowly."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from days import CONFIG, WEIGHTS, frame, write_day


@pytest.fixture
def plant(tmp_path) -> Path:
    """A folder with a configuration, groups and two days without drift."""
    for number in (1, 2):
        write_day(tmp_path / "lake", number, frame(number))
    (tmp_path / "groups.yaml").write_text("engine: [rpm, torque]\ncooling: [oil, water]\n")
    (tmp_path / "audit.yaml").write_text(CONFIG)
    return tmp_path


@pytest.fixture
def drifting(plant) -> Path:
    """The same with 14 days, and drift."""
    for number in range(1, 15):
        weights = WEIGHTS.copy()
        weights[2:4] *= 1.0 - 0.035 * (number - 1)
        if number >= 9:
            weights[4] *= -1.0
        write_day(plant / "lake", number, frame(100 + number, weights))
    return plant
