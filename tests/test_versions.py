"""The oldest versions that pyproject.toml allows are those that .ci/lowest tries."""

from __future__ import annotations

import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def requirements(*extras: str) -> list[Requirement]:
    """The dependencies, with those of extras and of the extras that these name."""
    found = [Requirement(text) for text in PROJECT["dependencies"]]
    for extra in extras:
        found += [Requirement(text) for text in PROJECT["optional-dependencies"][extra]]
    nested = {extra for each in found if each.name == PROJECT["name"] for extra in each.extras}
    return [each for each in found if each.name != PROJECT["name"]] + (requirements(*sorted(nested)) if nested else [])


def test_every_lower_bound_is_pinned_in_the_file_of_lowest_versions():
    lines = (ROOT / ".ci" / "lowest.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if "==" in line)
    for each in requirements("test"):
        bound = next(part.version for part in each.specifier if part.operator == ">=")
        pin = pins[each.name]
        assert pin == bound or pin.startswith(f"{bound}."), f"{each.name}: {bound} in pyproject.toml, {pin} pinned"
